import { describe, expect, onTestFinished, test } from 'vitest'
import type { Harness, HarnessEvent } from '../../ports/harness.ts'
import { openTestApp } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { inOneLine } from './words.ts'

const turn: HarnessEvent = { type: 'turn_started' }
const asks = (id: string, input: unknown = { command: 'npm publish' }, name = 'Bash'): HarnessEvent => ({
  type: 'approval_asked',
  id,
  name,
  input: typeof input === 'string' ? input : JSON.stringify(input),
})

/** An agent at work on a task, whose program asks what the test lets it. */
async function atWork(harness: Partial<Harness> = {}, settings: Record<string, unknown> = {}) {
  const runner = new FakeRunner()
  const app = await openTestApp({ ports: { runner, git: new FakeGit(), harnesses: harnessesOf(fakeHarness(harness)) }, effectTimes: QUICK })
  onTestFinished(() => app.close())
  for (const [key, value] of Object.entries({ 'runs.default_harness': 'fake', 'runs.max_lives': 1, ...settings }))
    await app.owner.call('setting_update', { key, value })
  const project_id = await app.project()
  await app.owner.call('repo_add', { path: '/repo', project_id })
  const begin = async () => {
    const task = await app.task()
    const options = { approvals: 'ask' }
    await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', options })
    const living = async () => (await app.owner.call('run_list', { task_id: task.id })).runs[0]
    await until(async () => (await living())?.state === 'running')
    return { task, run: (await living()).id as string }
  }
  const { task, run } = await begin()
  const all = async (more: object = {}) =>
    (await app.owner.call('approval_list', { states: ['pending', 'allowed', 'denied', 'expired', 'withdrawn'], limit: 200, ...more }))
      .approvals
  return Object.assign(app, {
    runner,
    own: task,
    run,
    begin,
    all,
    /** When there are so many of that state. */
    async are(state: string, count = 1) {
      const found = async () => (await all()).filter((approval: { state: string }) => approval.state === state)
      await until(async () => (await found()).length === count)
      return found()
    },
    decide: (approval_id: string, decision: string, message?: string) =>
      app.owner.call('approval_decide', { approval_id, decision, message }),
    /** What the program was told. */
    told: () => runner.runs.get(run)?.inputs.map(({ data }) => JSON.parse(data ?? '{}')) ?? [],
    async said(words: string) {
      return (await app.owner.call('transcript_search', { task_id: task.id, words })).entries
    },
  })
}

describe('an approval', () => {
  test('[AP1] what a program asks is a row, an event and an entry of its transcript; the same question again is the same one', async () => {
    const app = await atWork()
    app.runner.print(app.run, turn, asks('q1'))
    const [approval] = await app.are('pending')
    expect(approval).toMatchObject({
      handle: 'A-1',
      task_id: app.own.id,
      run_id: app.run,
      kind: 'agent_tool',
      tool: 'Bash',
      task: app.own.handle,
      task_title: 'Do it',
      title: 'Bash: npm publish',
      input: '{"command":"npm publish"}',
      delivered: false,
      decided_by: null,
    })
    expect(Date.parse(approval.expires_at) - Date.parse(approval.asked_at)).toBe(3_600_000)
    expect(await app.events({ type: 'approval.asked' })).toMatchObject([
      { subject: approval.id, task: app.own.id, data: { handle: 'A-1' } },
    ])
    expect(await app.said('asks for permission')).toMatchObject([{ kind: 'signalbox', name: 'Bash', turn: 1 }])
    app.runner.print(app.run, asks('q1'), asks('q2'))
    await app.are('pending', 2)
    expect((await app.all()).map(({ handle }: { handle: string }) => handle)).toEqual(['A-2', 'A-1'])
  })

  test('[AP2] only a person decides, and one of two who do so at once', async () => {
    const app = await atWork()
    app.runner.print(app.run, turn, asks('q1'))
    await app.are('pending')
    for (const role of ['worker', 'orchestrator', 'supervisor']) {
      const agent = await app.agent(role, { profile: 'maintainer' })
      expect(await agent.refused('approval_decide', { approval_id: 'A-1', decision: 'allow' })).toMatchObject({
        code: 'PERMISSION_DENIED',
        message: expect.stringContaining('only a person'),
      })
    }
    const answers = await Promise.all(
      ['allow', 'deny', 'allow', 'deny'].map((decision) => app.owner.invoke('approval_decide', { approval_id: 'A-1', decision })),
    )
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1)
    const refused = await app.owner.refused('approval_decide', { approval_id: 'A-1', decision: 'allow' })
    expect(refused).toMatchObject({ code: 'CONFLICT', message: expect.stringMatching(/^A-1 was (allowed|denied) already/) })
    await until(() => app.told().length === 1)
    expect(await app.events({ type: 'approval.decided' })).toHaveLength(1)
    const { calls } = await app.owner.call('audit_tail', { tool: 'approval_decide' })
    expect(calls.length).toBeGreaterThanOrEqual(8)
  })

  test('[AP3] the answer reaches the program once, with its words, and the transcript says who gave it', async () => {
    const app = await atWork()
    app.runner.print(app.run, turn, asks('q1'), asks('q2', { file_path: '/etc/hosts' }, 'Write'))
    await app.are('pending', 2)
    expect((await app.decide('A-2', 'deny', 'Not that file.')).approval).toMatchObject({ state: 'denied', decided_by: app.owner.id })
    await app.decide('A-1', 'allow')
    await until(() => app.told().length === 2)
    // Each names its question: which comes first is nobody's promise.
    expect(app.told()).toHaveLength(2)
    expect(app.told()).toEqual(
      expect.arrayContaining([
        { id: 'q2', allow: false, message: 'Not that file.' },
        { id: 'q1', allow: true, message: '' },
      ]),
    )
    await until(async () => (await app.all()).every(({ delivered }: { delivered: boolean }) => delivered))
    const { name } = await app.owner.call('agent_me')
    expect(await app.said('A-2 (Write)')).toMatchObject([{ kind: 'signalbox', body: `${name} denied A-2 (Write). Not that file.` }])
    expect(await app.said('allowed A-1')).toHaveLength(1)
    await app.reopen()
    app.runner.print(app.run, { type: 'text', from: 'agent', text: 'I go on' })
    await until(async () => (await app.said('I go on')).length === 1)
    expect(app.told()).toHaveLength(2)
  })

  test.for(['before it is written down', 'before it is sent', 'after it was sent'])('[AP3] the daemon may end %s', async (instant) => {
    const failing = { now: true }
    const honest = fakeHarness()
    const app = await atWork({
      decide: (...given) => {
        if (failing.now && instant === 'before it is written down') throw new Error('the daemon is gone')
        return honest.decide(...given)
      },
    })
    const send = app.runner.send.bind(app.runner)
    const tried = { times: 0 }
    app.runner.send = async (run, input) => {
      tried.times++
      if (failing.now && instant === 'before it is sent') return false
      const arrived = await send(run, input)
      if (failing.now && instant === 'after it was sent') throw new Error('the daemon is gone')
      return arrived
    }
    app.runner.print(app.run, turn, asks('q1'))
    await app.are('pending')
    await app.decide('A-1', 'allow')
    if (instant !== 'before it is written down') await until(() => tried.times > 0)
    await app.reopen(() => {
      failing.now = false
    })
    await until(() => app.told().length === 1)
    app.runner.print(app.run, { type: 'text', from: 'agent', text: 'I go on' })
    await until(async () => (await app.said('I go on')).length === 1)
    expect(app.told()).toEqual([{ id: 'q1', allow: true, message: '' }])
    expect(await app.said('allowed A-1')).toHaveLength(1)
    expect(await app.all()).toMatchObject([{ state: 'allowed', delivered: true }])
  })

  test('[AP3] a runner that takes nothing for a while gets the answer afterwards, and only then it is said to have arrived', async () => {
    const app = await atWork()
    const send = app.runner.send.bind(app.runner)
    const stands = { still: true, tried: 0 }
    app.runner.send = async (run, input) => {
      stands.tried++
      if (stands.still) throw new Error('no answer from the runner')
      return send(run, input)
    }
    app.runner.print(app.run, turn, asks('q1'))
    await app.are('pending')
    await app.decide('A-1', 'allow')
    await until(() => stands.tried > 1)
    expect(await app.all()).toMatchObject([{ state: 'allowed', delivered: false }])
    stands.still = false
    await until(async () => (await app.all())[0].delivered)
    expect(app.told()).toEqual([{ id: 'q1', allow: true, message: '' }])
  })

  test('[AP3] an answer to one question is never taken for one to another that took its place', async () => {
    const failing = { now: true }
    const honest = fakeHarness()
    const app = await atWork({
      decide: (...given) => {
        if (failing.now) throw new Error('not now')
        return honest.decide(...given)
      },
    })
    app.runner.print(app.run, turn, asks('q1', { command: 'ls' }))
    await app.are('pending')
    await app.decide('A-1', 'allow')
    app.runner.print(app.run, asks('q1', { command: 'rm -rf /' }))
    await app.are('withdrawn')
    failing.now = false
    await app.reopen()
    await app.decide('A-2', 'deny', 'No.')
    await until(() => app.told().length > 0)
    expect(app.told()).toEqual([{ id: 'q1', allow: false, message: 'No.' }])
  })

  test('[AP4] one that nobody answers in time is denied with a message that says so', async () => {
    const app = await atWork({}, { 'approvals.expire_minutes': 0.01 })
    app.runner.print(app.run, turn, asks('q1'))
    await app.are('expired')
    await until(() => app.told().length === 1)
    expect(app.told()).toMatchObject([{ id: 'q1', allow: false, message: expect.stringMatching(/^Nobody answered within 1 seconds?/) }])
    expect(await app.owner.refused('approval_decide', { approval_id: 'A-1', decision: 'allow' })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('A-1 has expired'),
    })
    expect(await app.events({ type: 'approval.expired' })).toHaveLength(1)
    expect(await app.said('A-1 (Bash) has expired')).toHaveLength(1)
  })

  test('[AP5] one that the program does not wait for any more is withdrawn', async () => {
    const app = await atWork()
    const result: HarnessEvent = { type: 'tool_result', id: 'q2', ok: false, output: 'never mind' }
    app.runner.print(app.run, turn, asks('q1'), asks('q2'), result)
    await app.are('pending')
    app.runner.print(app.run, asks('q3'))
    await app.are('pending', 2)
    app.runner.print(app.run, { ...result, id: 'q3' })
    await app.are('withdrawn')
    app.runner.print(app.run, { type: 'turn_ended', how: 'completed' })
    await app.are('withdrawn', 2)
    expect(await app.owner.refused('approval_decide', { approval_id: 'A-1', decision: 'allow' })).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining('A-1 was withdrawn'),
    })
    // What was asked before the turn ended is gone, what was asked in the next one is not, also when it is read at once.
    app.runner.print(app.run, turn, asks('q4'), { type: 'turn_ended', how: 'completed' }, turn, asks('q5'))
    expect(await app.are('pending')).toMatchObject([{ tool: 'Bash' }])
    app.runner.exit(app.run, 0)
    await app.are('withdrawn', 3)
    expect(await app.said('the run ended without an answer')).toHaveLength(1)
    expect(app.told()).toEqual([])
  })

  test('[AP5] also when only its harness knows', async () => {
    const app = await atWork({ decide: () => undefined })
    app.runner.print(app.run, turn, asks('q1'))
    await app.are('pending')
    await app.decide('A-1', 'allow')
    expect(await app.are('withdrawn')).toMatchObject([{ delivered: false, message: 'The program did not wait for the answer any more.' }])
  })

  test('[AP6] what is kept holds no secret and is bounded, whatever is printed', async () => {
    const app = await atWork()
    const secret = `sk-${'a'.repeat(30)}`
    const command = `curl -H 'x: ${secret}' ${'x'.repeat(40_000)}`
    const odd = asks('q2', `not { json ${secret}`, `N${'n'.repeat(300)}`)
    app.runner.print(app.run, turn, asks('q1', { command, api_key: 'hush' }), odd, asks('q3', { api_key: 'hush' }), asks('q'.repeat(600)))
    const [third, second, first] = await app.are('pending', 3)
    expect(first.input).not.toContain(secret)
    expect(first.input.length).toBeLessThan(17_000)
    expect(first.input).toMatch(/more characters are not shown\]$/)
    expect(first.title.length).toBeLessThanOrEqual(160)
    expect(second).toMatchObject({ input: 'not { json [redacted]' })
    expect(second.tool).toHaveLength(200)
    expect(third).toMatchObject({ input: '{"api_key":"[redacted]"}' })
  })

  test('[AP6] of a program that asks without end all but the first fifty are denied', async () => {
    const app = await atWork()
    app.runner.print(app.run, turn, ...Array.from({ length: 53 }, (_, i) => asks(`q${i}`)))
    await app.are('pending', 50)
    await app.are('denied', 3)
    await until(() => app.told().length === 3)
    expect(app.told()[0]).toMatchObject({ id: 'q50', allow: false, message: expect.stringContaining('50 other questions') })
  })

  test('[AP7] an agent sees those of its own task alone, in the list and in the log; people see all, in pages', async () => {
    const app = await atWork()
    const other = await app.begin()
    app.runner.print(app.run, turn, asks('q1'), asks('q2'))
    app.runner.print(other.run, turn, asks('q1'))
    await app.are('pending', 3)
    const worker = await app.worker((await app.task()).id)
    expect((await worker.call('approval_list')).approvals).toEqual([])
    expect(await worker.refused('approval_list', { task_id: app.own.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    for (const role of ['worker', 'orchestrator', 'supervisor'])
      expect((await (await app.agent(role)).call('approval_list')).approvals).toEqual([])
    expect((await (await app.agent('orchestrator')).call('approval_list', { task_id: app.own.id })).approvals).toEqual([])
    for (const agent of [worker, await app.agent('orchestrator'), await app.agent('supervisor')])
      expect(await agent.refused('approval_get', { approval_id: 'A-1' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect((await app.owner.call('approval_get', { approval_id: 'A-1' })).approval).toMatchObject({
      handle: 'A-1',
      input: '{"command":"npm publish"}',
    })
    const seen = async ({ secret }: { secret: string }) => {
      const found = await app.app.identity.authenticate(app.app.engine.view, secret)
      if (!found) throw new Error('not known')
      return app.app.feed.read(found.principal, undefined, { types: ['approval.*'] }, 100)
    }
    expect(await seen(worker)).toEqual([])
    expect(await seen(app.owner)).toHaveLength(3)
    const own = await seen({ secret: app.runner.kept.get(`${app.run}/token`) as string })
    expect(own.map(({ task }) => task)).toEqual([app.own.id, app.own.id])
    const first = await app.owner.call('approval_list', { limit: 2 })
    expect(first.approvals).toHaveLength(2)
    expect((await app.owner.call('approval_list', { limit: 2, before: first.next })).approvals).toHaveLength(1)
    expect(await app.all({ task_id: other.task.handle })).toMatchObject([{ task_id: other.task.id }])
    expect(await app.all({ project_id: await app.project() })).toHaveLength(3)
  })

  test('[AP8] a task whose agent asks waits for a human, and says what is asked', async () => {
    const app = await atWork()
    app.runner.print(app.run, turn, asks('q1', { command: 'npm\u202e publish\n--yes' }), asks('q2'))
    await app.are('pending', 2)
    const task = async () => (await app.owner.call('task_get', { task_id: app.own.id })).task
    expect(await task()).toMatchObject({
      attention: 'human',
      attention_detail: 'It asks for permission (A-1): Bash: npm publish --yes',
    })
    await app.decide('A-1', 'deny')
    await app.decide('A-2', 'allow')
    expect(await task()).toMatchObject({ attention: 'running' })
  })

  test('[AP8] in one line: what tells most of it', () => {
    expect(inOneLine({ name: 'Bash', input: '{"description":"x","command":["git","push"]}' })).toBe('Bash: git push')
    expect(inOneLine({ name: 'Edit', input: '{"file_path":"a.ts","old":"x"}' })).toBe('Edit: a.ts')
    expect(inOneLine({ name: 'Odd', input: 'plain\n\u001b[31mtext' })).toBe('Odd: plain [31mtext')
    expect(inOneLine({ name: 'Any', input: '{"a":1}' })).toBe('Any: {"a":1}')
  })
})
