import { describe, expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { AgentId, ProjectId, TaskId } from '../capabilities/ids.ts'
import { createHost } from '../daemon/host.ts'
import { allows, BY_PROFILE, BY_ROLE } from '../surfaces/docs/permissions.ts'
import { Caller, openTestApp, type TestApp, test } from '../testing/app.ts'
import { auditRows, withProbe } from '../testing/probe.ts'
import { until } from '../testing/signals.ts'
import { defineEvent } from './event.ts'
import { mention, self } from './id.ts'
import type { Proof } from './invoke.ts'
import { globMatches, type Lane, PROFILES, type Principal, ROLE_NAMES, ROLES } from './policy.ts'
import { defineTool, type Tool } from './tool.ts'

async function open(options: Parameters<typeof openTestApp>[0] = {}): Promise<TestApp> {
  const app = await openTestApp(options)
  onTestFinished(() => app.close())
  return app
}

async function person(app: TestApp, profile: string): Promise<Caller> {
  const { token, person_id, handle } = await app.owner.call('person_invite', { name: `Pat ${profile}`, profile })
  return new Caller(app.app, token, person_id, handle)
}

/** Somebody real for a column of docs/permissions.md. A role's own profile is left to the invitation. */
function like(app: TestApp, { kind, owner, role, profile }: Principal): Promise<Caller> | Caller {
  if (kind === 'person') return owner ? app.owner : person(app, profile)
  if (!role) throw new Error('an agent has a role')
  return app.agent(role, ROLES[role].profile === profile ? {} : { profile })
}

const tools = (app: TestApp): Tool[] => app.app.registry.tools.filter((tool) => !tool.internal)

/** Asks at the door, with an input that no tool accepts: whoever may call gets as far as INVALID_INPUT. */
async function allowed(caller: Caller, tool: string, lane: Lane = 'admin'): Promise<boolean> {
  const { code } = await caller.refused(tool, { no_such_key: true }, { lane })
  if (code !== 'INVALID_INPUT' && code !== 'PERMISSION_DENIED') throw new Error(`${tool} answered ${code}`)
  return code === 'INVALID_INPUT'
}

async function listed(app: TestApp, caller: Caller, lane: Lane = 'admin'): Promise<string[]> {
  const found = await app.app.identity.authenticate(app.app.engine.view, caller.secret)
  if (!found) throw new Error('not known')
  return app.app.kernel.permitted(found.principal, lane).map((entry) => entry.calledAs)
}

describe('who may call what', () => {
  test('[K12] [K13] [K14] [K15] every tool for every profile, role and lane: as in the table, in the list and at the door', async () => {
    const app = await open()
    const names = tools(app).map((tool) => tool.name)
    for (const column of [...BY_PROFILE, ...BY_ROLE]) {
      const caller = await like(app, column.principal)
      const atTheDoor: string[] = []
      for (const name of names) if (await allowed(caller, name, column.lane)) atTheDoor.push(name)
      const inTheTable = tools(app).filter((tool) => allows(column, tool))
      expect({ [column.name]: atTheDoor }).toEqual({ [column.name]: inTheTable.map((tool) => tool.name) })
      expect(await listed(app, caller, column.lane)).toEqual(atTheDoor)
    }
  })

  test('[K12] each profile includes the ones below it', async () => {
    const app = await open()
    let below: string[] = []
    for (const profile of PROFILES) {
      const names = await listed(app, await app.agent('orchestrator', { profile }))
      expect(names).toEqual(expect.arrayContaining(below))
      below = names
    }
    expect(below.length).toBeGreaterThan(10)
  })

  test('[K12] an agent without the profile is told which one it lacks', async () => {
    const app = await open()
    const viewer = await app.agent('planner', { profile: 'viewer' })
    expect(await viewer.refused('task_create', { title: 'x' })).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringMatching(/needs the profile operator.*has viewer/),
    })
  })

  test('[K13] deny wins over allow, what is not allowed is refused, and a change holds from the next call on', async () => {
    const app = await open()
    const set = (list: string, value: string[] | null) => app.owner.call('setting_update', { key: `roles.orchestrator.${list}`, value })
    const agent = await app.agent('orchestrator')
    expect(await allowed(agent, 'task_list')).toBe(true)
    await set('deny', ['task_*'])
    expect(await allowed(agent, 'task_list')).toBe(false)
    expect(await allowed(agent, 'project_list')).toBe(true)
    await set('allow', ['task_list', 'agent_me'])
    expect(await allowed(agent, 'task_list')).toBe(false)
    await set('deny', null)
    expect(await allowed(agent, 'task_list')).toBe(true)
    expect(await allowed(agent, 'project_list')).toBe(false)
    await set('allow', [])
    expect(await listed(app, agent)).toEqual([])
  })

  test('[K13] a change of role rules survives a restart', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    await app.owner.call('setting_update', { key: 'roles.orchestrator.deny', value: ['task_list'] })
    await app.reopen()
    expect(await allowed(new Caller(app.app, agent.secret, agent.id, agent.handle), 'task_list')).toBe(false)
  })

  test('[K13] globs narrow a profile and never extend it', async () => {
    const app = await open()
    await app.owner.call('setting_update', { key: 'roles.worker.allow', value: ['*', 'task_create', 'task_delete'] })
    const worker = await app.agent('worker')
    expect(await allowed(worker, 'task_create')).toBe(false)
    expect(await allowed(worker, 'task_delete')).toBe(false)
  })

  test('[K13] a star is any run of characters and nothing else is special', () => {
    expect(globMatches('task_*', 'task_list')).toBe(true)
    expect(globMatches('*', '')).toBe(true)
    expect(globMatches('*_list', 'task_list')).toBe(true)
    expect(globMatches('t*_*t', 'task_list')).toBe(true)
    expect(globMatches('task_*', 'my_task_list')).toBe(false)
    expect(globMatches('task', 'task_list')).toBe(false)
    expect(globMatches('task.list', 'task_list')).toBe(false)
    expect(globMatches('(a+)+$', 'aaaa')).toBe(false)
  })

  test('[K14] no role, glob or profile gives an agent what only a person may do', async () => {
    const app = await open()
    const personal = tools(app).filter((tool) => tool.by !== undefined)
    expect(personal.map((tool) => tool.name)).toEqual(
      expect.arrayContaining(['token_list', 'token_revoke', 'token_rotate', 'setting_update', 'agent_invite']),
    )
    for (const role of ROLE_NAMES) {
      await app.owner.call('setting_update', { key: `roles.${role}.allow`, value: ['*'] })
      await app.owner.call('setting_update', { key: `roles.${role}.deny`, value: [] })
      const agent = await app.agent(role, { profile: 'maintainer' })
      for (const { name } of personal) expect(`${role} ${name} ${await allowed(agent, name)}`).toBe(`${role} ${name} false`)
      expect((await agent.refused('setting_update')).message).toContain('only a person')
    }
  })

  test('[K14] what only the owner may do no other person may', async () => {
    const app = await open()
    const pat = await person(app, 'maintainer')
    expect(await pat.refused('person_invite', { name: 'Eve' })).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringContaining('owner'),
    })
  })

  test('[K15] on the default lane a person reaches pair_worker, and is told how to ask for more', async () => {
    const app = await open()
    const task = await app.task()
    const lane = { lane: 'default' } as const
    expect(await app.owner.call('agent_me', {}, lane)).toMatchObject({ profile: 'pair_worker' })
    expect(await app.owner.invoke('task_note', { task_id: task.id, body: 'hello' }, lane)).toMatchObject({ ok: true })
    expect(await app.owner.refused('task_create', { title: 'x' }, lane)).toMatchObject({
      code: 'PERMISSION_DENIED',
      hint: expect.stringContaining('--admin'),
    })
    expect(await app.owner.refused('task_move', { task_id: task.id, status: 'IN_PROGRESS' }, lane)).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
    const viewer = await person(app, 'viewer')
    expect(await viewer.call('agent_me', {}, lane)).toMatchObject({ profile: 'viewer' })
  })

  test('[K15] the lane of each call is in the audit', async () => {
    const app = await open()
    const task = await app.task()
    await app.owner.call('task_note', { task_id: task.id, body: 'a' }, { lane: 'default' })
    await app.owner.call('task_note', { task_id: task.id, body: 'b' }, { lane: 'admin' })
    expect((await auditRows(app)).filter((row) => row.tool === 'task_note').map((row) => row.lane)).toEqual(['default', 'admin'])
  })

  test("[K15] an agent's profile was granted to it: the lane does not lower it", async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    expect(await allowed(agent, 'task_create', 'default')).toBe(true)
  })
})

describe('tokens', () => {
  test('[K16] a revoked token is refused with the next call, in its own name, and audited', async () => {
    const app = await open()
    const agent = await app.agent('worker')
    await agent.call('agent_me')
    await app.owner.call('token_revoke', { agent_id: agent.id })
    expect(await agent.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN', message: expect.stringContaining('revoked') })
    expect((await auditRows(app)).at(-1)).toMatchObject({ principal: agent.id, outcome: 'refused', code: 'AUTH_STALE_TOKEN' })
  })

  test('[K16] rotation ends the old secret and starts the new one at once', async () => {
    const app = await open()
    const agent = await app.agent('worker')
    const { tokens } = await app.owner.call('token_list')
    const old = tokens.find((token: { holder_id: string }) => token.holder_id === agent.id)
    const { token } = await app.owner.call('token_rotate', { token_id: old.id })
    expect(await agent.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN', message: expect.stringContaining('rotated') })
    expect(await new Caller(app.app, token, agent.id, agent.handle).call('agent_me')).toMatchObject({ id: agent.id })
  })

  test('[K16] what a token has proven is good for one call, with its own secret, and cannot be made up', async () => {
    const app = await open()
    const [agent, other] = [await app.agent('worker'), await app.agent('worker')]
    const { kernel } = app.app
    const proof = await kernel.authenticate(agent.secret)
    const me = async (secret: string, shown = proof) =>
      kernel.invoke({ tool: 'agent_me', input: {}, credential: { secret, proof: shown }, surface: 'mcp' })
    expect(await me(other.secret)).toMatchObject({ ok: true, value: { id: other.id } })
    expect(await me(other.secret, { principal: { ...(proof as Proof).principal } })).toMatchObject({ value: { id: other.id } })
    expect(await me('sbx_agent_guess')).toMatchObject({ ok: false, error: { code: 'UNAUTHENTICATED' } })
    expect(await me(agent.secret)).toMatchObject({ ok: true, value: { id: agent.id } })
    await app.owner.call('token_revoke', { agent_id: agent.id })
    expect(await me(agent.secret)).toMatchObject({ ok: false, error: { code: 'AUTH_STALE_TOKEN' } })
  })

  test('[K16] a token ends at its hour', async () => {
    let now = Date.parse('2026-03-01T00:00:00Z')
    const app = await open({ host: createHost(() => now) })
    const agent = await app.agent('worker', { expires_in_hours: 1 })
    now += 3_600_000 - 1
    await agent.call('agent_me')
    now += 1
    expect(await agent.refused('agent_me')).toMatchObject({ code: 'AUTH_STALE_TOKEN', message: expect.stringContaining('expired') })
  })

  test('[K16] a wait whose token ends meanwhile shows nothing of what came after', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    const waiting = agent.refused('event_wait', { types: ['task.*'] })
    await until(() => app.app.feed.waiters === 1)
    await app.owner.call('token_revoke', { agent_id: agent.id })
    await app.task()
    expect(await waiting).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
  })

  test('[K16] tokens survive a restart', async () => {
    const app = await open()
    const agent = await app.agent('worker')
    await app.reopen()
    expect(await new Caller(app.app, agent.secret, agent.id, agent.handle).call('agent_me')).toMatchObject({ id: agent.id })
  })

  test.for([
    ['nothing', ''],
    ['a guess', 'sbx_agent_guess'],
    ['the hash of a token', 'hash'],
  ] as const)('[K16] %s is no token', async ([, secret]) => {
    const app = await open()
    const { hashOf } = await import('../capabilities/agent/index.ts')
    const caller = new Caller(app.app, secret === 'hash' ? hashOf(app.owner.secret) : secret, 'x', 'x')
    expect(await caller.refused('agent_me')).toMatchObject({ code: 'UNAUTHENTICATED' })
  })
})

describe('acting for an agent', () => {
  test('[K17] a person may, within the scope of the agent, and both are recorded', async () => {
    const app = await open()
    const [mine, other] = [await app.task(), await app.task()]
    const worker = await app.worker(mine.id)
    await app.owner.call('task_note', { task_id: mine.id, body: 'for you' }, { actFor: worker.handle })
    // Reads are written down a moment later, and may stand behind it.
    const noted = (await auditRows(app)).filter(({ tool }) => tool === 'task_note')
    expect(noted).toMatchObject([{ principal: worker.id, acting_person: app.owner.id }])
    expect(await app.events({ type: 'task.noted' })).toMatchObject([{ actor: worker.id }])
    expect(await app.owner.refused('task_note', { task_id: other.id, body: 'x' }, { actFor: worker.id })).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
    expect(await app.owner.refused('token_list', {}, { actFor: worker.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K17] an agent may not, and its attempt is in the audit', async () => {
    const app = await open()
    const [ann, bob] = [await app.agent('orchestrator'), await app.agent('orchestrator')]
    expect(await ann.refused('agent_me', {}, { actFor: bob.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    await app.reopen()
    expect((await auditRows(app)).at(-1)).toMatchObject({ principal: ann.id, tool: 'agent_me', outcome: 'refused' })
  })

  test('[K17] for an agent that nobody knows: AGENT_NOT_FOUND', async () => {
    const app = await open()
    expect(await app.owner.refused('agent_me', {}, { actFor: 'ghost' })).toMatchObject({ code: 'AGENT_NOT_FOUND' })
  })

  test('[K17] nobody gains by it: neither a low profile nor the default lane is raised', async () => {
    const app = await open()
    const operator = await app.agent('orchestrator', { profile: 'operator' })
    const task = await app.task()
    const viewer = await person(app, 'viewer')
    const more = { actFor: operator.id }
    expect(await viewer.refused('task_create', { title: 'x' }, more)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await viewer.call('agent_me', {}, more)).toMatchObject({ id: operator.id, profile: 'viewer' })
    expect(await app.owner.refused('task_create', { title: 'x' }, { ...more, lane: 'default' })).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
    const pair = await person(app, 'pair_worker')
    expect(await pair.refused('task_move', { task_id: task.id, status: 'IN_PROGRESS' }, more)).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K17] it ends with the token of the person', async () => {
    const app = await open()
    const agent = await app.agent('orchestrator')
    const pat = await person(app, 'maintainer')
    await pat.call('agent_me', {}, { actFor: agent.id })
    await app.owner.call('token_revoke', { person_id: pat.id })
    expect(await pat.refused('agent_me', {}, { actFor: agent.id })).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
  })
})

describe('scope', () => {
  const touch = defineTool({
    name: 'probe_touch',
    title: 'Probe',
    description: 'Ids in every place.',
    profile: 'viewer',
    impact: 'write',
    input: z.strictObject({
      task: TaskId.optional(),
      list: z.array(z.strictObject({ deep: z.strictObject({ task: TaskId.nullable() }) })).optional(),
      record: z.record(z.string(), TaskId).optional(),
      either: z.union([z.strictObject({ project: ProjectId }), z.strictObject({ task: TaskId })]).optional(),
      mention: mention(TaskId).optional(),
      mentions: z.array(mention(AgentId)).optional(),
      self: self(AgentId).optional(),
    }),
    output: z.strictObject({ input: z.record(z.string(), z.unknown()) }),
    run: async (_ctx, input) => ({ input }),
  })
  const read = defineTool({ ...touchReads(), name: 'probe_read' })

  function touchReads() {
    return {
      title: 'Probe',
      description: 'A read with ids.',
      profile: 'viewer',
      impact: 'read',
      input: z.strictObject({ task: TaskId, me: self(AgentId).optional() }),
      output: z.strictObject({ task: z.string() }),
      look: async (_ctx: unknown, input: { task: string }) => ({ task: input.task }),
    } as const
  }

  async function world() {
    const app = await open({ capabilities: withProbe([touch, read]) })
    const [mine, other] = [await app.task({ title: 'mine' }), await app.task({ title: 'other' })]
    return { app, mine, other, worker: await app.worker(mine.id) }
  }

  test('[K18] a worker acts on its own task only, in whatever place an id stands', async () => {
    const { app, mine, other, worker } = await world()
    const places = (task: string) => [
      { task },
      { list: [{ deep: { task: null } }, { deep: { task } }] },
      { record: { a: task } },
      { either: { task } },
    ]
    for (const input of places(mine.id)) expect(await worker.invoke('probe_touch', input)).toMatchObject({ ok: true })
    for (const input of places(other.id)) {
      expect(await worker.refused('probe_touch', input)).toMatchObject({
        code: 'PERMISSION_DENIED',
        message: expect.stringContaining('outside your task'),
      })
      expect(await app.owner.invoke('probe_touch', input)).toMatchObject({ ok: true })
    }
    const project = await app.project()
    expect(await worker.refused('probe_touch', { either: { project } })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K18] what is only mentioned must exist, and need not be its own', async () => {
    const { app, other, worker } = await world()
    const bob = await app.agent('worker')
    expect(await worker.invoke('probe_touch', { mention: other.id, mentions: [bob.id] })).toMatchObject({ ok: true })
    expect(await worker.refused('probe_touch', { mention: 'T-999' })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await worker.refused('probe_touch', { mentions: ['ghost'] })).toMatchObject({ code: 'AGENT_NOT_FOUND' })
  })

  test('[K18] an argument that says who the caller is must say the truth', async () => {
    const { app, worker, mine } = await world()
    const bob = await app.agent('worker')
    expect(await worker.invoke('probe_touch', { self: worker.handle })).toMatchObject({ ok: true })
    expect(await worker.refused('probe_touch', { self: bob.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await worker.refused('probe_read', { task: mine.id, me: bob.handle })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('probe_touch', { self: bob.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K18] reads are open, writes are not', async () => {
    const { other, worker } = await world()
    expect(await worker.call('probe_read', { task: other.id })).toEqual({ task: other.id })
  })

  test('[K18] without a task a worker acts on none, and when its task is taken away it loses it', async () => {
    const { app, mine, worker } = await world()
    const idle = await app.agent('worker')
    expect(await idle.refused('probe_touch', { task: mine.id })).toMatchObject({
      code: 'PERMISSION_DENIED',
      hint: expect.stringContaining('task_assign'),
    })
    await app.owner.call('task_assign', { task_id: mine.id, agent_id: null })
    expect(await worker.refused('probe_touch', { task: mine.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  })

  test('[K18] an agent of a project acts inside that project', async () => {
    const { app, mine } = await world()
    const { project_id } = await app.owner.call('project_create', { name: 'Elsewhere' })
    const inside = await app.agent('orchestrator', { project_id: mine.project_id })
    const outside = await app.agent('orchestrator', { project_id })
    expect(await inside.invoke('probe_touch', { task: mine.id })).toMatchObject({ ok: true })
    expect(await outside.refused('probe_touch', { task: mine.id })).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringContaining('project'),
    })
  })

  test('[K18] a supervisor without an epic acts on nothing', async () => {
    const { app, mine } = await world()
    const supervisor = await app.agent('supervisor')
    expect(await supervisor.refused('probe_touch', { task: mine.id })).toMatchObject({
      code: 'PERMISSION_DENIED',
      message: expect.stringContaining('epic'),
    })
  })

  test('[K19] handles are accepted wherever ids are, and the tool sees the id', async () => {
    const { app, mine, worker } = await world()
    const bob = await app.agent('worker')
    const input = {
      task: mine.handle,
      list: [{ deep: { task: mine.handle } }],
      record: { a: mine.handle },
      either: { task: mine.handle },
      mention: mine.handle,
      mentions: [bob.handle],
      self: worker.handle,
    }
    expect(await worker.call('probe_touch', input)).toEqual({
      input: {
        task: mine.id,
        list: [{ deep: { task: mine.id } }],
        record: { a: mine.id },
        either: { task: mine.id },
        mention: mine.id,
        mentions: [bob.id],
        self: worker.id,
      },
    })
    expect(await worker.call('probe_read', { task: mine.handle })).toEqual({ task: mine.id })
  })

  test('[K19] the id of another kind is refused by its looks', async () => {
    const { app, mine, worker } = await world()
    const project = await app.project()
    for (const task of [
      worker.id,
      project,
      worker.handle,
      'T-0',
      'T-01',
      't-1',
      ` ${mine.id}`,
      mine.id.toUpperCase(),
      mine.id.slice(0, -1),
    ]) {
      expect(await app.owner.refused('probe_touch', { task })).toMatchObject({ code: 'INVALID_INPUT' })
    }
    expect(await app.owner.refused('probe_touch', { self: mine.id })).toMatchObject({ code: 'INVALID_INPUT' })
  })
})

describe('audience', () => {
  const said = defineEvent('probe.said', z.strictObject({ text: z.string() }))
  const say = defineTool({
    name: 'probe_say',
    title: 'Probe',
    description: 'Says something to some.',
    profile: 'viewer',
    impact: 'write',
    input: z.strictObject({ text: z.string().max(20), to: z.string().max(64), project: ProjectId.optional() }),
    output: z.strictObject({}),
    async run(ctx, { text, to, project }) {
      ctx.emit(said({ subject: text, project, audience: to === 'everyone' || to === 'people' ? to : { only: to } }, { text }))
      return {}
    },
  })

  test('[K20] people-only events and private ones reach no other agent, by reading or by waiting', async () => {
    const app = await open({ capabilities: withProbe([say]) })
    const [ann, bob] = [await app.agent('orchestrator'), await app.agent('orchestrator')]
    const { cursor } = await ann.call('task_list')
    const waiting = bob.call('event_wait', { cursor, types: ['probe.said'] })
    await until(() => app.app.feed.waiters === 1)
    for (const [text, to] of [
      ['for people', 'people'],
      ['for ann', ann.id],
      ['for all', 'everyone'],
    ])
      await app.owner.call('probe_say', { text, to })
    const texts = (answer: { events: { subject: string }[] }) => answer.events.map((event) => event.subject)
    const read = async (caller: Caller) => texts(await caller.call('event_wait', { cursor, types: ['probe.said'] }))
    expect(texts(await waiting)).toEqual(['for all'])
    expect(await read(bob)).toEqual(['for all'])
    expect(await read(ann)).toEqual(['for ann', 'for all'])
    expect(await read(app.owner)).toEqual(['for people', 'for ann', 'for all'])
  })

  test('[K20] an agent of a project reads the log of its project, and what belongs to none', async () => {
    const app = await open({ capabilities: withProbe([say]) })
    const mine = await app.project()
    const { project_id: theirs } = await app.owner.call('project_create', { name: 'Theirs' })
    const ann = await app.agent('orchestrator', { project_id: mine })
    const { cursor } = await ann.call('task_list')
    for (const [text, project] of [
      ['mine', mine],
      ['theirs', theirs],
      ['free', undefined],
    ])
      await app.owner.call('probe_say', { text, to: 'everyone', project })
    const { events } = await ann.call('event_wait', { cursor, types: ['probe.said'] })
    expect(events.map((event: { subject: string }) => event.subject)).toEqual(['mine', 'free'])
  })

  test('[K20] who was invited, which token ended and which setting changed is for people', async () => {
    const app = await open()
    const { cursor } = await app.owner.call('task_list')
    const agent = await app.agent('worker')
    await app.owner.call('setting_update', { key: 'limits.agent_burst', value: 400 })
    await app.owner.call('token_revoke', { agent_id: (await app.agent('worker')).id })
    expect(await agent.call('event_wait', { cursor, timeout_seconds: 0.001 })).toMatchObject({ code: 'WAIT_TIMEOUT', events: [] })
    expect((await app.owner.call('event_wait', { cursor })).events.length).toBeGreaterThan(3)
  })
})
