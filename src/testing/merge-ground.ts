import { onTestFinished } from 'vitest'
import { EFFECT_TIMES } from '../kernel/effect.ts'
import { openTestApp } from './app.ts'
import { CheckingRunner, type Work, WorkGround } from './work.ts'

/** Green: `red.txt` is not there, and neither are `left.txt` and `right.txt` both. */
const CHECKS = 'ls; test ! -e red.txt && { test ! -e left.txt || test ! -e right.txt; }'

export class MergeGround extends WorkGround {
  readonly runner: CheckingRunner

  constructor(app: WorkGround['app'], runner: CheckingRunner) {
    super(app)
    this.runner = runner
  }

  approve({ task }: Work) {
    return this.app.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
  }

  async line() {
    return (await this.app.owner.call('merge_status', { repo_id: this.repo })).lines[0]
  }

  async task({ task }: Work) {
    return (await this.app.owner.call('task_get', { task_id: task.id })).task
  }

  files(branch: string): string[] {
    return this.git(this.top, 'ls-tree', '--name-only', branch).split('\n')
  }
}

export async function mergeGround(checks: string | undefined = CHECKS): Promise<MergeGround> {
  const runner = new CheckingRunner()
  const app = await openTestApp({ ports: { runner }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
  onTestFinished(() => app.close())
  return new MergeGround(app, runner).prepare(checks ? { checks } : {})
}

export const LINE = 'refs/signalbox/line/main'
