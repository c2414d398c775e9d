import { onTestFinished } from 'vitest'
import { EFFECT_TIMES } from '../kernel/effect.ts'
import { openTestApp } from './app.ts'
import { FakeListeners } from './fakes/listeners.ts'
import { until } from './signals.ts'
import { CheckingRunner, type Work, WorkGround } from './work.ts'

/** Agents are played in worktrees that are really set up. */
export class SetupGround extends WorkGround {
  readonly runner: CheckingRunner
  readonly listeners: FakeListeners

  constructor(app: WorkGround['app'], runner: CheckingRunner, listeners: FakeListeners) {
    super(app)
    this.runner = runner
    this.listeners = listeners
  }

  static async open(
    repo: Record<string, unknown> = {},
    runner = new CheckingRunner(),
    options: { hostName?: string } = {},
  ): Promise<SetupGround> {
    const listeners = new FakeListeners()
    const app = await openTestApp(Object.assign(options, { ports: { runner, listeners }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } }))
    onTestFinished(() => app.close())
    const ground = await new SetupGround(app, runner, listeners).prepare()
    await app.owner.call('setting_update', { key: 'runs.max_lives', value: 1 })
    if (Object.keys(repo).length) await ground.change(repo)
    return ground
  }

  change(fields: Record<string, unknown>) {
    return this.app.owner.call('repo_update', { repo_id: this.repo, ...fields })
  }

  async start(fields: Record<string, unknown> = {}): Promise<{ id: string; handle: string }> {
    const task = await this.app.task(fields)
    await this.app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    return task
  }

  async job(task: string) {
    return (await this.app.owner.call('job_list', { task_id: task })).jobs[0]
  }

  async runs(task: string) {
    return (await this.app.owner.call('run_list', { task_id: task })).runs
  }

  async running(task: string): Promise<void> {
    await until(async () => (await this.runs(task))[0]?.state === 'running')
  }

  async place(task: string): Promise<string> {
    return (await this.app.owner.call('work_get', { task_id: task })).work.path
  }

  async attention(task: string) {
    const { attention, attention_detail } = (await this.app.owner.call('task_get', { task_id: task })).task
    return [attention, attention_detail]
  }

  approve({ task }: Work) {
    return this.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
  }

  async line() {
    return (await this.app.owner.call('merge_status', { repo_id: this.repo })).lines[0]
  }

  /** Agents that were started, setups and checks left out. */
  get agents(): string[] {
    return this.runner.started.filter((run) => run.startsWith('run_'))
  }
}
