import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { leftBehind, survivors } from '../../src/testing/survivors.ts'
import { repository } from '../chaos/kill-runs.ts'
import { leftOut, until } from './support.ts'

const TUI = resolve(import.meta.dirname, '../../src/testing/tui.mjs')

/** A real daemon, real tmux, and an agent program of our own under the name of one that it knows. */
class Site {
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox-pair-'))
  readonly daemon: TestDaemon
  project = ''

  constructor() {
    mkdirSync(join(this.folder, 'bin'))
    const program = join(this.folder, 'bin/claude')
    writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${TUI} "$@"\n`)
    chmodSync(program, 0o755)
    const PATH = `${join(this.folder, 'bin')}:${process.env.PATH}`
    this.daemon = new TestDaemon({ env: { PATH, HOME: this.folder, SHELL: '/bin/sh', GITHUB_TOKEN: 'ghp_not_for_agents' } })
  }

  async open(): Promise<void> {
    await this.daemon.start()
    this.project = (await this.daemon.call('project_create', { name: 'Web' })).project_id
    await this.daemon.call('repo_add', { path: repository(), project_id: this.project })
  }

  /** What the program does at its next start. */
  plan(plan: object): void {
    writeFileSync(join(this.folder, 'tui.json'), JSON.stringify({ log: join(this.folder, 'prompts'), ...plan }))
    writeFileSync(join(this.folder, 'prompts'), '')
  }

  get prompts(): string[] {
    const text = readFileSync(join(this.folder, 'prompts'), 'utf8').trim()
    return text ? text.split('\n').map((line) => JSON.parse(line) as string) : []
  }

  async task(fields: object = {}): Promise<string> {
    return (await this.daemon.call('task_create', { project_id: this.project, title: 'Pair on it', task_type: 'PAIR', ...fields })).handle
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  async session(task_id: string): Promise<any> {
    return (await this.daemon.call('session_exists', { task_id })).session
  }

  prompt(task: string, wanted: string): Promise<void> {
    return until(async () => (await this.session(task)).prompt === wanted, `the prompt of ${task} is ${wanted}: ${this.daemon.log}`)
  }

  state(task: string, wanted: string): Promise<void> {
    return until(async () => (await this.session(task)).state === wanted, `the session of ${task} is ${wanted}: ${this.daemon.log}`)
  }

  async shows(task_id: string, words: string): Promise<void> {
    await until(
      async () => (await this.daemon.call('session_read', { task_id })).screen.includes(words),
      `"${words}" on the screen of ${task_id}`,
    )
  }
}

describe.skipIf(leftOut('tmux', 'terminals'))('a terminal with a real daemon', () => {
  const site = new Site()
  const { daemon } = site
  beforeAll(() => site.open())
  afterAll(() => daemon.remove())

  test('[PS3] [PS7] [PS9] [PS12] is opened, told, read, typed into and closed, and nothing of it is left but the work', async () => {
    site.plan({ startMs: 200, strays: true })
    const task = await site.task()
    const message = 'A long message. '.repeat(8_200)
    const { session } = await daemon.call('session_open', { task_id: task, message })
    expect(session).toMatchObject({ state: 'open', program: 'claude', name: task })
    await site.prompt(task, 'sent')
    expect(site.prompts).toHaveLength(1)
    expect(site.prompts[0]?.length).toBeGreaterThan(130_000)
    expect(site.prompts[0]).toContain(message.trim())
    expect(site.prompts[0]).toContain('Pair on it')

    const [run] = readdirSync(join(daemon.home, 'runs'))
    const token = readFileSync(join(daemon.home, 'runs', run as string, 'token'), 'utf8')
    expect(await daemon.call('agent_me', {}, token)).toMatchObject({ id: session.agent_id })
    // The program says that it took the prompt before it shows so.
    await site.shows(task, 'took')
    const { mark } = await daemon.call('session_read', { task_id: task })
    const next = daemon.call('session_read', { task_id: task, unlike: mark })
    await daemon.call('session_type', { task_id: task, text: 'hello there' })
    // Perhaps a part of it: the program draws after every letter.
    expect((await next).mark).not.toBe(mark)
    await site.shows(task, 'hello there')
    await daemon.call('session_type', { task_id: task, keys: ['Enter'] })
    await site.shows(task, 'took 11 characters')

    expect(survivors(daemon.home).length).toBeGreaterThan(3)
    expect(await daemon.call('session_close', { task_id: task })).toMatchObject({ closed: true })
    expect(await leftBehind(daemon.home)).toEqual([])
    await until(() => living(`SIGNALBOX_RUN=${session.id}`).length === 0, 'nothing of it is left')
    expect((await daemon.post('agent_me', {}, token)).error).toMatchObject({ code: 'AUTH_STALE_TOKEN' })
    const [work] = (await daemon.call('work_list')).works
    expect(existsSync(work.path)).toBe(true)
    await until(() => !existsSync(join(daemon.home, 'runs', run as string)), 'its folder is taken away')
    expect(daemon.log).not.toContain('defect')
  })

  test('[PS7] [PS13] a dialog is for a person; the prompt goes on after it (F11)', async () => {
    site.plan({ dialog: true })
    const task = await site.task()
    await daemon.call('session_open', { task_id: task })
    await site.prompt(task, 'needs_input')
    const { task: shown } = await daemon.call('task_get', { task_id: task })
    expect(shown).toMatchObject({ attention: 'human', attention_detail: 'It asks whether you trust this folder. Attach and answer it.' })
    expect(site.prompts).toEqual([])
    await daemon.call('session_type', { task_id: task, text: 'y' })
    await site.prompt(task, 'sent')
    expect(site.prompts).toHaveLength(1)
    await daemon.call('session_close', { task_id: task })
  })

  test('[PS3] [PS7] [PS8] a daemon that is killed while the program starts goes on; the prompt comes once, and the session stays', async () => {
    site.plan({ startMs: 2_500 })
    const task = await site.task()
    const { session } = await daemon.call('session_open', { task_id: task })
    await daemon.end('SIGKILL')
    expect(living(`SIGNALBOX_RUN=${session.id}`).length).toBeGreaterThan(0)
    await daemon.start()
    await site.prompt(task, 'sent')
    await daemon.end('SIGKILL')
    await daemon.start()
    expect(await daemon.call('session_exists', { task_id: task })).toMatchObject({
      exists: true,
      session: { id: session.id, prompt: 'sent' },
    })
    expect(site.prompts).toHaveLength(1)
    await daemon.call('session_close', { task_id: task })
    expect(await leftBehind(daemon.home)).toEqual([])
  })

  test('[PS8] a killed tmux server is a lost terminal, a dead program is not; both are opened again (F12)', async () => {
    site.plan({})
    const task = await site.task()
    const first = await daemon.call('session_open', { task_id: task })
    const socket = first.session.attach_argv[2]
    const pid = Number(execFileSync('tmux', ['-S', socket, 'display-message', '-p', '#{pid}'], { encoding: 'utf8' }))
    expect(pid).toBeGreaterThan(1)
    process.kill(pid, 'SIGKILL')
    await site.state(task, 'lost')
    expect((await daemon.call('task_get', { task_id: task })).task).toMatchObject({ attention: 'human' })
    const second = await daemon.call('session_open', { task_id: task })
    expect(second).toMatchObject({ created: true, session: { agent_id: first.session.agent_id } })
    await site.prompt(task, 'sent')
    await site.shows(task, 'took')
    await daemon.call('session_type', { task_id: task, keys: ['C-c'] })
    await site.state(task, 'closed')
    expect(await site.session(task)).toMatchObject({
      reason: expect.stringMatching(/^Its program ended with (code 130|a code that nobody saw)\.$/),
    })
    expect((await daemon.call('session_read', { task_id: task })).screen).toContain('took')
    await until(() => survivors(daemon.home).length === 0, 'nothing of it is left')
  })

  test('[PS10] a shell is a shell: with the token of its agent, and nothing of the daemon', async () => {
    const task = await site.task()
    await daemon.call('session_open', { task_id: task, program: 'shell' })
    const typed = 'test "$GITHUB_TOKEN$SIGNALBOX_HOME" = "" && test -n "$SIGNALBOX_TOKEN" && echo CLE""AN; echo "$SIGNALBOX_TOKEN"'
    await daemon.call('session_type', { task_id: task, text: typed, keys: ['Enter'] })
    await site.shows(task, 'CLEAN')
    await site.shows(task, '[redacted]')
    expect((await daemon.call('session_read', { task_id: task })).screen).not.toContain('sbx_agent')
    await daemon.call('session_close', { task_id: task })
  })

  test('[PS14] signalbox attach shows it in a terminal, and prints the command elsewhere', async () => {
    site.plan({})
    const task = await site.task()
    expect(await daemon.cli(['attach', task])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`signalbox session open --task-id ${task}`),
    })
    expect(await daemon.cli(['attach'])).toMatchObject({ code: 2, stderr: expect.stringContaining('Name one task') })
    const { session } = await daemon.call('session_open', { task_id: task })
    expect(await daemon.cli(['attach', task])).toMatchObject({ code: 0, stdout: `${session.attach}\n` })
    const { handle, assignee_id } = (await daemon.call('task_get', { task_id: task })).task
    const asAgent = { headers: { 'signalbox-act-for': assignee_id } }
    expect((await daemon.post('agent_me', {}, daemon.token, asAgent)).result).toMatchObject({ session_name: handle })
    const socket = join(site.folder, 'mine')
    const { SIGNALBOX_PORT: _, ...env } = daemon.env
    const mine = (...command: string[]) => execFileSync('tmux', ['-S', socket, '-f', '/dev/null', ...command], { encoding: 'utf8', env })
    mine('new-session', '-d', '-x', '100', '-y', '30', '--', process.execPath, BIN, 'attach', task)
    // It may have ended with what it showed.
    onTestFinished(() => void spawnSync('tmux', ['-S', socket, 'kill-server']))
    await until(async () => (await daemon.call('session_exists', { task_id: task })).attached === 1, 'somebody is attached')
    await until(() => mine('capture-pane', '-p').includes('took'), 'they see it')
    await daemon.call('session_close', { task_id: task })
  })
})

function living(line: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      const state = /\) (\w)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]
      return state !== 'Z' && readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(line)
    } catch {
      return false
    }
  })
}
