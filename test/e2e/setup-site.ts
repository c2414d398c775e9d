import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished } from 'vitest'
import { BIN, type DaemonOptions, TestDaemon } from '../../src/testing/daemon.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from './support.ts'

type Fields = Record<string, unknown>
const SETTINGS = { 'runs.back_off_seconds': 0.05, 'runs.max_lives': 1, 'runs.max_per_host': 20, 'runs.max_per_project': 20 }

/** A step that leaves a file of its own, so that it is merged for itself. */
export const OWN_FILE = { run: { argv: ['sh', '-c', 'echo x > {{task.handle}}.txt'] } }

/** A real daemon, and a repository with real packages. */
export class Site {
  readonly daemon: TestDaemon
  readonly repo = repository()
  /** A folder beside it, for what the test keeps for itself. */
  readonly beside = `${this.repo}.beside`
  /** Found before all others. */
  readonly programs = join(this.beside, 'bin')
  #project = ''
  repoId = ''
  handle = ''

  constructor(options: DaemonOptions = {}) {
    // What package managers keep for their user stays with the test, and it may bring programs of its own.
    const kept = { XDG_DATA_HOME: this.beside, XDG_CACHE_HOME: this.beside, XDG_STATE_HOME: this.beside }
    this.daemon = new TestDaemon({ ...options, env: { ...kept, PATH: `${this.programs}:${process.env.PATH}`, ...options.env } })
    mkdirSync(this.programs, { recursive: true })
    onTestFinished(async () => {
      await this.daemon.remove()
      for (const path of [this.repo, this.beside]) rmSync(path, { recursive: true, force: true })
    })
  }

  /** `make` leaves in the repository what is committed, and what git ignores. */
  static async open(make: (repo: string) => unknown, registration: Fields = {}, options: DaemonOptions = {}): Promise<Site> {
    const site = await Site.begin(make, options)
    await site.register(registration)
    return site
  }

  /** Before the repository is registered. */
  static async begin(make: (repo: string, site: Site) => unknown, options: DaemonOptions = {}): Promise<Site> {
    const site = new Site(options)
    await make(site.repo, site)
    git(site.repo, 'add', '--all')
    git(site.repo, 'commit', '--quiet', '--allow-empty', '--message=shop')
    await site.daemon.start()
    for (const [key, value] of Object.entries(SETTINGS)) await site.daemon.call('setting_update', { key, value })
    site.#project = (await site.daemon.call('project_create', { name: 'Web' })).project_id
    return site
  }

  /** What it answers says how to go on. */
  async register(registration: Fields): Promise<{ message: string; proposed: Fields | null }> {
    const added = await this.daemon.call(this.repoId ? 'repo_update' : 'repo_add', {
      ...(this.repoId ? { repo_id: this.repoId } : { path: this.repo, project_id: this.#project }),
      ...registration,
    })
    if (!this.repoId) [this.repoId, this.handle] = [added.repo_id, added.handle]
    return added
  }

  /** As a person types it. */
  async type(line: string): Promise<string> {
    const shell = spawn('sh', ['-c', `signalbox() { "${process.execPath}" "${BIN}" "$@"; }\n${line}`], {
      env: this.daemon.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [out, err, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), once(shell, 'close')])
    expect([code, err]).toEqual([0, ''])
    return out
  }

  /** An agent that does these steps and hands in. */
  async start(...steps: Fields[]): Promise<string> {
    const script = [...steps, { commit: { message: 'Work' } }, { review: { summary: 'Done.' } }]
    const description = `\`\`\`signalbox\n${JSON.stringify(script)}\n\`\`\`\n`
    const { task_id } = await this.daemon.call('task_create', { project_id: this.#project, title: 'Work', description })
    await this.daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
    return task_id
  }

  async is(task_id: string, status: string): Promise<void> {
    const now = () =>
      this.daemon.call('task_get', { task_id }).then(
        ({ task }) => task.status === status,
        () => false,
      )
    await until(now, async () => `${status}: ${JSON.stringify((await this.daemon.call('job_list', { task_id })).jobs)} ${this.daemon.log}`)
  }

  /** … and hands in, and it is merged. */
  async lands(task_id: string): Promise<void> {
    await this.is(task_id, 'REVIEW')
    const decided = await this.daemon.call('review_decide', { task_id, decision: 'approve' })
    expect(decided, JSON.stringify(decided)).toMatchObject({ merged: true, merge_commit: expect.any(String) })
  }

  /** Why the first job of a task has failed. */
  async failure(task_id: string): Promise<string> {
    const job = async () => (await this.daemon.call('job_list', { task_id })).jobs[0]
    await until(async () => (await job()).state === 'failed', 'it fails')
    return (await job()).reason
  }

  /** How each setup of a worktree ended, the oldest first. */
  async setups(): Promise<{ state: string; how: string | null }[]> {
    const { events } = await this.daemon.call('event_list', { types: ['setup.ended'], limit: 200 })
    return events.map(({ data }: { data: { state: string; how: string | null } }) => data).reverse()
  }

  async place(task_id: string): Promise<string> {
    return (await this.daemon.call('work_get', { task_id })).work.path
  }

  /** Commands of setups that are at work, by the files of their runners. */
  setupsAtWork(): string[] {
    const runs = join(this.daemon.home, 'runs')
    return existsSync(runs) ? readdirSync(runs).filter((name) => name.startsWith('setup')) : []
  }
}

export function write(top: string, files: Record<string, string>): void {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(top, path)), { recursive: true })
    writeFileSync(join(top, path), content)
  }
}
