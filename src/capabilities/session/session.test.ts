import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { openTestApp, type TestApp } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { FakeTerminal } from '../../testing/fakes/terminal.ts'
import { until } from '../../testing/signals.ts'

interface World extends TestApp {
  terminal: FakeTerminal
  runner: FakeRunner
  git: FakeGit
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  pair(fields?: Record<string, unknown>): Promise<any>
  // biome-ignore lint/suspicious/noExplicitAny: see above
  session(task: string): Promise<any>
  prompt(task: string, wanted: string): Promise<void>
  state(task: string, wanted: string): Promise<void>
}

/** A terminal that does not open is given up after three attempts: with this time between them a test can look at it before. */
const SLOWLY = { ...QUICK, backOffMs: 3_000 }

async function open(effectTimes = QUICK): Promise<World> {
  const terminal = new FakeTerminal()
  const runner = new FakeRunner()
  const git = new FakeGit()
  const ports = { terminal, runner, git, harnesses: harnessesOf(fakeHarness()) }
  const app = await openTestApp({ ports, effectTimes })
  onTestFinished(() => app.close())
  await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
  await app.owner.call('repo_add', { path: '/repo', project_id: await app.project() })
  const session = async (task_id: string) => (await app.owner.call('session_exists', { task_id })).session
  return Object.assign(app, {
    terminal,
    runner,
    git,
    session,
    pair: (fields: Record<string, unknown> = {}) => app.task({ task_type: 'PAIR', ...fields }),
    prompt: (task: string, wanted: string) => until(async () => (await session(task)).prompt === wanted),
    state: (task: string, wanted: string) => until(async () => (await session(task)).state === wanted),
  })
}

const attention = async (app: TestApp, task_id: string) => (await app.owner.call('task_get', { task_id })).task

describe('to open a session', () => {
  test('[PS1] is for a PAIR task; the hint that the refusal gives works', async () => {
    const app = await open()
    const auto = await app.task()
    const refused = await app.owner.refused('session_open', { task_id: auto.id })
    expect(refused).toMatchObject({ code: 'INVALID_INPUT', next_tool: 'task_update' })
    await app.owner.call(refused.next_tool as string, refused.next_arguments)
    expect(await app.owner.call('session_open', { task_id: auto.id })).toMatchObject({ created: true, session: { state: 'open' } })
    expect(await app.owner.refused('job_submit', { task_id: auto.id, action: 'start_agent' })).toMatchObject({ next_tool: 'task_update' })
  })

  test('[PS1] is refused for a task that is done, that waits, or on which an agent still works', async () => {
    const app = await open()
    const done = await app.pair()
    await app.owner.call('task_close', { task_id: done.id, reason: 'x' })
    expect(await app.owner.refused('session_open', { task_id: done.id })).toMatchObject({ code: 'INVALID_TRANSITION' })
    const busy = await app.task()
    await app.owner.call('job_submit', { task_id: busy.id, action: 'start_agent' })
    await until(() => app.runner.living.length === 1)
    await app.owner.call('task_update', { task_id: busy.id, task_type: 'PAIR' })
    expect(await app.owner.refused('session_open', { task_id: busy.id })).toMatchObject({ code: 'CONFLICT' })
    const waits = await app.pair({ blocked_by: [busy.id] })
    expect(await app.owner.refused('session_open', { task_id: waits.id })).toMatchObject({ code: 'TASK_BLOCKED' })
    expect(app.terminal.opened).toEqual([])
  })

  test('[PS2] twice, or five times at once, is one session', async () => {
    const app = await open()
    const task = await app.pair()
    const all = await Promise.all(Array.from({ length: 5 }, () => app.owner.call('session_open', { task_id: task.id })))
    expect(all.filter(({ created }) => created)).toHaveLength(1)
    expect(new Set(all.map(({ session }) => session.id)).size).toBe(1)
    expect(app.terminal.opened).toHaveLength(1)
    expect((await app.owner.call('session_open', { task_id: task.id, program: 'shell' })).session).toMatchObject({ program: 'claude' })
  })

  test('[PS3] [PS6] makes worktree, identity, token and terminal, and answers with the command that attaches', async () => {
    const app = await open()
    const task = await app.pair({ title: 'Pair on it' })
    const { session } = await app.owner.call('session_open', { task_id: task.id, message: 'Begin with the tests.' })
    expect(session).toMatchObject({ state: 'open', name: task.handle, attach: `tmux -S /run/${task.handle}.tmux attach -t ${task.handle}` })
    expect(app.git.added).toHaveLength(1)
    const { spec } = app.terminal.of(session.id)
    expect(spec.cwd).toBe(app.git.added[0])
    const token = app.runner.kept.get(`${session.id}/token`) as string
    expect(JSON.stringify(spec)).not.toContain(token)
    const me = await app.app.kernel.invoke({ tool: 'agent_me', input: {}, credential: { secret: token }, surface: 'http' })
    expect(me).toMatchObject({ ok: true, value: { id: session.agent_id, role: 'worker', task_id: task.id } })
    await app.prompt(task.id, 'sent')
    const [prompt] = app.terminal.of(session.id).prompts
    expect(prompt).toContain('Pair on it')
    expect(prompt).toContain('Begin with the tests.')
    expect(await attention(app, task.id)).toMatchObject({ status: 'IN_PROGRESS', assignee_id: session.agent_id, attention: 'running' })
    const events = (await app.events({ subject: session.id })).map(({ type }) => type)
    expect(events).toEqual(['session.opening', 'session.opened', 'session.prompted'])
  })

  test('[PS3] a daemon that is stopped in between finds what its predecessor did', async () => {
    const app = await open(SLOWLY)
    const task = await app.pair()
    app.terminal.broken = 'not now'
    const opening = app.owner.invoke('session_open', { task_id: task.id })
    await until(() => app.runner.kept.size > 0)
    const tokens = [...app.runner.kept.values()]
    await app.reopen(() => {
      app.terminal.broken = undefined
    })
    await opening
    await app.state(task.id, 'open')
    await app.prompt(task.id, 'sent')
    await app.reopen()
    expect(app.terminal.opened).toHaveLength(1)
    expect([...app.runner.kept.values()]).toEqual(expect.arrayContaining(tokens))
    const { tokens: held } = await app.owner.call('token_list')
    expect(held.filter(({ kind }: { kind: string }) => kind === 'agent')).toHaveLength(1)
    expect(app.terminal.of((await app.session(task.id)).id).prompts).toHaveLength(1)
  })

  test('[PS4] says how to install what is not there, and what programs there are', async () => {
    const app = await open()
    const task = await app.pair()
    expect(await app.owner.refused('session_open', { task_id: task.id, program: 'codex' })).toMatchObject({
      hint: 'Install it: npm install codex',
    })
    expect(await app.owner.refused('session_open', { task_id: task.id, program: 'nano' })).toMatchObject({
      suggestions: ['claude', 'shell', 'codex'],
    })
    app.terminal.missing = { found: false, why: 'tmux is not on the PATH of the daemon.', install: 'apt-get install tmux' }
    const refused = await app.owner.refused('session_open', { task_id: task.id })
    expect(refused).toMatchObject({ code: 'INVALID_INPUT', hint: 'Install it: apt-get install tmux' })
    expect(await attention(app, task.id)).toMatchObject({ status: 'BACKLOG', assignee_id: null })
  })

  test('[PS4] [PS5] what cannot be opened is closed with the reason, without its token, and the task is back', async () => {
    const app = await open()
    const task = await app.pair()
    app.terminal.broken = 'no room for a terminal sk-abcdefghijklmnopqrst'
    const refused = await app.owner.refused('session_open', { task_id: task.id })
    expect(refused.message).toBe('It could not be opened: no room for a terminal [redacted]')
    expect(await app.session(task.id)).toMatchObject({ state: 'closed', attach: null, prompt: 'failed' })
    expect(await attention(app, task.id)).toMatchObject({ status: 'BACKLOG' })
    await expectTokenEnded(app)
    app.terminal.broken = undefined
    expect(await app.owner.call('session_open', { task_id: task.id })).toMatchObject({ created: true })
  })
})

describe('the first prompt', () => {
  test('[PS7] [PS13] a dialog is told to a person; when it is answered the prompt is sent', async () => {
    const app = await open()
    app.terminal.takesPrompts = false
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    app.terminal.change(session.id, { dialog: 'whether you trust this folder' })
    await app.prompt(task.id, 'needs_input')
    expect(await attention(app, task.id)).toMatchObject({
      attention: 'human',
      attention_detail: 'It asks whether you trust this folder. Attach and answer it.',
    })
    expect(app.terminal.of(session.id).prompts).toEqual([])
    app.terminal.change(session.id, { dialog: undefined, ready: true })
    await app.prompt(task.id, 'sent')
    expect(app.terminal.of(session.id).prompts).toHaveLength(1)
  })

  test.for([
    { state: 'not_verified' as const, says: 'Look whether the prompt was taken. It stood still.' },
    { state: 'failed' as const, says: 'The prompt was not sent: It stood still. Attach and tell it yourself.' },
  ])('[PS7] [PS13] is never called sent when it is $state', async ({ state, says }) => {
    const app = await open()
    app.terminal.delivery = { state, detail: 'It stood still.' }
    const task = await app.pair()
    await app.owner.call('session_open', { task_id: task.id })
    await app.prompt(task.id, state)
    expect(await attention(app, task.id)).toMatchObject({ attention: 'human', attention_detail: says })
  })

  test.for([
    { before: 'it was taken', prompts: true, outcome: 'sent' },
    { before: 'it was not', prompts: false, outcome: 'not_verified' },
  ])('[PS7] is not pasted again by another attempt, when $before', async ({ prompts, outcome }) => {
    const app = await open()
    app.terminal.takesPrompts = false
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    const text = app.runner.kept.get(`${session.id}/brief`) as string
    // As a daemon leaves it that is killed while it pastes.
    app.runner.kept.set(`${session.id}/prompt-begun`, 'effect_before 1')
    if (prompts) app.terminal.of(session.id).prompts.push(text)
    app.terminal.change(session.id, { ready: true })
    await app.prompt(task.id, outcome)
    expect(app.terminal.of(session.id).prompts).toHaveLength(prompts ? 1 : 0)
  })

  test('[PS7] a shell is told nothing', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id, program: 'shell' })
    expect(session).toMatchObject({ prompt: 'none' })
    expect(app.runner.kept.has(`${session.id}/brief`)).toBe(false)
  })
})

describe('a session that goes on', () => {
  test('[PS6] session_exists asks the terminal', async () => {
    const app = await open()
    const task = await app.pair()
    expect(await app.owner.call('session_exists', { task_id: task.id })).toMatchObject({ exists: false, session: null })
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    await until(() => app.terminal.followed.has(session.id))
    app.terminal.of(session.id).state = { state: 'running', attached: 2 }
    expect(await app.owner.call('session_exists', { task_id: task.id })).toMatchObject({ exists: true, attached: 2 })
    // Behind the back of whoever follows it: the row is not yet another one.
    app.terminal.of(session.id).state = { state: 'absent' }
    expect(await app.owner.call('session_exists', { task_id: task.id })).toMatchObject({ exists: false, session: { state: 'open' } })
  })

  test('[PS9] is read as text without secrets; with its mark the answer comes when it changes', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    app.terminal.change(session.id, { text: 'token sbx_agent_aaaaaaaaaaaaaaaaaaaaaaaaaaaa here' })
    const first = await app.owner.call('session_read', { task_id: task.id })
    expect(first).toMatchObject({ screen: 'token [redacted] here', state: 'open' })
    expect(await app.owner.call('session_read', { task_id: task.id, unlike: first.mark, wait_seconds: 0 })).toMatchObject({
      mark: first.mark,
    })
    const next = app.owner.call('session_read', { task_id: task.id, unlike: first.mark })
    app.terminal.change(session.id, { text: 'another' })
    expect(await next).toMatchObject({ screen: 'another' })
    expect(await app.owner.refused('session_read', { task_id: (await app.pair()).id })).toMatchObject({ next_tool: 'session_open' })
  })

  test('[PS10] people type, no agent does, nor reads that of another; an agent opens no shell', async () => {
    const app = await open()
    const task = await app.pair()
    const other = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    const agent = app.runner.kept.get(`${session.id}/token`) as string
    const as = (secret: string, tool: string, input: object) =>
      app.app.kernel.invoke({ tool, input, credential: { secret }, surface: 'http' })
    const words = { task_id: task.id, text: 'hello', keys: ['Enter'] }
    expect(await as(agent, 'session_type', words)).toMatchObject({ ok: false, error: { code: 'PERMISSION_DENIED' } })
    expect(await as(agent, 'session_read', { task_id: task.id })).toMatchObject({ ok: true })
    expect(await app.owner.call('session_type', words)).toEqual({ typed: true })
    expect(app.terminal.of(session.id).typed).toEqual([{ text: words.text, keys: words.keys }])
    const stranger = await app.worker(other.id)
    for (const tool of ['session_type', 'session_close', 'session_open'])
      expect(await stranger.refused(tool, tool === 'session_type' ? words : { task_id: task.id })).toMatchObject({
        code: 'PERMISSION_DENIED',
      })
    expect(await stranger.refused('session_read', { task_id: task.id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    const above = await app.agent('orchestrator', { project_id: await app.project() })
    expect(await above.call('session_read', { task_id: task.id })).toMatchObject({ state: 'open' })
    expect(await above.refused('session_type', words)).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await stranger.refused('session_open', { task_id: other.id, program: 'shell' })).toMatchObject({
      message: 'Only a person opens a shell.',
    })
    expect(await app.owner.refused('session_type', { ...words, keys: ['M-x'] })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('session_type', { task_id: task.id })).toMatchObject({ message: 'Give text or keys.' })
  })

  test('[PS11] what is typed is told without its words; what cannot be typed is refused', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    await app.owner.call('session_type', { task_id: task.id, text: 'hunter2', keys: ['Enter'] })
    const [event] = await app.events({ type: 'session.typed' })
    expect(event?.data).toMatchObject({ characters: 7, keys: ['Enter'], by: app.owner.id, problem: null })
    expect(JSON.stringify(event)).not.toContain('hunter2')
    const { calls } = await app.owner.call('audit_tail', { tool: 'session_type' })
    expect(JSON.stringify(calls)).toContain('[9 characters]')
    expect(JSON.stringify(calls)).not.toContain('hunter2')
    await until(() => app.terminal.followed.has(session.id))
    app.terminal.of(session.id).state = { state: 'ended', how: 'code 0', screen: '' }
    expect(await app.owner.refused('session_type', { task_id: task.id, text: 'x' })).toMatchObject({
      code: 'CONFLICT',
      message: 'Nothing runs in that terminal.',
    })
  })
})

describe('the end of a session', () => {
  test('[PS5] [PS12] to close it ends the terminal and the token, and keeps the worktree', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    await app.prompt(task.id, 'sent')
    const { works } = await app.owner.call('work_list')
    expect(works[0]).toMatchObject({ reason: expect.stringContaining('terminal') })
    app.terminal.change(session.id, { text: 'the last words' })
    const closed = await app.owner.call('session_close', { task_id: task.id })
    expect(closed).toMatchObject({ closed: true, session: { state: 'closed', reason: 'It was closed.', attach: null } })
    expect(app.terminal.living).toEqual([])
    await expectTokenEnded(app)
    expect(await app.owner.call('session_read', { task_id: task.id })).toMatchObject({ state: 'closed', screen: 'the last words' })
    expect((await app.owner.call('work_list')).works).toHaveLength(1)
    expect(await attention(app, task.id)).toMatchObject({ status: 'IN_PROGRESS', attention: 'human' })
    expect(await app.owner.refused('session_close', { task_id: task.id })).toMatchObject({ next_tool: 'session_open' })
    const again = await app.owner.call('session_open', { task_id: task.id })
    expect(again.session.agent_id).toBe(session.agent_id)
    expect(again.session.id).not.toBe(session.id)
  })

  test('[PS8] [PS13] a terminal that is gone is lost, and a person is told how to go on', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    app.terminal.change(session.id, { state: { state: 'absent' } })
    await app.state(task.id, 'lost')
    expect(await attention(app, task.id)).toMatchObject({ attention: 'human', attention_detail: expect.stringContaining('Open it again') })
    await expectTokenEnded(app)
    // What its tree left behind.
    await until(() => app.terminal.closed.includes(session.id))
    expect(await app.owner.call('session_open', { task_id: task.id })).toMatchObject({ created: true })
  })

  test('[PS8] also when it went while no daemon was there; one that is there goes on', async () => {
    const app = await open()
    const [gone, stays] = [await app.pair(), await app.pair()]
    const { session } = await app.owner.call('session_open', { task_id: gone.id })
    await app.owner.call('session_open', { task_id: stays.id })
    await app.prompt(stays.id, 'sent')
    await app.reopen(() => app.terminal.sessions.delete(session.id))
    await app.state(gone.id, 'lost')
    expect(await app.session(stays.id)).toMatchObject({ state: 'open' })
  })

  test('[PS8] a program that ended is no lost terminal: how it ended is told, and its last screen', async () => {
    const app = await open()
    const task = await app.pair()
    const { session } = await app.owner.call('session_open', { task_id: task.id })
    app.terminal.change(session.id, { state: { state: 'ended', how: 'code 1', screen: 'cannot reach the network' } })
    await app.state(task.id, 'closed')
    expect(await app.session(task.id)).toMatchObject({ reason: 'Its program ended with code 1.' })
    expect(await app.owner.call('session_read', { task_id: task.id })).toMatchObject({ screen: 'cannot reach the network' })
    await until(() => app.terminal.closed.includes(session.id))
  })

  test.for([
    ['is done', (app: TestApp, task_id: string) => app.owner.call('task_close', { task_id, reason: 'enough' })],
    ['is deleted', (app: TestApp, task_id: string) => app.owner.call('task_delete', { task_id })],
    ['becomes AUTO', (app: TestApp, task_id: string) => app.owner.call('task_update', { task_id, task_type: 'AUTO' })],
  ] as const)('[PS12] it ends when its task %s', async ([, act]) => {
    const app = await open()
    const task = await app.pair()
    await app.owner.call('session_open', { task_id: task.id })
    await act(app, task.id)
    await until(() => app.terminal.living.length === 0)
    await expectTokenEnded(app)
  })

  test('[PS12] one that is closed while it is being opened has no terminal', async () => {
    const app = await open(SLOWLY)
    const task = await app.pair()
    app.terminal.broken = 'not yet'
    const opening = app.owner.invoke('session_open', { task_id: task.id })
    await until(async () => (await app.session(task.id))?.state === 'opening')
    const closing = app.owner.call('session_close', { task_id: task.id })
    await until(async () => (await app.events({ type: 'session.closing' })).length === 1)
    app.terminal.broken = undefined
    expect(await closing).toMatchObject({ closed: true })
    await opening
    expect(app.terminal.living).toEqual([])
    await expectTokenEnded(app)
  })
})

async function expectTokenEnded(app: TestApp): Promise<void> {
  const living = async () =>
    (await app.owner.call('token_list')).tokens.filter(
      ({ kind, ended_at }: { kind: string; ended_at: string | null }) => kind === 'agent' && !ended_at,
    )
  await until(async () => (await living()).length === 0)
}

describe.runIf(inject('postgres'))('daemons that share a database', () => {
  test('[PS7] [PS11] each prompts and types in its own terminals, whoever was asked', async () => {
    const app = await open()
    const ports = { terminal: new FakeTerminal(), runner: new FakeRunner(), git: app.git, harnesses: harnessesOf(fakeHarness()) }
    const other = await openTestApp({ database: app.database, hostName: 'there:/b', ports, effectTimes: QUICK })
    onTestFinished(() => other.close())
    for (let i = 0; i < 6; i++) {
      const task = await app.pair()
      await app.owner.call('session_open', { task_id: task.id, message: 'Begin.' })
      await app.prompt(task.id, 'sent')
      expect(await app.owner.call('session_type', { task_id: task.id, text: 'x' })).toEqual({ typed: true })
    }
  })
})
