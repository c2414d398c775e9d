import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command } from '../../src/daemon/cli-command.ts'
import { UsageError } from '../../src/kernel/error.ts'
import { withProgress } from '../../src/surfaces/cli/progress.ts'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { fakeTerminal } from '../../src/testing/terminal.ts'
import { repository } from '../chaos/kill-runs.ts'
import { until } from './support.ts'

let daemon: TestDaemon

beforeAll(async () => {
  daemon = await TestDaemon.start()
})
afterAll(() => daemon.remove())

const env = () => ({ SIGNALBOX_HOME: daemon.home })

/** Runs a command as a person at a terminal would see it. */
async function shown(words: string[], options: Parameters<typeof fakeTerminal>[0] = {}) {
  const terminal = fakeTerminal({ person: true, ...options })
  const code = await command(words, env(), terminal)
  return { code, out: terminal.stdout, err: terminal.stderr }
}

describe('status', () => {
  test('[E50] [E54] a new daemon says how to begin, and so does an empty list', async () => {
    const { code, out } = await shown(['status'])
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^Signalbox .* at http:.*: healthy.*there are no tasks yet.*signalbox project create/s),
    ])
    expect((await shown(['task', 'list'])).out).toMatch(/^No tasks yet\. Begin with: signalbox task create --title '.+'\n$/)
    expect((await shown(['agent', 'list'])).out).toMatch(/^No agents yet\. Begin with: signalbox agent invite --role worker\n$/)
    expect((await shown(['task', 'list', '--status', 'DONE'])).out).toBe('No tasks fit. All of them: signalbox task list\n')
    for (const flags of [[], ['--include-read']]) expect((await shown(['mail', 'inbox', ...flags])).out).toMatch(/^No letters\.\n/)
    await daemon.call('project_create', { name: 'Web' })
  })

  test('[E50] what needs a person comes with what to do, reviews first; what runs by itself does not', async () => {
    for (const title of ['free', 'reviewed', 'running', 'blocked', 'given']) await daemon.call('task_create', { title })
    await daemon.call('task_update', { task_id: 'T-4', blocked_by: ['T-1'] })
    const { token } = await daemon.call('agent_invite', { role: 'worker', name: 'Ann' })
    await daemon.call('agent_invite', { role: 'worker', name: 'Bob' })
    await daemon.call('agent_invite', { role: 'worker', name: 'Cem' })
    await daemon.call('task_assign', { task_id: 'T-3', agent_id: 'ann' })
    await daemon.call('task_assign', { task_id: 'T-5', agent_id: 'bob' })
    for (const [task_id, status] of [
      ['T-2', 'IN_PROGRESS'],
      ['T-2', 'REVIEW'],
      ['T-3', 'IN_PROGRESS'],
    ])
      await daemon.call('task_move', { task_id, status })
    const { out } = await shown(['status'])
    expect(out).toMatch(/To review\n.*\n {2}T-2 +reviewed.*\n {2}→ signalbox task close T-2 '…'\n {2}→ signalbox review decide T-2 request/)
    expect(out).toMatch(/not begun\n.*\n {2}T-5 +given .*bob.*\n {2}→ signalbox task move T-5 IN_PROGRESS\n/)
    expect(out).toMatch(/Ready to hand out\n.*\n {2}T-1 +free.*\n {2}→ signalbox task assign T-1 cem\n/)
    expect(out.indexOf('To review')).toBeLessThan(out.indexOf('Ready to hand out'))
    expect(out).not.toMatch(/running|blocked/)
    expect(out).toContain('1 REVIEW, 1 IN_PROGRESS, 3 BACKLOG, 0 DONE')
    expect(out).toMatch(/^ {2}ann +worker +BUSY +T-3/m)
    const piped = await daemon.cli(['status'])
    expect(JSON.parse(piped.stdout)).toMatchObject({
      daemon: { ok: true },
      needs_you: [{ handle: 'T-2' }, { handle: 'T-1' }, { handle: 'T-5' }],
    })
    expect((await daemon.cli(['status'], '', { SIGNALBOX_TOKEN: token })).code).toBe(0)
  })

  test('[E50] a task whose agent was given up says why, and one to pair on how to begin', async () => {
    const repo = repository()
    onTestFinished(() => rmSync(repo, { recursive: true, force: true }))
    const { project_id } = await daemon.call('project_create', { name: 'Given up' })
    await daemon.call('repo_add', { path: repo, project_id })
    await daemon.call('setting_update', { key: 'runs.max_lives', value: 1 })
    const { handle } = await daemon.call('task_create', { project_id, title: 'too much' })
    const pair = await daemon.call('task_create', { project_id, title: 'both', task_type: 'PAIR' })
    const options = { command: ['/no/such/program'] }
    const { job_id } = await daemon.call('job_submit', { task_id: handle, action: 'start_agent', harness: 'command', options })
    await daemon.call('job_wait', { job_id, timeout_seconds: 100 })
    const { out } = await shown(['status'], { columns: 200 })
    expect(out).toMatch(new RegExp(`by itself\\n.*\\n {2}${handle} +too much +J-1 failed: .*\\n {2}→ signalbox resume ${handle}\\n`))
    expect(out).toMatch(new RegExp(`together\\n.*\\n {2}${pair.handle} +both.*\\n {2}→ signalbox session open ${pair.handle}\\n`))
    for (const task_id of [handle, pair.handle]) await daemon.call('task_delete', { task_id })
  })

  test('[E50] [E53] without a daemon it says so, with the address that was tried and why', async () => {
    const home = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
    onTestFinished(() => rmSync(home, { recursive: true }))
    writeFileSync(join(home, 'owner.token'), 'sbx_person_x\n')
    const tried = async (more: Record<string, string> = {}) => {
      const terminal = fakeTerminal()
      return [await command(['status'], { SIGNALBOX_HOME: home, ...more }, terminal), terminal.stderr]
    }
    expect(await tried()).toEqual([
      7,
      expect.stringMatching(/answers at http:\/\/127.0.0.1:3001 \(the default; no daemon of .* has said where.*\n.*signalbox serve/),
    ])
    writeFileSync(join(home, 'daemon.json'), JSON.stringify({ pid: 1, url: 'http://127.0.0.1:2', socket: 'x' }))
    expect(await tried()).toEqual([7, expect.stringMatching(/answers at http:\/\/127.0.0.1:2 \(where the daemon of .* was last\)/)])
    expect(await tried({ SIGNALBOX_PORT: '1' })).toEqual([
      7,
      expect.stringMatching(
        /answers at http:\/\/127.0.0.1:1 \(named by SIGNALBOX_PORT; the daemon of .* was last at http:\/\/127.0.0.1:2: unset SIGNALBOX_PORT/,
      ),
    ])
  })
})

test("[E53] the owner's token goes to the daemon of its folder and to nobody else who listens", async () => {
  const heard: (string | undefined)[] = []
  const stranger = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.end('hello')
  })
  await once(stranger.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void stranger.close())
  const port = String((stranger.address() as AddressInfo).port)
  const tried = async (more: Record<string, string>, words = ['task', 'list']) => {
    const terminal = fakeTerminal()
    return [await command(words, { ...env(), ...more }, terminal), terminal.stderr]
  }
  for (const name of ['MCP_SERVER_PORT', 'SIGNALBOX_PORT']) {
    const told = expect.stringMatching(
      new RegExp(`is at ${daemon.url}, so .* not sent to http://127.0.0.1:${port} \\(named by ${name}.*\\nUnset ${name} .*SIGNALBOX_TOKEN`),
    )
    expect(await tried({ [name]: port })).toEqual([7, told])
    expect(await tried({ [name]: port }, ['events'])).toEqual([7, told])
  }
  expect(heard).toEqual([])
  expect(await tried({ SIGNALBOX_PORT: port, SIGNALBOX_TOKEN: 'given' })).toEqual([7, expect.stringContaining('is not Signalbox')])
  expect(heard).toEqual(['Bearer given'])
  for (const SIGNALBOX_HOST of ['127.0.0.1', 'localhost'])
    expect(await tried({ SIGNALBOX_PORT: new URL(daemon.url).port, SIGNALBOX_HOST })).toEqual([0, ''])
})

describe('answers on a terminal', () => {
  test('[E44] tables for people, JSON for programs and with --json', async () => {
    expect((await shown(['task', 'list'])).out).toMatch(/^TASK +TITLE .*\nT-1 +free /)
    expect((await shown(['agent', 'list'], { columns: 140 })).out).toMatch(/^AGENT .*\nann +Ann +.*web +T-3/)
    expect((await shown(['task', 'get', 'T-3'])).out).toMatch(/^T-3 {2}running\n(.*\n)*assignee +ann\n/)
    expect((await shown(['setting', 'get', '--key', 'limits.agent_burst'])).out).toMatch(
      /^key +limits.*\nvalue +500\n(.*\n)*description +Calls that one/,
    )
    expect(JSON.parse((await shown(['task', 'list', '--json'])).out).tasks).toHaveLength(5)
    expect(JSON.parse((await daemon.cli(['task', 'list'])).stdout).tasks).toHaveLength(5)
  })

  test('[E54] a page that is not the last gives the command for the next, which works', async () => {
    const { out } = await shown(['task', 'list', '--limit', '2'])
    const next = /There is more: signalbox (.*)\n/.exec(out)?.[1] as string
    expect(next).toBe('task list --limit 2 --after 2')
    expect((await shown(next.split(' '))).out).toMatch(/T-3 .*\nT-4 /)
  })

  test('[E52] a secret is shown once, with what to do with it; lists never have it', async () => {
    const { out } = await shown(['agent', 'invite', '--role', 'reviewer'])
    expect(out).toMatch(
      /^token +sbx_agent_\S+\ntoken id +token_\w+\n\nKeep the token now: it is not shown again\..*SIGNALBOX_TOKEN=<token> signalbox mcp/ms,
    )
    await daemon.call('person_invite', { name: 'Bea' })
    const tokens = await shown(['token', 'list'], { columns: 140 })
    expect(tokens.out).toMatch(/^ID +KIND +HOLDER +STATUS/)
    expect(tokens.out).toMatch(/person +bea +active/)
    expect(tokens.out).not.toContain('sbx_')
    const id = /token_\w+/.exec(out)?.[0] as string
    const rotated = await shown(['token', 'rotate', id, '--yes'])
    expect(rotated.out).toMatch(/^token +sbx_agent_\S+\n(.*\n)*Keep the token now/)
    expect((await shown(['token', 'revoke', '--agent-id', 'reviewer-1', '--yes'])).out).toBe('revoked  1\n')
  })

  test('[E43] a refusal names commands, not tools, and where the flags are explained', async () => {
    expect((await shown(['task', 'get', 'T-99'])).err).toBe(
      'RESOURCE_NOT_FOUND: There is no task "T-99".\nList them with signalbox task list.\n',
    )
    expect((await shown(['task', 'create'])).err).toContain('See: signalbox task create --help')
    for (const [words, meant] of [
      [['tsk', 'list'], 'signalbox task list'],
      [['task', 'creat'], 'signalbox task create'],
      [['stauts'], 'signalbox status'],
      [['agnet'], 'signalbox agent'],
    ] as const)
      await expect(shown([...words])).rejects.toThrow(`Did you mean: ${meant}`)
    for (const word of ['constructor', 'toString', '__proto__', 'hasOwnProperty'])
      for (const words of [[word], [word, 'x'], ['task', word]]) await expect(shown(words)).rejects.toThrow(UsageError)
  })
})

describe('what cannot be undone', () => {
  const there = async (task: string) => (await daemon.post('task_get', { task_id: task })).ok

  test('[E47] is asked for, with what it is about; only a yes does it', async () => {
    for (const answer of ['', 'n', 'yellow']) {
      const { code, err, out } = await shown(['task', 'delete', 'T-1'], { answer })
      expect([code, out]).toEqual([1, ''])
      expect(err).toBe(
        'Delete a task: task T-1 (free)\nTake a task off the board for good. What it changed stays in the log.\nGo ahead? [y/N] Nothing was done.\n',
      )
    }
    expect(await there('T-1')).toBe(true)
    expect((await shown(['task', 'delete', 'T-1'], { answer: 'y' })).code).toBe(0)
    expect(await there('T-1')).toBe(false)
  })

  test('[E47] is refused where nobody can be asked, unless it was said beforehand', async () => {
    const refused = await daemon.cli(['task', 'delete', 'T-4'])
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([2, '', expect.stringContaining('Add --yes')])
    expect(await there('T-4')).toBe(true)
    expect((await daemon.cli(['task', 'delete', 'T-4', '--yes'])).code).toBe(0)
    expect(await there('T-4')).toBe(false)
  })
})

describe('what lasts', () => {
  const metrics = async () =>
    (await fetch(`${daemon.url}/metrics`, { headers: { authorization: `Bearer ${daemon.token}`, connection: 'close' } })).text()

  test('[E49] a wait says on a terminal how long it has lasted, and nothing elsewhere', async () => {
    const person = await shown(['event', 'wait', '--timeout-seconds', '2.5'])
    expect(person.err).toMatch(/\r⠋ Wait for events… \d+ s/)
    expect(person.err.endsWith('\r\u001b[K')).toBe(true)
    const program = fakeTerminal()
    await command(['event', 'wait', '--timeout-seconds', '2.5'], env(), program)
    expect(program.stderr).toBe('')
    const quick = fakeTerminal({ person: true })
    await withProgress(quick, 'Quick', async () => undefined)
    expect(quick.stderr).toBe('')
  })

  test('[E48] --watch shows a change when it happens, over a restart too, and only then', async () => {
    const child = spawn(process.execPath, [BIN, 'task', 'get', 'T-2', '--watch'], { env: { ...daemon.env, SIGNALBOX_PORT: '' } })
    const over = once(child, 'exit')
    onTestFinished(async () => {
      child.kill('SIGINT')
      await over
    })
    let out = ''
    child.stdout.on('data', (chunk) => {
      out += String(chunk)
    })
    const seen = () =>
      out
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line).task.title as string)
    await until(() => out.endsWith('\n'), 'the first is shown')
    await daemon.call('task_update', { task_id: 'T-2', title: 'second' })
    await until(() => seen().length === 2, 'the second is shown')
    await daemon.call('task_create', { title: 'something else' })
    await daemon.end('SIGKILL')
    await daemon.start()
    await daemon.call('task_update', { task_id: 'T-2', title: 'third' })
    await until(() => seen().length === 3, 'the third is shown')
    expect(seen()).toEqual(['reviewed', 'second', 'third'])
    await expect(shown(['task', 'create', 'x', '--watch'])).rejects.toThrow('nothing to watch')
  })

  test('[E48] what is watched and then gone ends it with the code of that', async () => {
    const { task_id } = await daemon.call('task_create', { title: 'short-lived' })
    const ended = daemon.cli(['task', 'get', task_id, '--watch'])
    await until(async () => /^signalbox_event_streams 1$/m.test(await metrics()), 'it listens')
    await daemon.call('task_delete', { task_id })
    expect((await ended).code).toBe(4)
  })
})
