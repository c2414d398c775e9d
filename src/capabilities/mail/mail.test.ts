import { describe, expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { tables } from '../../db/tables.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { withProbe } from '../../testing/probe.ts'
import { storeLetter } from './send.ts'

const letter = (more: object = {}) => ({ subject: 'Hi', body: 'Which port?', ...more })

async function annAndBob(app: TestApp) {
  const project_id = await app.project()
  return {
    ann: await app.agent('worker', { name: 'Ann', project_id }),
    bob: await app.agent('worker', { name: 'Bob', project_id }),
    project_id,
  }
}

/** The receivers' rows, as they are stored. */
const stored = (app: TestApp) =>
  tables<{ letters: { id: string; to_id: string; from_id: string; acked_at: number | null } }>(app.app.engine.view)
    .selectFrom('letters')
    .selectAll()
    .orderBy('id')
    .execute()

/** What only the epic's own tools write. */
async function inEpic(app: TestApp, epic: string, ...agents: Caller[]) {
  await app.app.engine.write(async (tx) => {
    for (const { id } of agents)
      await tables<{ agents: { id: string; epic_id: string } }>(tx)
        .updateTable('agents')
        .set({ epic_id: epic })
        .where('id', '=', id)
        .execute()
  })
}

describe('a letter', () => {
  test('[M1] is in the inbox and in the log when the call returns', async ({ app }) => {
    const { ann, bob, project_id } = await annAndBob(app)
    const sent = await ann.call('mail_send', letter({ to_agent_id: 'bob', importance: 'high' }))
    expect(sent).toEqual({
      mail_id: expect.stringMatching(/^mail_/),
      mail_ids: [sent.mail_id],
      thread_id: expect.stringMatching(/^thread_/),
      timestamp: expect.any(String),
    })
    const { letters, count, unread_count } = await bob.call('mail_inbox')
    expect([count, unread_count]).toEqual([1, 1])
    expect(letters).toMatchObject([
      {
        id: sent.mail_id,
        from: 'ann',
        from_id: ann.id,
        to: 'bob',
        subject: 'Hi',
        body: 'Which port?',
        cut: false,
        importance: 'high',
        read_at: null,
        project_id,
      },
    ])
    expect(await app.events({ type: 'mail.sent' })).toMatchObject([
      {
        actor: ann.id,
        subject: sent.mail_id,
        audience: { only: bob.id },
        data: { mail_id: sent.mail_id, to_agent_id: bob.id, is_for_human: false, subject: 'Hi', importance: 'high' },
      },
    ])
  })

  test('[M1] is sent once under one idempotency_key, and a refused one not at all', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const input = letter({ to_agent_id: bob.id, idempotency_key: 'a' })
    expect(await ann.call('mail_send', input)).toEqual(await ann.call('mail_send', input))
    expect((await ann.refused('mail_send', { ...input, body: 'Another' })).code).toBe('IDEMPOTENCY_MISMATCH')
    expect(await stored(app)).toHaveLength(1)
  })

  test('[M1] of Signalbox itself is written with the transaction of another tool, or not at all', async () => {
    const probe = defineTool({
      name: 'probe_letter',
      title: 'Probe',
      description: 'Writes a letter, and may then fail.',
      input: z.strictObject({ to: z.string().max(64), fail: z.boolean().default(false) }),
      output: z.strictObject({ mail_id: z.string() }),
      impact: 'write',
      profile: 'viewer',
      async run(ctx: RunContext, { to, fail }: { to: string; fail: boolean }) {
        const row = await storeLetter(ctx, { from: 'system', to, subject: 'x'.repeat(300), body: 'It failed.', importance: 'urgent' })
        if (fail) throw new Error('on purpose')
        return { mail_id: row.id }
      },
    })
    const app = await openTestApp({ capabilities: withProbe([probe]) })
    onTestFinished(() => app.close())
    const { bob, project_id } = await annAndBob(app)
    await app.owner.call('probe_letter', { to: bob.id })
    await app.owner.refused('probe_letter', { to: bob.id, fail: true })
    const { letters } = await bob.call('mail_inbox')
    expect(letters).toMatchObject([{ from: 'system', subject: 'x'.repeat(200), importance: 'urgent', project_id }])
    expect((await bob.refused('mail_reply', { mail_id: letters[0].id, body: 'why?' })).code).toBe('INVALID_INPUT')
  })

  test('[M2] names exactly one kind of receiver', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    for (const to of [{}, { to_human: false }, { to_agent_id: bob.id, to_human: true }, { to_role: 'worker', to_human: true }])
      expect((await ann.refused('mail_send', letter(to))).code).toBe('INVALID_INPUT')
    expect((await ann.refused('mail_send', letter({ to_agent_id: 'nobody' }))).code).toBe('AGENT_NOT_FOUND')
    expect((await ann.refused('mail_send', letter({ to_agent_id: ann.id }))).code).toBe('INVALID_INPUT')
    expect(await stored(app)).toEqual([])
  })

  test('[M2] to a role is a row for each of it in the epic of the sender, or in its project', async ({ app }) => {
    const { ann, bob, project_id } = await annAndBob(app)
    const cay = await app.agent('worker', { name: 'Cay', project_id })
    const supervisor = await app.agent('supervisor', { name: 'Sue', project_id })
    const { epic } = await app.owner.call('epic_create', { project_id, title: 'All of it', start: false })
    await inEpic(app, epic.id, ann, bob, supervisor)
    const { mail_ids, thread_id, mail_id } = await supervisor.call('mail_send', letter({ to_role: 'worker' }))
    expect(mail_id).toBe(mail_ids[0])
    expect((await stored(app)).map((row) => [row.id, row.to_id])).toEqual([
      [mail_ids[0], ann.id],
      [mail_ids[1], bob.id],
    ])
    for (const worker of [ann, bob]) expect((await worker.call('mail_inbox')).letters).toMatchObject([{ thread_id, epic_id: epic.id }])
    expect((await ann.call('mail_send', letter({ to_role: 'worker' }))).mail_ids).toHaveLength(1)
    expect((await cay.call('mail_send', letter({ to_role: 'supervisor' }))).mail_ids).toHaveLength(1)
    expect((await ann.refused('mail_send', letter({ to_role: 'reviewer' }))).code).toBe('AGENT_NOT_FOUND')
    expect((await cay.refused('mail_send', letter({ to_role: 'supervisor', epic_id: epic.id }))).code).toBe('PERMISSION_DENIED')
    expect((await app.owner.refused('mail_send', letter({ to_role: 'worker' }))).code).toBe('INVALID_INPUT')
    expect((await app.owner.call('mail_send', letter({ to_role: 'worker', project_id }))).mail_ids).toHaveLength(3)
    expect((await app.owner.call('mail_send', letter({ to_role: 'worker', epic_id: epic.handle, body: 'Again' }))).mail_ids).toHaveLength(2)
  })

  test('[M2] goes to no agent of another project, and to none of a role that has nothing to do any more', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const { project_id } = await app.owner.call('project_create', { name: 'Other' })
    const dan = await app.agent('worker', { name: 'Dan', project_id })
    expect((await ann.refused('mail_send', letter({ to_agent_id: dan.id }))).code).toBe('PERMISSION_DENIED')
    await app.owner.call('token_revoke', { agent_id: bob.id })
    expect((await ann.refused('mail_send', letter({ to_role: 'worker' }))).code).toBe('AGENT_NOT_FOUND')
    await app.owner.call('mail_send', letter({ to_agent_id: dan.id }))
    expect(await stored(app)).toHaveLength(1)
    expect(await ann.refused('mail_send', letter({ to_agent_id: bob.id }))).toMatchObject({ code: 'INVALID_AGENT_STATE' })
    const { mail_id } = await dan.call('mail_send', letter({ to_human: true }))
    const task = await app.task({ project_id })
    await app.owner.call('task_assign', { task_id: task.id, agent_id: dan.id })
    await app.owner.call('token_revoke', { agent_id: dan.id })
    await app.owner.call('mail_reply', { mail_id, body: 'It is yours again with its next token.' })
    await app.owner.call('task_close', { task_id: task.id, reason: 'enough' })
    expect(await app.owner.refused('mail_reply', { mail_id, body: 'Too late.' })).toMatchObject({ code: 'INVALID_AGENT_STATE' })
  })

  test('[M12] with the same text as before is sent: nothing shows that it is a repetition', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    for (const sender of [app.owner, ann]) for (const _ of [1, 2]) await sender.call('mail_send', letter({ to_agent_id: bob.id }))
    const { letters } = await bob.call('mail_inbox')
    for (const _ of [1, 2]) await bob.call('mail_reply', { mail_id: letters[0].id, body: 'Yes.' })
    expect([letters.length, (await ann.call('mail_inbox')).letters.length]).toEqual([4, 2])
  })

  test('[M11] comes from a token at a limited rate, also over a restart', async ({ app }) => {
    await app.owner.call('setting_update', { key: 'mail.per_minute', value: 1 })
    await app.owner.call('setting_update', { key: 'mail.burst', value: 3 })
    const { ann, bob } = await annAndBob(app)
    const nth = (n: number) => letter({ to_agent_id: bob.id, body: `${n}` })
    for (const n of [1, 2, 3]) await ann.call('mail_send', nth(n))
    // A refusal for another reason has cost nothing.
    const { code, details } = await ann.refused('mail_send', nth(4))
    expect(code).toBe('RATE_LIMITED')
    expect(details?.retry_after_seconds).toBeGreaterThan(30)
    expect(details?.retry_after_seconds).toBeLessThanOrEqual(60)
    await bob.call('mail_send', letter({ to_agent_id: ann.id }))
    await app.reopen()
    const again = await app.app.kernel.invoke({ tool: 'mail_send', input: nth(4), credential: { secret: ann.secret }, surface: 'http' })
    expect(again).toMatchObject({ ok: false, error: { code: 'RATE_LIMITED' } })
    expect(await stored(app)).toHaveLength(4)
  })

  test('[M11] to many more than a burst can be sent', async ({ app }) => {
    await app.owner.call('setting_update', { key: 'mail.per_minute', value: 1 })
    await app.owner.call('setting_update', { key: 'mail.burst', value: 2 })
    const { project_id } = await annAndBob(app)
    for (const name of ['Cay', 'Dan']) await app.agent('worker', { name, project_id })
    expect((await app.owner.call('mail_send', letter({ to_role: 'worker', project_id }))).mail_ids).toHaveLength(4)
    expect((await app.owner.refused('mail_send', letter({ to_human: true }))).code).toBe('RATE_LIMITED')
  })
})

describe('the inbox', () => {
  test('[M3] is shown in pages, newest first, and marks nothing', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.unshift((await ann.call('mail_send', letter({ to_agent_id: bob.id, body: `${n}` }))).mail_id)
    const seen: string[] = []
    let after: string | undefined
    do {
      const page = await bob.call('mail_inbox', { limit: 2, after })
      expect([page.unread_count, page.count]).toEqual([5, page.letters.length])
      seen.push(...page.letters.map(({ id }: { id: string }) => id))
      after = page.next ?? undefined
    } while (after)
    expect(seen).toEqual(ids)
    await bob.call('mail_read', { mail_id: ids[1] })
    const unread = await bob.call('mail_inbox')
    expect([unread.unread_count, unread.count]).toEqual([4, 4])
    const all = await bob.call('mail_inbox', { include_read: true })
    expect([all.unread_count, all.count]).toEqual([4, 5])
    expect(await ann.call('mail_inbox', { include_read: true })).toEqual({ count: 0, unread_count: 0, letters: [], next: null })
  })

  test('[M3] [M4] has long bodies cut; reading gives them whole', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const body = `${'😀'.repeat(999)}x${'😀'.repeat(2_000)}`
    const { mail_id } = await ann.call('mail_send', letter({ to_agent_id: bob.id, body }))
    const [shown] = (await bob.call('mail_inbox')).letters
    expect(shown.cut).toBe(true)
    expect(shown.body.length).toBe(2_000)
    expect(shown.body.isWellFormed()).toBe(true)
    expect((await bob.call('mail_read', { mail_id })).letter).toMatchObject({ body, cut: false })
  })
})

describe('reading', () => {
  test('[M4] [M9] marks a letter once, and its sender is told', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const { mail_id } = await ann.call('mail_send', letter({ to_agent_id: bob.id }))
    const first = await bob.call('mail_read', { mail_id })
    expect(first.letter).toMatchObject({ read_at: expect.any(String), read_by: bob.id, acked_at: null })
    expect(await bob.call('mail_read', { mail_id })).toEqual(first)
    expect(await app.events({ type: 'mail.read' })).toMatchObject([{ audience: { only: ann.id }, data: { mail_id, by: bob.id } }])
    const { events } = await ann.call('event_list', { types: ['mail.*'] })
    expect(events.map(({ type }: { type: string }) => type)).toEqual(['mail.read'])
  })

  test('[M4] is for the receiver alone', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const cay = await app.agent('orchestrator')
    const { mail_id } = await ann.call('mail_send', letter({ to_agent_id: bob.id }))
    for (const caller of [ann, cay, app.owner])
      for (const tool of ['mail_read', 'mail_ack']) expect((await caller.refused(tool, { mail_id })).code).toBe('PERMISSION_DENIED')
    expect((await bob.refused('mail_read', { mail_id: `mail_${'0'.repeat(36)}` })).code).toBe('RESOURCE_NOT_FOUND')
    expect((await bob.call('mail_inbox')).unread_count).toBe(1)
    // A person who acts for an agent does what it may, and is on record.
    const { letter: seen } = await app.owner.call('mail_read', { mail_id }, { actFor: bob.id })
    expect(seen.read_by).toBe(app.owner.id)
  })

  test('[M5] [M9] an acknowledgement is given once', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const { mail_id } = await ann.call('mail_send', letter({ to_agent_id: bob.id, needs_ack: true }))
    const first = await bob.call('mail_ack', { mail_id })
    expect(first).toEqual({ mail_id, acked_at: expect.any(String), acked_by: bob.id, before: false })
    const both = await Promise.all([bob.call('mail_ack', { mail_id }), bob.call('mail_ack', { mail_id })])
    expect(both).toEqual([
      { ...first, before: true },
      { ...first, before: true },
    ])
    expect((await bob.call('mail_inbox')).unread_count).toBe(0)
    expect(await app.events({ type: 'mail.acked' })).toMatchObject([{ audience: { only: ann.id }, data: { mail_id, by: bob.id } }])
    expect(await app.events({ type: 'mail.read' })).toHaveLength(1)
  })

  test('[M8] what is for the human is for every person, and read once', async ({ app }) => {
    const { ann } = await annAndBob(app)
    const invited = await app.owner.call('person_invite', { name: 'Bea', profile: 'viewer' })
    const bea = (tool: string, input: object = {}) =>
      app.app.kernel.invoke({ tool, input, credential: { secret: invited.token }, surface: 'http' })
    const { mail_id } = await ann.call('mail_send', letter({ to_human: true }))
    expect(await app.events({ type: 'mail.sent' })).toMatchObject([{ audience: 'people', data: { to_agent_id: null, is_for_human: true } }])
    expect((await app.owner.call('mail_inbox')).letters).toMatchObject([{ id: mail_id, to: 'human' }])
    expect(await bea('mail_ack', { mail_id })).toMatchObject({ ok: true })
    expect((await app.owner.call('mail_inbox')).unread_count).toBe(0)
    expect(await app.owner.call('mail_ack', { mail_id })).toMatchObject({ acked_by: invited.person_id, before: true })
    // Back to the person who answered; the others have no part in it.
    const { mail_id: answer } = await app.owner.call('mail_reply', { mail_id, body: '3001' })
    expect((await ann.call('mail_read', { mail_id: answer })).letter).toMatchObject({ from: 'owner', subject: 'Re: Hi' })
    await ann.call('mail_reply', { mail_id: answer, body: 'Thanks' })
    expect((await app.owner.call('mail_inbox')).letters).toMatchObject([{ to: 'owner', subject: 'Re: Hi', body: 'Thanks' }])
    expect(await bea('mail_inbox')).toMatchObject({ value: { unread_count: 0 } })
  })
})

describe('an answer', () => {
  test('[M6] goes to the sender, in the thread', async ({ app }) => {
    const { ann, bob } = await annAndBob(app)
    const { mail_id, thread_id } = await ann.call('mail_send', letter({ to_agent_id: bob.id }))
    const back = await bob.call('mail_reply', { mail_id, body: '3001', importance: 'low' })
    expect(back.thread_id).toBe(thread_id)
    expect((await ann.call('mail_inbox')).letters).toMatchObject([
      { id: back.mail_id, subject: 'Re: Hi', body: '3001', importance: 'low', in_reply_to: mail_id, thread_id, from: 'bob' },
    ])
    await ann.call('mail_reply', { mail_id: back.mail_id, body: 'Thanks' })
    expect((await bob.call('mail_inbox')).letters[0]).toMatchObject({ subject: 'Re: Hi' })
    for (const caller of [ann, app.owner, await app.agent('worker')])
      expect((await caller.refused('mail_reply', { mail_id, body: 'x' })).code).toBe('PERMISSION_DENIED')
    expect((await ann.refused('mail_reply', { mail_id: `mail_${'0'.repeat(36)}`, body: 'x' })).code).toBe('RESOURCE_NOT_FOUND')
  })

  test('[M7] the thread is what the caller sent and received', async ({ app }) => {
    const { ann, bob, project_id } = await annAndBob(app)
    const cay = await app.agent('worker', { name: 'Cay', project_id })
    const { mail_ids, thread_id } = await app.owner.call('mail_send', letter({ to_role: 'worker', project_id }))
    const answer = await ann.call('mail_reply', { mail_id: mail_ids[0], body: 'From Ann' })
    await bob.call('mail_reply', { mail_id: mail_ids[1], body: 'From Bob' })
    const bodies = async (caller: Caller, input: object) =>
      (await caller.call('mail_thread', { ...input })).letters.map((one: { body: string }) => one.body)
    expect(await bodies(ann, { mail_id: answer.mail_id })).toEqual(['Which port?', 'From Ann'])
    expect(await bodies(bob, { thread_id })).toEqual(['Which port?', 'From Bob'])
    expect(await bodies(cay, { thread_id })).toEqual(['Which port?'])
    expect(await bodies(app.owner, { thread_id })).toHaveLength(5)
    const first = await app.owner.call('mail_thread', { thread_id, limit: 3 })
    expect([first.letters.length, await bodies(app.owner, { thread_id, after: first.next })]).toEqual([3, ['From Ann', 'From Bob']])
    const dan = await app.agent('orchestrator')
    for (const input of [{ thread_id }, { mail_id: answer.mail_id }])
      expect((await dan.refused('mail_thread', input)).code).toBe('PERMISSION_DENIED')
    expect((await cay.refused('mail_thread', { mail_id: answer.mail_id })).code).toBe('PERMISSION_DENIED')
    for (const input of [{}, { thread_id, mail_id: answer.mail_id }])
      expect((await ann.refused('mail_thread', input)).code).toBe('INVALID_INPUT')
    expect((await ann.refused('mail_thread', { thread_id: `thread_${'0'.repeat(36)}` })).code).toBe('RESOURCE_NOT_FOUND')
  })
})

describe('what is private', () => {
  test('[M10] no agent finds a trace of a letter that is not its own', async ({ app }) => {
    const { ann, bob, project_id } = await annAndBob(app)
    const task = await app.task()
    const spies = [
      await app.worker(task.id),
      await app.agent('orchestrator', { project_id }),
      await app.agent('supervisor'),
      await app.agent('planner'),
      await app.agent('reviewer'),
    ]
    await app.owner.call('task_assign', { task_id: (await app.task()).id, agent_id: ann.id })
    const from = (await spies[0]?.call('event_list'))?.cursor
    const secret = 'platypus'
    const { mail_id } = await ann.call('mail_send', { to_agent_id: bob.id, subject: secret, body: secret })
    const human = await ann.call('mail_send', { to_human: true, subject: secret, body: secret })
    const answer = await bob.call('mail_reply', { mail_id, body: secret })
    await bob.call('mail_ack', { mail_id })
    const { task_id } = await ann.call('agent_me')
    for (const spy of spies) {
      const seen: unknown[] = []
      const ask = async (tool: string, input: object = {}) => {
        const found = await spy.invoke(tool, input)
        seen.push([tool, found])
        return found
      }
      await ask('mail_inbox', { include_read: true })
      for (const id of [mail_id, human.mail_id, answer.mail_id])
        for (const tool of ['mail_read', 'mail_ack', 'mail_thread'])
          expect(await ask(tool, { mail_id: id })).toMatchObject({ error: { code: 'PERMISSION_DENIED' } })
      expect(await ask('mail_reply', { mail_id, body: 'x' })).toMatchObject({ error: { code: 'PERMISSION_DENIED' } })
      expect(await ask('mail_inbox', { agent_id: bob.id })).toMatchObject({ error: { code: 'INVALID_INPUT' } })
      expect(await ask('mail_inbox', { filter: { to: bob.id } })).toMatchObject({ error: { code: 'INVALID_INPUT' } })
      expect(await ask('mail_inbox', {})).toMatchObject({ value: { count: 0, unread_count: 0 } })
      for (const filter of [{}, { types: ['mail.*'] }, { project_id }, { task_id }]) {
        await ask('event_list', filter)
        await ask('event_wait', { ...filter, cursor: from, timeout_seconds: 0.05 })
      }
      await ask('task_context', { task_id })
      await ask('task_get', { task_id })
      await ask('agent_list')
      await ask('audit_tail')
      await ask('audit_tail', { principal: ann.id })
      await ask('audit_tail', { principal: 'bob' })
      await ask('effect_list', { states: ['waiting', 'running', 'done', 'dead', 'unknown', 'dropped'] })
      const text = JSON.stringify(seen)
      // Its own calls, with the ids that it was given here, are in its own audit.
      expect(text).not.toContain(secret)
      expect(text).not.toContain('mail.sent')
      expect((await spy.refused('mail_inbox', {}, { actFor: bob.id })).code).toBe('PERMISSION_DENIED')
    }
    expect(JSON.stringify(await bob.call('event_list', { types: ['mail.*'] }))).toContain(secret)
    expect(JSON.stringify(await app.owner.call('event_list', { types: ['mail.sent'] }))).toContain(human.mail_id)
  })
})
