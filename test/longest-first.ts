import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Long, and mostly short to read: vitest, which on a fresh clone takes the length of a file for its duration, would begin them
 * last, and one of its workers would have nothing to do meanwhile.
 */
const LONG = [
  'test/browser/accessible.test.ts',
  'test/browser/live.test.ts',
  'src/adapters/tmux/tmux.test.ts',
  'test/chaos/kill-review.test.ts',
  'src/capabilities/merge/line.test.ts',
  'src/adapters/git-cli/hostile.test.ts',
  'src/capabilities/merge/landing.test.ts',
  'src/capabilities/epic/reconcile.test.ts',
  'test/e2e/paths.test.ts',
  'src/adapters/git-cli/line.test.ts',
  'src/capabilities/merge/merge.test.ts',
  'src/capabilities/review/decide.test.ts',
  'src/db/postgres-copy.test.ts',
  'src/adapters/effects-graphile/graphile.test.ts',
  'test/chaos/postgres.test.ts',
  'test/mcp/pipe.test.ts',
  'test/e2e/runs.test.ts',
  'test/chaos/kill-runs.test.ts',
  'test/e2e/session.test.ts',
  'src/adapters/effects-shared/effects.test.ts',
  'src/capabilities/job/job.test.ts',
  'src/capabilities/review/feedback.test.ts',
  'test/browser/merge.test.ts',
  'src/kernel/invoke.test.ts',
  'test/mcp/versions.test.ts',
  'test/chaos/wait-load.test.ts',
  'test/chaos/kill-line.test.ts',
  'test/e2e/postgres-copy.test.ts',
  'test/chaos/postgres-effects.test.ts',
  'test/chaos/effects-killed.test.ts',
  'src/adapters/git-cli/rebase.test.ts',
  'src/capabilities/task/task.test.ts',
  'src/adapters/git-cli/git.test.ts',
  'test/e2e/storage.test.ts',
  'test/e2e/waits.test.ts',
  'test/e2e/audit.test.ts',
  'test/e2e/review.test.ts',
  'test/chaos/kill-epic.test.ts',
  'test/chaos/kill-daemon.test.ts',
  'test/e2e/effects-clock.test.ts',
  'test/e2e/postgres.test.ts',
]

/** A worker whose next file is of another project is ended, and the next one loads the whole product again: 2 s each, 60 times a run. */
const PROJECTS = ['whole', 'postgres', 'sqlite']

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const root = this.ctx.config.root
    const place = ({ moduleId, project }: TestSpecification) => {
      const known = LONG.indexOf(relative(root, moduleId))
      return PROJECTS.indexOf(project.name) * 1_000 + (known < 0 ? LONG.length : known)
    }
    return (await super.sort(files)).sort((a, b) => place(a) - place(b))
  }
}
