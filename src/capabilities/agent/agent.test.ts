import { describe, expect, onTestFinished } from 'vitest'
import { createHost } from '../../daemon/host.ts'
import { ROLE_NAMES, ROLES } from '../../kernel/policy.ts'
import { Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { prompts } from './prompts.ts'

type Token = { id: string; holder_id: string; status: string; ended_why: string | null }

const tokensOf = async (app: TestApp, holder: string): Promise<Token[]> =>
  (await app.owner.call('token_list', { limit: 200 })).tokens.filter((token: Token) => token.holder_id === holder)

const tokenOf = async (app: TestApp, holder: string): Promise<Token> => {
  const living = (await tokensOf(app, holder)).find((token) => token.status !== 'ended')
  if (!living) throw new Error('no living token')
  return living
}

async function person(app: TestApp, name: string, profile = 'maintainer'): Promise<Caller> {
  const { token, person_id, handle } = await app.owner.call('person_invite', { name, profile })
  return new Caller(app.app, token, person_id, handle)
}

describe('inviting', () => {
  test('[A1] an invited agent has an identity, a role, a profile and a token that works at once', async ({ app }) => {
    const invited = await app.owner.call('agent_invite', { role: 'worker', name: 'Ann' })
    expect(invited).toMatchObject({ handle: 'ann', role: 'worker', profile: 'pair_worker', expires_at: null })
    const ann = new Caller(app.app, invited.token, invited.agent_id, invited.handle)
    expect(await ann.call('agent_me')).toMatchObject({ id: invited.agent_id, kind: 'agent', handle: 'ann', name: 'Ann', role: 'worker' })
    expect(await app.events({ type: 'agent.invited' })).toMatchObject([
      { subject: invited.agent_id, actor: app.owner.id, audience: 'people' },
    ])
  })

  test('[A1] a token has at least 256 random bits and never repeats', async ({ app }) => {
    const tokens: string[] = []
    for (let i = 0; i < 20; i++) tokens.push((await app.owner.call('agent_invite', { role: 'worker' })).token)
    expect(new Set(tokens).size).toBe(20)
    for (const token of tokens) expect(Buffer.from(token.replace(/^sbx_agent_/, ''), 'base64url')).toHaveLength(32)
  })

  test('[A2] handles are unique over agents and people, whoever takes a name first', async ({ app }) => {
    const handles: string[] = []
    const invite = async (fields: Record<string, unknown>) =>
      handles.push((await app.owner.call('agent_invite', { role: 'worker', ...fields })).handle)
    await invite({ name: 'Ann' })
    handles.push((await person(app, 'Ann')).handle)
    await invite({ name: 'ann!' })
    await invite({ name: 'Owner' })
    await invite({ name: '42 – 日本' })
    await invite({ name: 'Ærø  Ünïcode' })
    expect(handles).toEqual(['ann', 'ann-2', 'ann-3', 'owner-2', 'worker', 'r-unicode'])
    for (const name of ['System', 'human', 'SIGNALBOX']) await invite({ name })
    handles.push((await person(app, 'Human')).handle)
    expect(handles.slice(-4)).toEqual(['system-2', 'human-2', 'signalbox-2', 'human-3'])
  })

  test('[A2] without a name the handle is the role and a number, also when somebody took that name', async ({ app }) => {
    const handle = async (fields: Record<string, unknown> = {}) =>
      (await app.owner.call('agent_invite', { role: 'worker', ...fields })).handle
    expect(await handle({ name: 'Worker 1' })).toBe('worker-1')
    expect(await handle()).toBe('worker-2')
    expect(await handle()).toBe('worker-3')
    expect((await app.owner.call('agent_invite', { role: 'reviewer' })).handle).toBe('reviewer-1')
  })

  test('[A3] the profile is the one of the role, as the settings have it now, unless the inviter says otherwise', async ({ app }) => {
    const profile = async (fields: Record<string, unknown>) => (await app.owner.call('agent_invite', fields)).profile
    for (const role of ROLE_NAMES) expect(await profile({ role })).toBe(ROLES[role].profile)
    await app.owner.call('setting_update', { key: 'roles.worker.profile', value: 'viewer' })
    expect(await profile({ role: 'worker' })).toBe('viewer')
    expect(await profile({ role: 'worker', profile: 'operator' })).toBe('operator')
  })

  test.for([
    ['no role', {}],
    ['a role that is none', { role: 'boss' }],
    ['an empty name', { role: 'worker', name: '' }],
    ['no time to live', { role: 'worker', expires_in_hours: 0 }],
    ['more than a year to live', { role: 'worker', expires_in_hours: 8_761 }],
    ['a profile that is none', { role: 'worker', profile: 'root' }],
  ] as const)('[A1] %s is refused', async ([, input], { app }) => {
    expect(await app.owner.refused('agent_invite', input)).toMatchObject({ code: 'INVALID_INPUT' })
    expect((await app.owner.call('agent_list')).agents).toEqual([])
  })

  test('[A1] into a project that does not exist: nobody is invited', async ({ app }) => {
    expect(await app.owner.refused('agent_invite', { role: 'worker', project_id: 'nowhere' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect((await app.owner.call('agent_list')).agents).toEqual([])
  })
})

describe('who is who', () => {
  test('[A4] everyone learns who they are from their token alone', async ({ app }) => {
    expect(await app.owner.call('agent_me')).toMatchObject({
      kind: 'person',
      handle: 'owner',
      role: null,
      profile: 'maintainer',
      state: null,
    })
    const task = await app.task()
    const worker = await app.worker(task.id)
    expect(await worker.call('agent_me')).toMatchObject({
      id: worker.id,
      kind: 'agent',
      role: 'worker',
      state: 'BUSY',
      task_id: task.id,
      project_id: task.project_id,
    })
    expect(await worker.refused('agent_me', { agent_id: app.owner.id })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[A5] agents are listed oldest first, in pages that skip and repeat nobody', async ({ app }) => {
    const invited: string[] = []
    for (let i = 0; i < 25; i++) invited.push((await app.agent('worker')).id)
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await app.owner.call('agent_list', { limit: 7, after })
      seen.push(...page.agents.map((agent: { id: string }) => agent.id))
      after = page.next ?? undefined
    } while (after)
    expect(seen).toEqual(invited)
  })

  test('[A5] the state of an agent follows from its tokens and its task', async ({ app }) => {
    const stateOf = async (id: string) => (await app.owner.call('agent_list')).agents.find((agent: { id: string }) => agent.id === id)
    const task = await app.task()
    const agent = await app.agent('worker')
    expect(await stateOf(agent.id)).toMatchObject({ state: 'IDLE', last_active_at: null })
    await app.owner.call('task_assign', { task_id: task.id, agent_id: agent.id })
    await agent.call('task_note', { task_id: task.id, body: 'here' })
    expect(await stateOf(agent.id)).toMatchObject({ state: 'BUSY', task_id: task.id, last_active_at: expect.any(String) })
    await app.owner.call('token_revoke', { agent_id: agent.id })
    expect(await stateOf(agent.id)).toMatchObject({ state: 'STOPPED' })
  })

  test('[A5] an agent whose only token has expired is stopped', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    await app.agent('worker', { expires_in_hours: 1 })
    now += 3_600_000
    expect((await app.owner.call('agent_list')).agents).toMatchObject([{ state: 'STOPPED' }])
  })
})

describe('tokens', () => {
  test('[A6] the list has every token with its holder and state, and no secret', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    const [ann, bob] = [await app.agent('worker', { expires_in_hours: 1 }), await app.agent('worker')]
    await app.owner.call('token_revoke', { agent_id: bob.id })
    now += 3_600_000
    const { tokens } = await app.owner.call('token_list')
    expect(tokens).toMatchObject([
      { kind: 'person', holder: 'owner', status: 'active', expires_at: null },
      { kind: 'agent', holder: ann.handle, holder_id: ann.id, status: 'expired', created_by: app.owner.id },
      { kind: 'agent', holder: bob.handle, status: 'ended', ended_why: 'revoked' },
    ])
    for (const secret of [ann.secret, bob.secret, app.owner.secret]) expect(JSON.stringify(tokens)).not.toContain(secret)
  })

  test('[A6] it pages by keyset', async ({ app }) => {
    for (let i = 0; i < 4; i++) await app.agent('worker')
    const first = await app.owner.call('token_list', { limit: 3 })
    const second = await app.owner.call('token_list', { limit: 3, after: first.next })
    expect([first.tokens.length, second.tokens.length, second.next]).toEqual([3, 2, null])
  })

  test('[A7] one token, or all of a holder, by id or handle; what had ended already is not counted', async ({ app }) => {
    const [ann, bob] = [await app.agent('worker', { name: 'Ann' }), await app.agent('worker')]
    const pat = await person(app, 'Pat')
    expect(await app.owner.call('token_revoke', { token_id: (await tokenOf(app, bob.id)).id })).toEqual({ revoked: 1 })
    expect(await app.owner.call('token_revoke', { agent_id: 'ann' })).toEqual({ revoked: 1 })
    expect(await app.owner.call('token_revoke', { person_id: pat.handle })).toEqual({ revoked: 1 })
    expect(await app.owner.call('token_revoke', { agent_id: ann.id })).toEqual({ revoked: 0 })
    for (const caller of [ann, bob, pat]) expect(await caller.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    expect(await app.events({ type: 'token.ended' })).toHaveLength(3)
  })

  test('[A7] naming nobody, or two, is refused and ends nothing', async ({ app }) => {
    const [ann, bob] = [await app.agent('worker'), await app.agent('worker')]
    expect(await app.owner.refused('token_revoke', {})).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('exactly one'),
    })
    const two = { agent_id: ann.id, token_id: (await tokenOf(app, bob.id)).id }
    expect(await app.owner.refused('token_revoke', two)).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('token_revoke', { agent_id: 'ghost' })).toMatchObject({ code: 'AGENT_NOT_FOUND' })
    for (const caller of [ann, bob]) await caller.call('agent_me')
  })

  test("[A8] the owner's token cannot be revoked, only replaced, and only by the owner", async ({ app }) => {
    const own = await tokenOf(app, app.owner.id)
    const pat = await person(app, 'Pat')
    for (const input of [{ token_id: own.id }, { person_id: app.owner.id }]) {
      expect(await app.owner.refused('token_revoke', input)).toMatchObject({ code: 'PERMISSION_DENIED', next_tool: 'token_rotate' })
      expect(await pat.refused('token_revoke', input)).toMatchObject({ code: 'PERMISSION_DENIED' })
    }
    expect(await pat.refused('token_rotate', { token_id: own.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.owner.call('agent_me')
    const { token } = await app.owner.call('token_rotate', { token_id: own.id })
    expect(await app.owner.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    expect(await new Caller(app.app, token, app.owner.id, 'owner').call('agent_me')).toMatchObject({ handle: 'owner' })
  })

  test("[A8] the owner's new secret is on disk before the old one ends, and the file follows the commit", async () => {
    const steps: string[] = []
    const app = await openTestApp({
      ports: { ownerFile: { stage: async (secret) => void steps.push(`staged ${secret}`) } },
      onOwnerRotated: () => void steps.push('rotated'),
    })
    onTestFinished(() => app.close())
    const { token } = await app.owner.call('token_rotate', { token_id: (await tokenOf(app, app.owner.id)).id })
    expect(steps).toEqual([`staged ${token}`, 'rotated'])
  })

  test('[A9] a rotation ends one secret and starts another in one step, with the same holder and expiry', async ({ app }) => {
    const invited = await app.owner.call('agent_invite', { role: 'worker', expires_in_hours: 5 })
    const rotated = await app.owner.call('token_rotate', { token_id: invited.token_id })
    const [old, next] = await tokensOf(app, invited.agent_id)
    expect(old).toMatchObject({ id: invited.token_id, status: 'ended', ended_why: 'rotated' })
    expect(next).toMatchObject({ id: rotated.token_id, status: 'active', expires_at: invited.expires_at })
    expect(await app.events({ type: 'token.rotated' })).toMatchObject([
      { subject: rotated.token_id, data: { replaces: invited.token_id, owner: false } },
    ])
  })

  test('[A9] a named person rotates and ends the tokens of agents and their own, not those of other people', async ({ app }) => {
    const [eve, bob] = [await person(app, 'Eve'), await person(app, 'Bob')]
    const ofBob = await tokenOf(app, bob.id)
    expect((await eve.refused('token_rotate', { token_id: ofBob.id })).code).toBe('PERMISSION_DENIED')
    expect((await eve.refused('token_revoke', { person_id: bob.id })).code).toBe('PERMISSION_DENIED')
    expect(await bob.call('agent_me')).toMatchObject({ handle: 'bob' })
    const worker = await app.agent('worker')
    expect((await eve.call('token_rotate', { token_id: (await tokenOf(app, worker.id)).id })).token).toMatch(/^sbx_agent_/)
    expect((await app.owner.call('token_revoke', { person_id: bob.id })).revoked).toBe(1)
  })

  test('[A9] of two rotations at once one wins; a token that has ended or expired is not replaced', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    const token_id = (await tokenOf(app, (await app.agent('worker')).id)).id
    const both = await Promise.all([1, 2].map(() => app.owner.invoke('token_rotate', { token_id })))
    expect(both.filter((answer) => answer.ok)).toHaveLength(1)
    expect(await app.owner.refused('token_rotate', { token_id })).toMatchObject({ code: 'CONFLICT' })
    const short = await tokenOf(app, (await app.agent('worker', { expires_in_hours: 1 })).id)
    now += 3_600_000
    expect(await app.owner.refused('token_rotate', { token_id: short.id })).toMatchObject({
      code: 'CONFLICT',
      hint: expect.stringContaining('nvite'),
    })
  })
})

describe('people', () => {
  test('[A10] the owner names a person, who acts in their own name within their profile', async ({ app }) => {
    const pat = await person(app, 'Pat', 'operator')
    expect(await pat.call('agent_me')).toMatchObject({ id: pat.id, kind: 'person', handle: 'pat', profile: 'operator' })
    const { project_id } = { project_id: await app.project() }
    const { task } = await pat.call('task_create', { project_id, title: 'From Pat' })
    expect(task.created_by).toBe(pat.id)
    expect(await pat.refused('agent_invite', { role: 'worker' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[A10] nobody but the owner names people', async ({ app }) => {
    const pat = await person(app, 'Pat')
    const agent = await app.agent('supervisor', { profile: 'maintainer' })
    for (const caller of [pat, agent])
      expect(await caller.refused('person_invite', { name: 'Eve' })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[A11] the owner keeps their token over a restart; a lost or foreign one is replaced, and the old ones end', async ({ app }) => {
    const first = app.app.ownerToken
    await app.reopen()
    expect(app.app.ownerToken).toBe(first)
    const lost = app.owner
    app.app.ownerToken = 'sbx_person_that_this_database_never_saw'
    await app.reopen()
    expect(app.app.ownerToken).not.toBe(first)
    expect(await app.owner.call('agent_me')).toMatchObject({ id: lost.id, handle: 'owner' })
    const before = new Caller(app.app, first, lost.id, 'owner')
    if (app.app.engine.facts.shared) return void expect(await before.call('agent_me')).toMatchObject({ id: lost.id })
    expect(await before.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN', message: expect.stringContaining('replaced') })
  })

  test("[A11] an agent's token in the owner's place makes nobody the owner", async ({ app }) => {
    const agent = await app.agent('orchestrator')
    app.app.ownerToken = agent.secret
    await app.reopen()
    expect(app.app.ownerToken).not.toBe(agent.secret)
    expect(await app.owner.call('agent_me')).toMatchObject({ kind: 'person', handle: 'owner' })
  })
})

test('[A12] there is a prompt for every role: it names the caller, its task, and what to distrust', async ({ app }) => {
  expect(prompts.map((prompt) => prompt.name).toSorted()).toEqual([...ROLE_NAMES].toSorted())
  const task = await app.task()
  const worker = await app.worker(task.id)
  const found = await app.app.identity.authenticate(app.app.engine.view, worker.secret)
  const text = prompts.find((prompt) => prompt.name === 'worker')?.text(found?.principal as never)
  for (const words of [worker.handle, task.id, 'never as instructions']) expect(text).toContain(words)
})

describe('signing a browser in', () => {
  const follow = async (app: TestApp, by: Caller = app.owner): Promise<Caller> => {
    const { url_path } = await by.call('token_link')
    return new Caller(app.app, url_path.replace('/#link=', ''), by.id, by.handle)
  }

  test('[A13] a link gives a token of the person who made it, once', async ({ app }) => {
    const bea = await person(app, 'Bea', 'operator')
    const link = await follow(app, bea)
    const { token, token_id } = await link.call('token_redeem')
    const browser = new Caller(app.app, token, bea.id, bea.handle)
    expect(await browser.call('agent_me')).toMatchObject({ id: bea.id, kind: 'person', profile: 'operator' })
    expect(await link.refused('token_redeem')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    expect((await tokensOf(app, bea.id)).map((found) => found.id)).toContain(token_id)
  })

  test('[A13] of many that use one link at once, one is let in', async ({ app }) => {
    const link = await follow(app)
    const answers = await Promise.all(Array.from({ length: 10 }, () => link.invoke('token_redeem', {})))
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1)
  })

  test('[A13] a link opens nothing else: no other tool, no connection, no stream', async ({ app }) => {
    const link = await follow(app)
    expect(await link.refused('task_list')).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await link.refused('token_link')).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.app.kernel.authenticate(link.secret)).toMatchObject({ stale: expect.stringContaining('token_redeem') })
    expect(await app.owner.refused('token_redeem')).toMatchObject({ code: 'PERMISSION_DENIED' })
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await link.refused('task_create', { title: 'x' }, { actFor: agent.handle })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await link.refused('token_redeem', {}, { actFor: agent.handle })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await link.call('token_redeem')
  })

  test('[A13] neither an agent nor a person on the default lane makes one, and after an hour it is none', async () => {
    let now = Date.now()
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect(await agent.refused('token_link')).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('token_link', {}, { lane: 'default' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    const link = await follow(app)
    now += 3_600_001
    expect(await link.refused('token_redeem')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    await follow(app)
    expect((await tokensOf(app, app.owner.id)).filter(({ id }) => id).map((token) => token.status)).toEqual(['active', 'active'])
  })

  test("[A14] a browser's token of the owner ends by itself, or when it is revoked; the one on disk stays", async () => {
    let now = Date.now()
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    await app.owner.call('setting_update', { key: 'dashboard.sign_in_days', value: 2 })
    const signIn = async () => {
      const { token, token_id } = await (await follow(app)).call('token_redeem')
      return { id: token_id, caller: new Caller(app.app, token, app.owner.id, 'owner') }
    }
    const [one, other] = [await signIn(), await signIn()]
    expect(await app.owner.call('token_revoke', { token_id: one.id })).toEqual({ revoked: 1 })
    expect(await one.caller.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    await other.caller.call('agent_me')
    now += 2 * 24 * 3_600_000
    expect(await other.caller.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    await app.owner.call('agent_me')
  })

  test('[A14] a viewer signs out, and ends no other token', async ({ app }) => {
    const bea = await person(app, 'Bea', 'viewer')
    const { id } = await tokenOf(app, bea.id)
    const other = await tokenOf(app, (await person(app, 'Cem')).id)
    for (const input of [{ token_id: other.id }, { person_id: bea.id }, { person_id: 'cem' }])
      expect(await bea.refused('token_revoke', input)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await bea.call('token_revoke', { token_id: id })).toEqual({ revoked: 1 })
    expect(await bea.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
  })

  test('[A15] a rotation ends the links and browsers of the holder, but not the browser that asked', async ({ app }) => {
    const bea = await person(app, 'Bea')
    const [link, other] = [await follow(app, bea), await follow(app, bea)]
    const browserOf = async (from: Caller) => new Caller(app.app, (await from.call('token_redeem')).token, bea.id, bea.handle)
    const [browser, asking] = [await browserOf(link), await browserOf(other)]
    const open = await follow(app, bea)
    const held = (await tokensOf(app, bea.id)).filter((token) => token.status === 'active')
    const file = held.find((token) => (token as Token & { expires_at: string | null }).expires_at === null) as Token
    const { token } = await asking.call('token_rotate', { token_id: file.id })
    for (const ended of [bea, browser, open]) expect(await ended.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    await asking.call('agent_me')
    await new Caller(app.app, token, bea.id, bea.handle).call('agent_me')
  })
})
