import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { realPath } from '../../src/testing/real-programs.ts'
import { type Model, type Rule, type Step, script, startModel } from '../../src/testing/scripted-model/index.ts'
import { survivors } from '../../src/testing/survivors.ts'
import { repository } from '../chaos/kill-runs.ts'
import { databaseOf, rows } from '../e2e/support.ts'
import type { Played } from './programs.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

export interface Begun {
  task: string
  job: string
}

const SETTINGS = {
  'runs.back_off_seconds': 0,
  'runs.linger_seconds': 5,
  'runs.max_per_host': 40,
  'runs.max_per_project': 40,
}
const OVER_WITHIN_S = 300
const PATIENCE_MS = 180_000
const LOOK_EVERY_MS = 100

/** One program, as a user has it: its own home and configuration, a model of its own, and the whole product on loopback. */
export class Site {
  readonly program: Played
  readonly model: Model
  readonly daemon: TestDaemon
  /** Where scripts and tests leave each other signs. */
  readonly signs: string
  readonly #home: string
  readonly #repo = repository()
  #project = ''

  private constructor(program: Played, model: Model) {
    this.program = program
    this.model = model
    this.#home = mkdtempSync(join(tmpdir(), 'signalbox-real-'))
    this.signs = join(this.#home, 'signs')
    mkdirSync(this.signs)
    const own = Object.fromEntries(
      ['CONFIG', 'DATA', 'CACHE', 'STATE'].map((name) => [`XDG_${name}_HOME`, join(this.#home, FOLDERS[name] as string)]),
    )
    const configured = program.configure(this.#home, model.url)
    this.daemon = new TestDaemon({ env: { HOME: this.#home, PATH: realPath(), ...own, ...configured } })
  }

  static async open(program: Played, settings: Record<string, unknown> = {}, rules: Rule[] = []): Promise<Site> {
    const site = new Site(program, await startModel({ rules }))
    await site.daemon.start()
    for (const [key, value] of Object.entries({ ...SETTINGS, ...settings })) await site.daemon.call('setting_update', { key, value })
    site.#project = (await site.daemon.call('project_create', { name: 'Web' })).project_id
    await site.daemon.call('repo_add', { path: site.#repo, project_id: site.#project })
    return site
  }

  async close(): Promise<void> {
    await this.daemon.remove()
    await this.model.close()
    for (const folder of [this.#home, this.#repo]) rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /** The steps may name the task, so it is there before they are. */
  async task(steps: (task: string) => Step[]): Promise<string> {
    const { task_id } = await this.daemon.call('task_create', { project_id: this.#project, title: 'Do it' })
    await this.daemon.call('task_update', { task_id, description: `As the script says: ${script(steps(task_id))}` })
    return task_id
  }

  async start(task_id: string, more: object = {}): Promise<string> {
    const { harness, model, options } = this.program
    const how = { harness, ...(model ? { model } : {}), ...(options ? { options: options() } : {}) }
    return (await this.daemon.call('job_submit', { task_id, action: 'start_agent', ...how, ...more })).job_id
  }

  async begin(steps: (task: string) => Step[]): Promise<Begun> {
    const task = await this.task(steps)
    return { task, job: await this.start(task) }
  }

  async ask(task_id: string, action: string, more: object = {}): Promise<string> {
    return (await this.daemon.call('job_submit', { task_id, action, ...more })).job_id
  }

  async over(job_id: string, seconds = OVER_WITHIN_S): Promise<Any> {
    const until = performance.now() + seconds * 1_000
    for (let cursor: string | undefined; ; ) {
      const timeout_seconds = Math.max(1, (until - performance.now()) / 1_000)
      const answer = await this.daemon.call('job_wait', { job_id, timeout_seconds, ...(cursor ? { cursor } : {}) })
      if (answer.code === 'JOB_ENDED') return answer.job
      cursor = answer.cursor
      if (performance.now() > until) throw new Error(`the job was not over within ${seconds} s: ${await this.story(answer.job.task_id)}`)
    }
  }

  /** Over, or put off until the provider gives more. */
  async endedOrParked(job_id: string, seconds: number): Promise<Any> {
    const deadline = performance.now() + seconds * 1_000
    for (;;) {
      const { job } = await this.daemon.call('job_wait', { job_id, timeout_seconds: 2 })
      const parked = job.state === 'queued' && job.not_before
      if (parked || (job.state !== 'queued' && job.state !== 'running')) return job
      if (performance.now() > deadline) throw new Error(`it did not end within ${seconds} s: ${await this.story(job.task_id)}`)
    }
  }

  /** Over, and well. */
  async succeeded({ task, job }: Begun, seconds?: number): Promise<Any> {
    const over = await this.over(job, seconds)
    if (over.state !== 'succeeded') throw new Error(`the job ${over.state}: ${over.reason}\n${await this.story(task)}`)
    expect(await this.get(task)).toMatchObject({ status: 'REVIEW' })
    return over
  }

  async get(task_id: string): Promise<Any> {
    return (await this.daemon.call('task_get', { task_id })).task
  }

  async runs(task_id: string): Promise<Any[]> {
    return (await this.daemon.call('run_list', { task_id })).runs.reverse()
  }

  async transcript(task_id: string): Promise<Any[]> {
    return (await this.daemon.call('transcript_read', { task_id, limit: 200 })).entries
  }

  sessions(task_id: string): string[] {
    return rows(databaseOf(this.daemon), 'SELECT session FROM runs WHERE task_id = ? ORDER BY id', task_id).map((row) => row.session)
  }

  async can(what: string): Promise<boolean> {
    return (await this.#harness()).can.includes(what)
  }

  async meters(): Promise<string[]> {
    return (await this.#harness()).meters
  }

  async #harness(): Promise<{ can: string[]; meters: string[] }> {
    const { harnesses } = await this.daemon.call('job_actions')
    return harnesses.find(({ name }: Any) => name === this.program.harness)
  }

  survivors(): string[] {
    return survivors(this.daemon.home).map(({ argv }) => argv)
  }

  write(name: string, text: string): string {
    const file = join(this.signs, name)
    writeFileSync(file, text)
    return file
  }

  /** A step that says that it was reached, and ends when the test lets it. */
  gate(name: string): Step {
    const [reached, open] = [join(this.signs, `${name}.reached`), join(this.signs, `${name}.open`)]
    return { tool: 'bash', args: { command: `touch ${reached}; until [ -f ${open} ]; do sleep 0.1; done; echo went through ${name}` } }
  }

  async reached(name: string, { task }: { task: string }): Promise<void> {
    const file = join(this.signs, `${name}.reached`)
    await until(
      () => existsSync(file),
      () => this.story(task),
    )
  }

  open(name: string): void {
    writeFileSync(join(this.signs, `${name}.open`), '')
  }

  async said(task_id: string, words: string): Promise<void> {
    const found = async () => (await this.transcript(task_id)).some(({ body }) => body?.includes(words))
    await until(found, async () => `"${words}" in the transcript: ${await this.story(task_id)}`)
  }

  /** What a person who looks for the fault wants to see. */
  async story(task_id: string): Promise<string> {
    const entries = (await this.transcript(task_id)).map(({ kind, name, body }) => `  ${kind} ${name ?? ''} ${String(body).slice(0, 400)}`)
    const asked = this.model.requests.map(({ api, path }) => `${api} ${path}`)
    const runs = (await this.runs(task_id)).map(({ life, state, outcome, exit_code }) => ({ life, state, outcome, exit_code }))
    const { status, attention, attention_detail } = await this.get(task_id)
    const task = JSON.stringify({ status, attention, attention_detail })
    return [task, JSON.stringify(runs), ...entries, `asked the model: ${asked.join(', ')}`, this.daemon.log.slice(-2_000)].join('\n')
  }
}

/** A program of some hundred megabytes takes its time on a machine that does much else. */
export async function until(holds: () => unknown, otherwise: () => Promise<string>): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  while (!(await holds())) {
    if (performance.now() > deadline) throw new Error(`this never came true: ${await otherwise()}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
}

const FOLDERS: Record<string, string> = { CONFIG: '.config', DATA: '.local/share', CACHE: '.cache', STATE: '.local/state' }

/** Everything on this machine whose command line has these words. */
export function processesWith(words: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^[0-9]+$/.test(name)) return []
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(words) ? [Number(name)] : []
    } catch {
      return []
    }
  })
}
