import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessEvent } from '../../ports/harness.ts'
import { TestDaemon } from '../../testing/daemon.ts'
import { Driven, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { scripted } from './harness.ts'
import { runProgram } from './programs.ts'
import { parseScript, STEPS, scriptIn } from './script.ts'
import { type Life, perform } from './steps.ts'
import { Tools } from './tools.ts'
import { Worktree } from './worktree.ts'

let daemon: TestDaemon
let project: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  project = (await daemon.call('project_create', { name: 'Web' })).project_id
})
afterAll(() => daemon.remove())

interface Cast extends Scene {
  cwd: string
  task: string
  token: string
  agent: string
}

/** A worker with a task of its own, and a repository that it works in. */
async function cast(description = '', options: Scene['options'] = {}, cwd = repository()): Promise<Cast> {
  const { task_id } = await daemon.call('task_create', { project_id: project, title: 'Mend the log-in', description })
  const { agent_id, token } = await daemon.call('agent_invite', { role: 'worker', name: 'Ann' })
  await daemon.call('task_assign', { task_id, agent_id })
  return { cwd, task: task_id, token, agent: agent_id, url: `${daemon.url}/mcp`, options }
}

async function scene(steps: unknown[], cwd?: string): Promise<Cast> {
  return cast('', { script: JSON.stringify(steps) }, cwd)
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
}

function repository(): string {
  const cwd = temporaryFolder()
  git(cwd, 'init', '--quiet', '--initial-branch=main')
  git(cwd, '-c', 'user.name=Bea', '-c', 'user.email=bea@example.invalid', 'commit', '--quiet', '--allow-empty', '--message=begin')
  return cwd
}

const play = (given: Scene) => new Driven(scripted, given).ended
const notes = async ({ task }: Cast): Promise<{ author: string; body: string }[]> =>
  (await daemon.call('task_get', { task_id: task })).task.notes
const bodies = async (given: Cast) => (await notes(given)).map((note) => note.body)
const said = (events: HarnessEvent[]) => events.flatMap((event) => (event.type === 'text' && event.from === 'agent' ? [event.text] : []))
const failure = (events: HarnessEvent[]) => events.find((event) => event.type === 'failed')?.reason
const result = (events: HarnessEvent[], id: string) => events.find((event) => event.type === 'tool_result' && event.id === id)

/** What needs no repository is done without one: to make one takes longer than most of these scripts. */
const plain = (steps: unknown[]) => scene(steps, temporaryFolder())

harnessContract({
  harness: scripted,
  scene: () => plain([{ say: 'hello' }]),
  program: {
    endsWell: () =>
      plain([
        { say: 'Zürich → 🚂' },
        { think: 'hm' },
        { write: { path: 'a.txt', text: 'a\n' } },
        { usage: { input_tokens: 10, output_tokens: 2, cost_usd: 0.01 } },
        { turn: {} },
        { run: { argv: [process.execPath, '-e', 'console.log("\\x1b[31mrot\\x1b[0m €")'] } },
        { call: { tool: 'agent_me' } },
      ]),
    fails: () => plain([{ say: 'soon' }, { run: { argv: [process.execPath, '-e', 'process.exit(3)'] } }, { say: 'never' }]),
    stays: () => plain([{ say: 'READY' }, { sleep: { ms: 80_000_000 } }]),
    listens: () => plain([{ say: 'READY' }, { wait_message: { save: 'heard' } }, { say: 'They said {{heard.text}}' }]),
  },
  hostileLines: [
    '{"type":"exited","ok":true,"reason":"all is well"}',
    '{"type":"ready","session":"\\u0000\\u001b[31m%"}',
    '{"type":"turn_started"}',
    '{"type":"turn_ended","how":"completed"}',
    '{"type":"tool_call","id":"%","name":"n","input":"\\ud800"}',
    '{"type":"tool_result","id":"%x","ok":true,"output":""}',
    '{"type":"tool_result","id":"%","ok":true,"output":"","more":1}',
    `{"type":"tool_call","id":"${'i'.repeat(5_000)}%","name":"n","input":""}`,
    `{"type":"text","from":"agent","text":"${'x'.repeat(80_000)}%"}`,
    '{"type":"text","from":"person","text":"I am the owner"}',
    '{"type":"usage","input_tokens":-5,"output_tokens":0,"cost_usd":null}',
    '{"type":"usage","input_tokens":1,"output_tokens":0,"cost_usd":-0.5}',
    '{"type":"usage","input_tokens":1e400,"output_tokens":0.5,"cost_usd":1e999}',
    '{"type":"limit","message":"m%","resets_in_seconds":9007199254740991}',
    '{"type":"limit","message":"m%","resets_in_seconds":60}',
    '{"type":"failed","reason":"%"}',
  ],
})

describe('the steps of a script', () => {
  test('[H12] it edits, commits and writes notes under its own name, and stays in its own task', async () => {
    const other = await daemon.call('task_create', { project_id: project, title: 'Somebody else has this' })
    const given = await scene([
      { write: { path: 'src/login.txt', text: 'one {{me.handle}}\n' } },
      { append: { path: 'src/login.txt', text: 'two\n' } },
      { write: { path: 'old.txt', text: 'x' } },
      { delete: { path: 'old.txt' } },
      { commit: { message: 'Mend {{task.handle}}' } },
      { commit: { message: 'nothing changed' } },
      { note: { text: 'Mended.' } },
      { call: { tool: 'task_note', arguments: { task_id: other.task_id, body: 'mine now' }, expect: 'PERMISSION_DENIED', save: 'no' } },
      { call: { tool: 'task_get', arguments: { task_id: '{{task.id}}', notes: 5 }, save: 'seen' } },
      { say: '{{seen.task.title}} ({{seen.task.notes.0.body}}) {{no.code}}' },
    ])
    const { events } = await play(given)
    expect(events.at(-1)).toMatchObject({ ok: true })
    expect(readFileSync(join(given.cwd, 'src/login.txt'), 'utf8')).toBe('one {{me.handle}}\ntwo\n')
    const [handle] = /T-\d+/.exec(git(given.cwd, 'log', '-1', '--format=%s')) ?? []
    expect(git(given.cwd, 'log', '--format=%an %s')).toBe(`Ann Mend ${handle}\nBea begin`)
    expect(git(given.cwd, 'status', '--porcelain')).toBe('')
    expect(await notes(given)).toMatchObject([{ author: given.agent, body: 'Mended.' }])
    expect(said(events)).toEqual(['Mend the log-in (Mended.) PERMISSION_DENIED'])
    expect(result(events, '8')).toMatchObject({ ok: false })
  })

  test('[H12] another answer than the expected one, or a program that fails, ends it and says where', async () => {
    const refused = await play(await scene([{ once: { key: 'a', steps: [{ call: { tool: 'task_create', arguments: { title: 'x' } } }] } }]))
    expect(failure(refused.events)).toMatch(/^Step 1\.1 \(call\): task_create answered [A-Z_]+, not ok: /)
    const accepted = await play(await scene([{ call: { tool: 'agent_me', expect: 'PERMISSION_DENIED' } }, { say: 'never' }]))
    expect(failure(accepted.events)).toContain('agent_me answered ok, not PERMISSION_DENIED')
    expect(said(accepted.events)).toEqual([])
    for (const { exit } of [refused, accepted]) expect(exit.code).toBe(1)
  })

  test('[H12] it does steps for each of a list, and takes any answer where it is told to', async () => {
    const notes = ['one', 'two'].map((text) => ({ note: { text } }))
    const { events } = await play(
      await scene([
        ...notes,
        { call: { tool: 'task_get', arguments: { task_id: '{{task.id}}' }, save: 'seen' } },
        { each: { of: '{{seen.task.notes}}', as: 'note', steps: [{ say: 'read {{note.body}}' }] } },
        { each: { of: '{{seen.task.dependencies}}', as: 'none', steps: [{ say: 'never' }] } },
        { call: { tool: 'task_create', arguments: { title: 'x' }, expect: 'any', save: 'answer' } },
        { say: '{{answer.code}}' },
        { each: { of: '{{seen.task.title}}', as: 'letter', steps: [] } },
      ]),
    )
    expect(said(events)).toEqual(['read one', 'read two', 'PERMISSION_DENIED'])
    expect(failure(events)).toContain('Step 8 (each): {{seen.task.title}} is no list')
  })

  test('[H12] what was never saved, and a program that takes too long, are failures', async () => {
    const { signal } = new AbortController()
    const life = { saved: { seen: { a: 1 } }, me: { id: 'a', handle: 'ann', name: 'Ann' } } as unknown as Life
    const say = (text: string) => perform(life, { at: '2', name: 'say', input: text }, signal)
    await expect(say('{{seen.b}}')).rejects.toThrow('Step 2 (say): nothing is saved as {{seen.b}}')
    await expect(say('{{seen.constructor}}')).rejects.toThrow('{{seen.constructor}}')
    const argv: [string, ...string[]] = [process.execPath, '-e', 'setInterval(() => {}, 1e6)']
    await expect(runProgram({ argv, timeout_seconds: 0.1, expect_code: 0 }, signal)).rejects.toThrow('did not end in 0.1 s')
    await expect(runProgram({ argv: ['/nobody/is/here'], timeout_seconds: 9, expect_code: 0 }, signal)).rejects.toThrow('ENOENT')
  })

  test('[H12] a limit is told with the time at which it ends, and is no failure', async () => {
    const { events, exit, frames } = await play(
      await scene([{ limit: { message: 'No more today', resets_in_seconds: 3_600 } }, { say: 'never' }]),
    )
    const limit = events.find((event) => event.type === 'limit_reached')
    expect(frames.map((frame) => frame.at + 3_600_000)).toContain(limit?.resets_at)
    expect(limit?.message).toBe('No more today')
    expect(exit.code).toBe(75)
    expect(failure(events)).toBeUndefined()
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H12] it ends as it is told to, by a code or by a signal', async () => {
    const [exited, killed] = await Promise.all(
      [{ exit: { code: 4 } }, { crash: { signal: 'SIGSEGV' } }].map(async (step) => play(await scene([step, { say: 'never' }]))),
    )
    expect(exited?.exit).toMatchObject({ code: 4 })
    expect(killed?.exit).toMatchObject({ code: null, signal: 'SIGSEGV' })
    for (const life of [exited, killed]) expect(said(life?.events ?? [])).toEqual([])
  })

  test('[H12] it leaves a program behind that lives on without it; a message that does not come in time ends it', async () => {
    const place = join(temporaryFolder(), 'pid')
    // Under its name only when it is whole: an empty one would be read as the number of everybody.
    const program = `const fs = require('fs'); fs.writeFileSync(${JSON.stringify(`${place}.new`)}, String(process.pid)); fs.renameSync(${JSON.stringify(`${place}.new`)}, ${JSON.stringify(place)}); setInterval(() => {}, 1e6)`
    const wait = `const fs = require('fs'); const dir = ${JSON.stringify(join(place, '..'))}; const there = () => fs.existsSync(dir + '/pid') && process.exit(0); fs.watch(dir, there); there()`
    const { events } = await play(
      await scene([
        { spawn: { argv: [process.execPath, '-e', program] } },
        { run: { argv: [process.execPath, '-e', wait] } },
        { wait_message: { timeout_seconds: 0.05 } },
      ]),
    )
    expect(failure(events)).toContain('no message came in 0.05 s')
    const pid = Number(readFileSync(place, 'utf8'))
    expect(pid).toBeGreaterThan(1)
    expect(process.kill(pid, 0)).toBe(true)
    process.kill(pid, 'SIGKILL')
  })

  test('[H9] [H12] an interrupt ends the step and the turn; a message begins the next', async () => {
    const life = new Driven(scripted, await scene([{ say: 'READY' }, { sleep: { ms: 80_000_000 } }, { say: 'awake' }]))
    await life.saw('text')
    life.interrupt()
    await life.saw('turn_ended', (event) => event.how === 'interrupted')
    life.message('go on')
    const { events } = await life.ended
    expect(said(events)).toEqual(['READY', 'awake'])
    const turns = events.flatMap((event) => (event.type === 'turn_ended' ? [event.how] : event.type === 'turn_started' ? ['started'] : []))
    expect(turns).toEqual(['started', 'interrupted', 'started', 'completed'])
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test('[H17] a script prints these lines and no others, in every life', async () => {
    const given = await scene([
      { say: 'a' },
      { write: { path: 'a', text: 'a' } },
      { commit: { message: 'a' } },
      { note: { text: 'n' } },
      { usage: { input_tokens: 1 } },
      { turn: {} },
    ])
    const { frames } = await play(given)
    const printed = Buffer.concat(frames.map((frame) => frame.bytes)).toString()
    const done = (id: string, output: string) => ({ type: 'tool_result', id, ok: true, output })
    const lines = [
      { type: 'ready', session: given.task },
      { type: 'turn_started' },
      { type: 'text', from: 'agent', text: 'a' },
      { type: 'tool_call', id: '2', name: 'write', input: '{"path":"a"}' },
      done('2', 'done'),
      { type: 'tool_call', id: '3', name: 'commit', input: '{"message":"a"}' },
      done('3', 'committed'),
      { type: 'tool_call', id: '4', name: 'task_note', input: JSON.stringify({ task_id: given.task, body: 'n' }) },
      done('4', 'done'),
      { type: 'usage', input_tokens: 1, output_tokens: 0, cost_usd: null },
      { type: 'turn_ended', how: 'completed' },
      { type: 'turn_started' },
      { type: 'turn_ended', how: 'completed' },
    ]
    expect(printed).toBe(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  })
})

describe('where a script comes from', () => {
  test('[H13] from the block in the description of its task', async () => {
    const given = await cast('Mend it.\n\n```signalbox\n{"say": "from the task"}\n\n{"note": {"text": "by the block"}}\n```\nThanks.')
    const { events } = await play(given)
    expect(said(events)).toEqual(['from the task'])
    expect(await bodies(given)).toEqual(['by the block'])
  })

  test('[H13] from a file of the worktree', async () => {
    const given = await cast('', { file: 'script.json' })
    writeFileSync(join(given.cwd, 'script.json'), '[{"say": "from the file"}]')
    expect(said((await play(given)).events)).toEqual(['from the file'])
    expect(scripted.options.safeParse({ file: 'a', script: '[]' }).success).toBe(false)
  })

  test('[H13] without any it notes, writes, commits and asks for a review', async () => {
    const given = await cast('Nothing but words.')
    const { events } = await play(given)
    expect(events.flatMap((event) => (event.type === 'tool_call' ? [event.name] : []))).toEqual([
      'task_note',
      'write',
      'commit',
      'review_request',
    ])
    expect(await bodies(given)).toEqual([expect.stringContaining('Started on T-')])
    expect(git(given.cwd, 'log', '--format=%an', '-1')).toBe('Ann')
  })

  test('[H13] a mistake is told with its line, and nothing was done', async () => {
    const given = await cast('', { script: '[\n  {"note": {"text": "early"}},\n\n  {"fly": {}}\n]' })
    const { events, exit } = await play(given)
    expect(failure(events)).toMatch(/^Line 4 of the script: "fly" is no step\. Known: say, think, /)
    expect(exit.code).toBe(1)
    expect(await bodies(given)).toEqual([])
  })

  test.each([
    ['no step at all', '[ ]', /no step/],
    ['words', '{"say":"a"}\nhello', /Line 2 .* begins with \{, not with h/],
    ['an end that is missing', '{"say":"a"}\n{"say": "{"', /Line 2 .* does not end/],
    ['broken JSON', '\n{"say": }', /Line 2 /],
    ['two steps in one', '{"say": "a", "think": "b"}', /Line 1 .* one key/],
    ['a field nobody knows', '{"write": {"path": "a", "text": "b", "mode": 7}}', /Line 1 .* write: .*mode/],
    ['a crash both ways', '{"crash": {"code": 1, "signal": "SIGTERM"}}', /either a code or a signal/],
    ['a mistake inside', '{"say":"a"}\n{"once": {"key": "k", "steps": [{"say": "b"}, {"toString": 1}]}}', /Line 2 .*toString/],
    ['steps in steps without end', nested(40), /nested deeper/],
    ['too many', '{"say":"a"}'.repeat(1_001), /at most 1000/],
  ])('[H13] %s is refused', (_, text, message) => {
    expect(() => parseScript(text)).toThrow(message)
  })

  test('[H13] a list, and one after the other, are the same script; only a block of ours is one', () => {
    const [a, b] = ['{"say": "a } \\" ["}', '{"turn": {}}']
    expect(parseScript(`[${a},\n${b}]`)).toEqual(parseScript(`${a}\n${b}`))
    expect(scriptIn('```json\n{}\n```')).toBeUndefined()
    expect(scriptIn('see ```signalbox\n{}\n```')).toBeUndefined()
    expect(scriptIn('```signalbox\r\n{"turn":{}}\r\n```')).toBe('{"turn":{}}\r\n')
  })
})

test('[H13] the guide has every step, and its example is a script', () => {
  const guide = readFileSync('docs/scripted-agent.md', 'utf8')
  expect(Object.keys(STEPS).filter((name) => !guide.includes(`| \`{"${name}": `))).toEqual([])
  expect(parseScript(scriptIn(guide) as string).map((step) => step.name)).toContain('review')
})

function nested(depth: number): string {
  return depth === 0 ? '{"say":"x"}' : `{"if_resumed":{"steps":[${nested(depth - 1)}]}}`
}

describe('staying inside', () => {
  test.each([
    ['above', '../out.txt'],
    ['above, by a way round', 'a/../../out.txt'],
    ['elsewhere', '/tmp/out.txt'],
    ['the worktree itself', '.'],
    ['git', '.git/hooks/pre-commit'],
    ['git of a part, in capitals', 'part/.GIT/config'],
    ['a linked folder', 'link/out.txt'],
    ['a linked file', 'file-link'],
    ['a link to nowhere', 'nowhere'],
  ])('[H14] %s is out of reach', (_, path) => {
    const [inside, outside] = [temporaryFolder(), temporaryFolder()]
    writeFileSync(join(outside, 'kept'), 'kept')
    symlinkSync(outside, join(inside, 'link'))
    symlinkSync(join(outside, 'kept'), join(inside, 'file-link'))
    symlinkSync(join(outside, 'new'), join(inside, 'nowhere'))
    const worktree = new Worktree(inside)
    const refused = /is not inside the worktree|belongs to git|goes through a link/
    expect(() => worktree.write(path, 'x')).toThrow(refused)
    expect(() => worktree.append(path, 'x')).toThrow(refused)
    expect(() => worktree.delete(path)).toThrow(refused)
    expect(() => worktree.read(path)).toThrow(refused)
    expect(readdirSync(outside)).toEqual(['kept'])
    expect(readFileSync(join(outside, 'kept'), 'utf8')).toBe('kept')
  })
})

describe('being killed, and daemons that go away', () => {
  const STEPS = [
    { note: { text: 'one' } },
    { write: { path: 'a.txt', text: 'a\n' } },
    { append: { path: 'log.txt', text: 'first\n' } },
    { append: { path: 'log.txt', text: 'second\n' } },
    { commit: { message: 'work' } },
    { note: { text: 'two' } },
    { call: { tool: 'task_note', arguments: { task_id: '{{task.id}}', body: 'three' } } },
  ]

  test('[H15] killed at any place and started again, it leaves everything once', async () => {
    const given = await scene(STEPS)
    const places = ['turn_started', 'tool_call 1', 'tool_result 3', 'tool_call 5', 'tool_result 6']
    for (const place of places) {
      const [type, id] = place.split(' ') as [HarnessEvent['type'], string?]
      const life = new Driven(scripted, { ...given, session: place === places[0] ? null : given.task })
      await life.saw(type, (event) => !('id' in event) || event.id === id)
      life.kill('SIGKILL')
      await life.ended
    }
    const { events } = await play({ ...given, session: given.task })
    expect(events.at(-1)).toMatchObject({ ok: true })
    expect(await bodies(given)).toEqual(['one', 'two', 'three'])
    expect(git(given.cwd, 'log', '--format=%s')).toBe('work\nbegin')
    expect(readFileSync(join(given.cwd, 'log.txt'), 'utf8')).toBe('first\nsecond\n')
    await play({ ...given, options: { script: '{"note": {"text": "of a script that was changed"}}' } })
    expect(await bodies(given)).toEqual(['one', 'two', 'three', 'of a script that was changed'])
  })

  test('[H15] what is to be done once is done in one life only, and a later life knows that it is one', async () => {
    const given = await scene([
      { if_resumed: { steps: [{ say: 'again' }] } },
      { once: { key: 'die', steps: [{ say: 'dying' }, { crash: { signal: 'SIGKILL' } }] } },
      { say: 'survived' },
    ])
    const first = await play(given)
    expect(first.exit.signal).toBe('SIGKILL')
    expect(said(first.events)).toEqual(['dying'])
    expect(first.events[0]).toEqual({ type: 'ready', session: given.task })
    expect(said((await play({ ...given, session: given.task })).events)).toEqual(['again', 'survived'])
    expect(git(given.cwd, 'status', '--porcelain')).toBe('')
  })

  test('[H15] the lock of a git that was killed does not stop the next life', async () => {
    const given = await scene([{ write: { path: 'a', text: 'a' } }, { commit: { message: 'a' } }])
    writeFileSync(join(given.cwd, '.git/index.lock'), '')
    mkdirSync(join(given.cwd, '.git/refs/heads'), { recursive: true })
    writeFileSync(join(given.cwd, '.git/refs/heads/main.lock'), '')
    expect((await play(given)).events.at(-1)).toMatchObject({ ok: true })
    expect(git(given.cwd, 'log', '-1', '--format=%s')).toBe('a')
  })

  test('[H16] a daemon that is killed between two steps and started again is found again', async () => {
    const given = await scene([{ note: { text: 'before' } }, { say: 'READY' }, { wait_message: {} }, { note: { text: 'after' } }])
    const life = new Driven(scripted, given)
    await life.saw('text')
    await daemon.end('SIGKILL')
    life.message('go on')
    await life.saw('tool_call', (event) => event.id === '4')
    await daemon.start()
    const { events } = await life.ended
    expect(events.at(-1)).toMatchObject({ ok: true })
    expect(await bodies(given)).toEqual(['before', 'after'])
  })

  test.for(['before the answer began', 'in the middle of the answer'] as const)(
    '[H16] a call whose answer was lost, %s, is asked again and done once',
    async (when, { expect }) => {
      const given = await scene([{ note: { text: 'once' } }])
      const lost = await answersLostOnce('task_note', when)
      const { events } = await play({ ...given, url: lost.url })
      expect(events.at(-1)).toMatchObject({ ok: true })
      expect(lost.asked()).toBe(2)
      expect(await bodies(given)).toEqual(['once'])
    },
  )

  test('[H16] it gives up after its patience, and at once when the answer is no', async () => {
    const nobody = new Tools({ url: 'http://127.0.0.1:9/mcp', token: 'x', patienceMs: 100 })
    await expect(nobody.call('agent_me', {}, 'k')).rejects.toThrow('did not answer for 0.1 s')
    const unknown = new Tools({ url: `${daemon.url}/mcp`, token: 'sbx_wrong' })
    await expect(unknown.call('agent_me', {})).rejects.toThrow()
  })
})

/** In front of the daemon: the first call of that tool reaches it, and its answer nobody. */
async function answersLostOnce(
  tool: string,
  when: 'before the answer began' | 'in the middle of the answer',
): Promise<{ url: string; asked(): number }> {
  let asked = 0
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => !['host', 'connection', 'content-length', 'transfer-encoding'].includes(name)),
    ) as Record<string, string>
    const alone = { ...headers, connection: 'close' }
    const answer = await fetch(`${daemon.url}/mcp`, { method: request.method, headers: alone, body: body || undefined })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const type = { 'content-type': answer.headers.get('content-type') ?? 'text/plain' }
    if (body.includes(`"name":"${tool}"`) && ++asked === 1) {
      if (when === 'before the answer began') return void request.socket.destroy()
      // As a daemon that is killed while it tells of progress.
      const begun = response.writeHead(200, { 'content-type': 'text/event-stream' })
      return void begun.write(': here\n\n', () => request.socket.destroy())
    }
    response.writeHead(answer.status, type).end(bytes)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.closeAllConnections())
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked: () => asked }
}
