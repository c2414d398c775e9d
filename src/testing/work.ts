import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { RunSpec, StopReason } from '../ports/runner.ts'
import type { TestApp } from './app.ts'
import { FakeRunner } from './fakes/runs.ts'
import { gitNow } from './git.ts'
import { until } from './signals.ts'

export interface Work {
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  task: any
  path: string
  worker: string
}

/** A real repository, and tasks with worktrees in it whose workers are played. */
export class WorkGround {
  readonly app: TestApp
  readonly top: string
  repo = ''

  constructor(app: TestApp) {
    this.app = app
    this.top = join(app.folder, 'web')
  }

  async prepare(repo: { checks?: string } = {}): Promise<this> {
    mkdirSync(this.top)
    this.git(this.top, 'init', '-q', '-b', 'main')
    this.commit(this.top, 'a.txt', 'one\n')
    this.repo = (await this.app.owner.call('repo_add', { path: this.top, project_id: await this.app.project(), ...repo })).repo_id
    return this
  }

  git(cwd: string, ...args: string[]): string {
    return gitNow(cwd, ['-c', 'user.name=ann', '-c', 'user.email=a@b', ...args]).trim()
  }

  commit(cwd: string, file: string, text: string): string {
    writeFileSync(join(cwd, file), text)
    this.git(cwd, 'add', '-A')
    this.git(cwd, 'commit', '-q', '-m', 'work')
    return this.git(cwd, 'rev-parse', 'HEAD')
  }

  /** A task with a worktree, and the worker who is at work in it. */
  async begun(title = 'Do it', fields: object = {}): Promise<Work> {
    const { app } = this
    const task = await app.task({ title, ...fields })
    await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    await until(async () => (await app.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'running')
    const made = (await app.events({ type: 'work.made' })).find((event) => event.task === task.id)
    const { assignee_id } = (await app.owner.call('task_get', { task_id: task.id })).task
    return { task, path: String(made?.data.path), worker: assignee_id }
  }

  /** … that has handed in one file. */
  async handedIn(file: string, text = 'x\n', fields: object = {}): Promise<Work> {
    const work = await this.begun(file, fields)
    this.commit(work.path, file, text)
    await this.handIn(work, `${file} is there`)
    return work
  }

  async handIn({ task, worker }: Work, summary: string): Promise<void> {
    await this.app.owner.call('review_request', { task_id: task.id, summary }, { actFor: worker })
  }

  /** Subjects of what landed on a branch, newest first. */
  landed(branch: string): string[] {
    return this.git(this.top, 'log', '--format=%s', '--grep=^Signalbox-Task: ', branch).split('\n').filter(Boolean)
  }

  async letters(to: string): Promise<{ id: string; subject: string; body: string; from_id: string }[]> {
    return (await this.app.owner.call('mail_inbox', {}, { actFor: to })).letters
  }
}

/** Agents are played; the setup of a checkout and the checks of a merge are really run. */
export class CheckingRunner extends FakeRunner {
  /** Before each of them begins. */
  beforeCheck: (spec: RunSpec) => void | Promise<void> = () => {}
  checks = 0
  setups = 0
  /** Also those that were forgotten since. */
  readonly ran = new Map<string, RunSpec>()
  readonly #children = new Map<string, ChildProcess>()

  override async start(run: string, spec: RunSpec) {
    const known = this.runs.get(run)?.spec !== undefined
    const started = await super.start(run, spec)
    if (known || !/^(check-|setup|cleanup)/.test(run)) return started
    this.ran.set(run, spec)
    if (run.startsWith('check-')) this.checks++
    if (run.startsWith('setup')) this.setups++
    void this.#check(run, spec)
    return started
  }

  constructor() {
    super()
    // A command that waits for a file of the test would wait for ever.
    onTestFinished(() => {
      for (const run of this.#children.keys()) this.#kill(run)
    })
  }

  override stop(run: string, why: StopReason) {
    this.#kill(run)
    return super.stop(run, why)
  }

  /** With all that it has started. */
  #kill(run: string): void {
    const child = this.#children.get(run)
    if (child?.pid && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }

  async #check(run: string, spec: RunSpec): Promise<void> {
    if (run.startsWith('check-')) await this.beforeCheck(spec)
    const [program, ...args] = spec.argv
    const child = spawn(program, args, { cwd: spec.cwd, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    this.#children.set(run, child)
    // What a forgotten one says would make it anew.
    const isKnown = () => this.runs.has(run)
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => isKnown() && this.tell(run, bytes.toString()))
    child.on('close', (code) => isKnown() && this.exit(run, code))
  }
}
