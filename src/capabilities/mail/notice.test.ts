import { describe, expect, onTestFinished, test } from 'vitest'
import { tables } from '../../db/tables.ts'
import type { Capability } from '../../kernel/capability.ts'
import type { Harness } from '../../ports/harness.ts'
import type { Notifier } from '../../ports/notifier.ts'
import { Caller, onlyAnswering, openTestApp } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { deferred, until } from '../../testing/signals.ts'
import { type Wake, wake } from './index.ts'

const letter = (more: object = {}) => ({ subject: 'Platypus', body: 'Which port?', ...more })

/** Counts whom it is asked to wake, in the place of whoever does so. */
function waking() {
  const woken: [string, number][] = []
  const by: Wake = async (_ctx, agent, unread) => {
    woken.push([agent, unread])
    return 'soon'
  }
  return { woken, capabilities: onlyAnswering(wake, by) }
}

/** An agent of ours at work, that hears what it is told. */
async function atWork(harness: Partial<Harness> = {}, settings: Record<string, unknown> = {}, capabilities?: Capability[]) {
  const runner = new FakeRunner()
  const ports = { runner, git: new FakeGit(), harnesses: harnessesOf(fakeHarness(harness)) }
  const app = await openTestApp({ ports, effectTimes: QUICK, ...(capabilities ? { capabilities } : {}) })
  onTestFinished(() => app.close())
  const all = { 'runs.default_harness': 'fake', 'runs.max_lives': 1, 'mail.notice_seconds': 0, ...settings }
  for (const [key, value] of Object.entries(all)) await app.owner.call('setting_update', { key, value })
  const project_id = await app.project()
  await app.owner.call('repo_add', { path: '/repo', project_id })
  const task = await app.task()
  const runs = async () => (await app.owner.call('run_list', { task_id: task.id })).runs
  const start = async () => {
    const before = (await runs()).length
    await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent' })
    await until(async () => (await runs()).length > before && (await runs())[0].state === 'running')
    return (await runs())[0] as { id: string; agent_id: string }
  }
  const { id: run, agent_id } = await start()
  const told = (id = run) => runner.runs.get(id)?.inputs.map(({ data }) => data) ?? []
  return Object.assign(app, {
    project_id,
    runner,
    run,
    agent_id,
    start,
    told,
    ann: await app.agent('worker', { name: 'Ann', project_id }),
    /** With the token that its run was given. */
    agentItself: (id: string) => new Caller(app.app, runner.kept.get(`${id}/token`) as string, agent_id, 'worker-1'),
    async waiting() {
      const { effects } = await app.owner.call('effect_list', { states: ['waiting', 'running'] })
      return effects.filter(({ type }: { type: string }) => type === 'mail.notice')
    },
    /** As when its time has come. */
    async giveNow() {
      const input = { agent_id, hears: true }
      expect(await app.app.kernel.invoke({ tool: 'mail_notice', input, credential: 'system', surface: 'daemon' })).toMatchObject({
        ok: true,
      })
    },
    /** How many notices there were, delivered or not. */
    async said() {
      const { jobs } = await app.owner.call('job_list', { task_id: task.id })
      return jobs.filter(({ action }: { action: string }) => action === 'message_agent').length
    },
    /** Nothing of this kind is waiting or being done any more. */
    async settled() {
      await until(async () => {
        const { effects } = await app.owner.call('effect_list', { states: ['waiting', 'running'] })
        return !effects.some(({ type }: { type: string }) => type.startsWith('mail.'))
      })
    },
    async over(id: string) {
      runner.exit(id)
      await until(async () => (await app.owner.call('job_list', { task_id: task.id, states: ['queued', 'running'] })).jobs.length === 0)
    },
  })
}

describe('an agent that works', () => {
  test('[M13] is told in one line, without what others wrote', async () => {
    const app = await atWork()
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, importance: 'urgent' }))
    await until(() => app.told().length === 1)
    const [line = ''] = app.told()
    expect(line).toMatch(/^Signalbox: you have an unread letter, from ann, some of it urgent\. [^\n]*mail_inbox[^\n]*\n$/)
    expect(line).not.toMatch(/Platypus|port/)
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body: 'Another' }))
    await until(() => app.told().length === 2)
    expect(app.told()[1]).toContain('you have 2 unread letters, from ann')
    await app.settled()
    expect(app.told()).toHaveLength(2)
  })

  test('[M12] one run that writes the same to the same receiver again within a minute repeats itself, and is told so', async () => {
    const app = await atWork()
    const itself = app.agentItself(app.run)
    const to = letter({ to_agent_id: app.ann.id })
    const { mail_id } = await itself.call('mail_send', to)
    expect(await itself.refused('mail_send', to)).toMatchObject({ code: 'ALREADY_EXISTS', details: { mail_id } })
    for (const other of [{ ...to, body: 'Another' }, { ...to, subject: 'Other' }, letter({ to_human: true })])
      await itself.call('mail_send', other)
    // A person in its name is not the run.
    await app.owner.call('mail_send', to, { actFor: app.agent_id })
    await app.over(app.run)
    const next = await app.start()
    await app.agentItself(next.id).call('mail_send', to)
    await app.app.engine.write(async (tx) => {
      await tables<{ letters: { created_at: number } }>(tx)
        .updateTable('letters')
        .set({ created_at: Date.now() - 61_000 })
        .execute()
    })
    await app.agentItself(next.id).call('mail_send', to)
  })

  test('[M11] one that is refused costs nothing', async () => {
    const app = await atWork({}, { 'mail.per_minute': 1, 'mail.burst': 2 })
    const itself = app.agentItself(app.run)
    const to = letter({ to_agent_id: app.ann.id })
    await itself.call('mail_send', to)
    expect((await itself.refused('mail_send', to)).code).toBe('ALREADY_EXISTS')
    await itself.call('mail_send', { ...to, body: 'Second' })
    expect((await itself.refused('mail_send', { ...to, body: 'Third' })).code).toBe('RATE_LIMITED')
  })

  test('[M13] several letters while it was just told are one more notice', async () => {
    const app = await atWork({}, { 'mail.notice_seconds': 600 })
    const send = (body: string) => app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body }))
    await send('0')
    await until(() => app.told().length === 1)
    for (let n = 1; n <= 10; n++) await send(`${n}`)
    expect(await app.waiting()).toHaveLength(1)
    await app.giveNow()
    await until(() => app.told().length === 2)
    expect(app.told()[1]).toContain('you have 11 unread letters')
    await app.giveNow()
    expect(await app.said()).toBe(2)
  })

  test('[M13] what it has read by then it is not told of', async () => {
    const app = await atWork({}, { 'mail.notice_seconds': 600 })
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id }))
    await until(() => app.told().length === 1)
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body: 'Second' }))
    const itself = app.agentItself(app.run)
    for (const { id } of (await itself.call('mail_inbox')).letters) await itself.call('mail_read', { mail_id: id })
    await app.giveNow()
    expect(await app.said()).toBe(1)
  })

  test('[M13] of letters that come at the same time none is left out', async () => {
    const app = await atWork()
    const senders = [app.ann, ...(await Promise.all(Array.from({ length: 7 }, () => app.agent('worker', { project_id: app.project_id }))))]
    for (let round = 0; round < 4; round++) {
      await Promise.all(senders.map((sender) => sender.call('mail_send', letter({ to_agent_id: app.agent_id, body: `${round}` }))))
      await app.settled()
    }
    const unread = await tables<{ letters: { noticed_in: string | null } }>(app.app.engine.view).selectFrom('letters').selectAll().execute()
    expect(unread.map(({ noticed_in }) => noticed_in)).toEqual(Array.from({ length: 32 }, () => app.run))
  })

  test('[M13] also when the daemon was restarted before it could be told', async () => {
    const app = await atWork({}, { 'mail.notice_seconds': 2 })
    const send = (body: string) => app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body }))
    await send('0')
    await until(() => app.told().length === 1)
    await send('1')
    await app.reopen()
    await until(() => app.told().length === 2)
  })

  test('[M14] is told again in its next run, until it was told three times', async () => {
    // To be woken counts as well.
    const app = await atWork({}, {}, onlyAnswering(wake))
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id }))
    await until(() => app.told().length === 1)
    await app.over(app.run)
    for (const count of [1, 1, 0]) {
      const { id, agent_id } = await app.start()
      expect(agent_id).toBe(app.agent_id)
      await until(() => app.told(id).length === count)
      await app.settled()
      expect(app.told(id)).toHaveLength(count)
      await app.over(id)
    }
    // What comes then is news.
    const { id } = await app.start()
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body: 'Second' }))
    await until(() => app.told(id).length === 1)
    expect(app.told(id)[0]).toContain('2 unread letters')
  })

  test('[M14] one whose program takes no messages is left in peace', async () => {
    const app = await atWork({ can: { message: false, interrupt: false, resume: false, approve: false } })
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id }))
    await app.settled()
    expect(app.told()).toEqual([])
    const { jobs } = await app.owner.call('job_list', {})
    expect(jobs.map(({ action }: { action: string }) => action)).toEqual(['start_agent'])
  })
})

describe('an agent that is idle', () => {
  test('[M15] is woken by a letter, once; one that has never run is not', async () => {
    const { woken, capabilities } = waking()
    const app = await atWork({}, {}, capabilities)
    await app.over(app.run)
    await app.owner.call('mail_send', letter({ to_agent_id: app.ann.id }))
    await app.settled()
    expect(woken).toEqual([])
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id }))
    await until(() => woken.length === 1)
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id, body: 'Second' }))
    await until(() => woken.length === 2)
    await app.settled()
    expect(woken).toEqual([
      [app.agent_id, 1],
      [app.agent_id, 2],
    ])
  })

  test('[M15] also by what it was told of and did not read before its run ended', async () => {
    const { woken, capabilities } = waking()
    const app = await atWork({}, {}, capabilities)
    await app.ann.call('mail_send', letter({ to_agent_id: app.agent_id }))
    await until(() => app.told().length === 1)
    await app.settled()
    expect(woken).toEqual([])
    await app.over(app.run)
    await until(() => woken.length === 1)
    await app.settled()
    expect(woken).toEqual([[app.agent_id, 1]])
  })
})

describe('people', () => {
  type Told = { argv?: string[]; url?: string; letter: Record<string, unknown>; key?: string }

  /** The outside world, in which the first attempts fail. */
  function outside(fails = 0) {
    const told: Told[] = []
    let failures = fails
    const tell = async (one: Told) => {
      if (failures-- > 0) throw new Error('nobody there')
      told.push(one)
    }
    const notifier: Notifier = {
      run: (argv, input) => tell({ argv, letter: JSON.parse(input) }),
      post: (url, body, key) => tell({ url, key, letter: body as Record<string, unknown> }),
    }
    return { told, notifier }
  }

  async function open(notifier: Notifier, settings: Record<string, unknown>) {
    const app = await openTestApp({ ports: { notifier }, effectTimes: QUICK })
    onTestFinished(() => app.close())
    for (const [key, value] of Object.entries(settings)) await app.owner.call('setting_update', { key, value })
    return { app, ann: await app.agent('worker', { name: 'Ann' }) }
  }

  const URL = 'https://example.test/hook'

  test('[M17] are told by a command and by a webhook, though the first attempts fail', async () => {
    const { told, notifier } = outside(2)
    const { app, ann } = await open(notifier, { 'mail.notify_command': ['notify', '--now'], 'mail.notify_webhook': URL })
    const body = `Take sk-${'a'.repeat(30)} ${'x'.repeat(3_000)}`
    const { mail_id, thread_id } = await ann.call('mail_send', letter({ to_human: true, body, importance: 'high' }))
    await ann.call('mail_send', letter({ to_agent_id: (await app.agent('worker')).id }))
    await until(() => told.length === 2)
    const expected = { mail_id, thread_id, from: 'ann', to: 'human', subject: 'Platypus', importance: 'high', sent_at: expect.any(String) }
    expect(told.find(({ argv }) => argv)).toMatchObject({ argv: ['notify', '--now'], letter: expected })
    expect(told.find(({ url }) => url)).toMatchObject({ url: URL, key: mail_id, letter: expected })
    expect(told[0]?.letter.body).toMatch(/^Take \[redacted\] x{100}/)
    expect(String(told[0]?.letter.body).length).toBe(2_000)
    // A person that is answered is told too.
    await app.owner.call('mail_reply', { mail_id, body: '3001' })
    const { letters } = await ann.call('mail_inbox')
    await ann.call('mail_reply', { mail_id: letters[0].id, body: 'Thanks' })
    await until(() => told.length === 4)
    expect(told[2]?.letter).toMatchObject({ to: 'owner', subject: 'Re: Platypus' })
  })

  test('[M17] by default by nothing, and not of what was read meanwhile', async () => {
    const gate = deferred()
    const told: object[] = []
    const { app, ann } = await open(
      {
        run: async (_argv, input) => {
          told.push(JSON.parse(input))
          await gate.promise
          throw new Error('later')
        },
        post: async () => {},
      },
      {},
    )
    const types = async () => {
      const { effects } = await app.owner.call('effect_list', { states: ['waiting', 'running', 'done', 'dead', 'unknown'] })
      return effects.map(({ type }: { type: string }) => type)
    }
    await ann.call('mail_send', letter({ to_human: true }))
    expect(await types()).toEqual([])
    await app.owner.call('setting_update', { key: 'mail.notify_command', value: ['notify'] })
    const { mail_id } = await ann.call('mail_send', letter({ to_human: true, body: 'Second' }))
    await until(() => told.length === 1)
    await app.owner.call('mail_read', { mail_id })
    gate.resolve()
    await until(async () => (await app.owner.call('effect_list', { states: ['done'] })).effects.length === 1)
    expect(told).toHaveLength(1)
  })

  test('[M18] a webhook is https or of this machine', async () => {
    const { app } = await open(outside().notifier, {})
    for (const value of [
      'http://example.test/',
      'ftp://example.test/',
      'nonsense',
      'http://127.0.0.1.example.test/',
      'https://a:b@example.test/',
    ])
      expect((await app.owner.refused('setting_update', { key: 'mail.notify_webhook', value })).code).toBe('INVALID_INPUT')
    for (const value of ['http://127.0.0.1:9/x', 'http://localhost:9', 'http://[::1]:9', URL, ''])
      await app.owner.call('setting_update', { key: 'mail.notify_webhook', value })
    const agent = await app.agent('orchestrator', { profile: 'maintainer' })
    expect((await agent.refused('setting_update', { key: 'mail.notify_command', value: ['sh'] })).code).toBe('PERMISSION_DENIED')
  })
})
