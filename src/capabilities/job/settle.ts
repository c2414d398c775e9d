import type { Code } from '../../kernel/error.ts'
import { iso } from '../../kernel/schema.ts'
import type { WorkState } from '../../ports/git.ts'
import type { RunRow } from '../run/index.ts'

/** Everything that decides what comes after a run. */
export interface Ending {
  run: RunRow
  /** The life before this one in the same job. */
  before: RunRow | undefined
  /** `problem`: why it could not be looked at. */
  work: Pick<WorkState, 'ahead' | 'dirty' | 'fingerprint'> & { problem: string | null }
  /** How the jobs before this one had left the worktree; undefined when nobody was there. */
  foundAs: string | undefined
  /** Where somebody else has put the task meanwhile. */
  movedTo: string | undefined
  lives: number
  mostLives: number
  backOffMs: number
  cancelAsked: boolean
  /** It asked for review: what comes of the task is no longer its matter. */
  reported: boolean
  /** … but its work came back before it had ended. */
  sentBack: boolean
  /** It leads an epic, or reviews: it has done what there was to do, and has nothing to hand in. */
  duty: boolean
  /** Whether there is still something to be done on the task. */
  taskOpen: boolean
  now: number
}

/** `review`: what is handed in for the agent, which did not do so itself. */
export type Next =
  | { next: 'succeeded'; review?: string }
  | { next: 'failed'; code: Code | null; reason: string; review?: string }
  | { next: 'cancelled'; reason: string }
  | { next: 'again'; at: number; reason: string }
  | { next: 'recalled' }
  | { next: 'parked'; at: number; reason: string }

const LIMIT_REASONS: Record<string, string> = {
  wall_clock: 'Its time was up.',
  output_limit: 'It printed more than it may.',
}

/**
 * What comes after a run, the first line that fits:
 *
 * | it ended                                              | then                                              |
 * |-------------------------------------------------------|---------------------------------------------------|
 * | and had asked for review, and nobody sent it back     | succeeded                                         |
 * | its task is done or deleted                           | cancelled, nobody is started again                |
 * | because somebody stopped it                           | cancelled                                         |
 * | well, and the task is in REVIEW                       | succeeded                                         |
 * | and somebody had moved the task elsewhere             | cancelled                                         |
 * | at a limit                                            | failed, with the limit                            |
 * | because the provider gives no more                    | parked until the provider does                    |
 * | and its worktree cannot be looked at                  | failed, with the reason                           |
 * | and its work was sent back meanwhile                  | recalled: started again at once                   |
 * | by itself and well, and leads or reviews               | succeeded: it waits                               |
 * | by itself and well, with work to show                 | succeeded: the work is handed in for it           |
 * | by itself and well, with nothing to show of its own   | failed                                            |
 * | as the life before it, and nothing changed meanwhile  | failed: it would only do so again                 |
 * | after as many lives as it may have                    | failed; what is committed is handed in            |
 * | in any other way                                      | again, after a back-off                           |
 */
export function whatNext(ending: Ending): Next {
  const { run, work } = ending
  const failure = run.failure ?? run.exit_detail ?? run.exit_reason ?? 'It ended.'
  if (ending.reported && !ending.sentBack) return { next: 'succeeded' }
  if (!ending.taskOpen) return { next: 'cancelled', reason: 'The task is over.' }
  // Ended because it had handed in is not stopped.
  const stopped = run.stop_asked === 'stopped' && !ending.sentBack
  if (ending.cancelAsked || stopped) return { next: 'cancelled', reason: 'It was stopped.' }
  if (ending.movedTo === 'REVIEW' && run.ok === 1) return { next: 'succeeded' }
  if (ending.movedTo) return { next: 'cancelled', reason: `The task was moved to ${ending.movedTo} before it ended.` }
  if (run.stop_asked === 'budget') return { next: 'failed', code: 'BUDGET_EXHAUSTED', reason: failure }
  const limit = LIMIT_REASONS[run.exit_reason ?? '']
  if (limit) return { next: 'failed', code: 'BUDGET_EXHAUSTED', reason: limit }
  if (run.resets_at !== null) return { next: 'parked', at: run.resets_at, reason: `${failure} It goes on at ${iso(run.resets_at)}.` }
  if (work.problem) return { next: 'failed', code: null, reason: work.problem }
  if (ending.sentBack) return { next: 'recalled' }
  const commits = `${counted(work.ahead, 'commit')}${work.dirty ? ` and ${counted(work.dirty, 'changed file')} that it did not commit` : ''}`
  if (run.ok === 1 && ending.duty) return { next: 'succeeded' }
  if (run.ok === 1) {
    const unchanged = ending.foundAs === work.fingerprint
    if (work.ahead && !unchanged)
      return { next: 'succeeded', review: `The agent ended well, without asking for review itself. It left ${commits}.` }
    const left = work.dirty && !unchanged ? `It left ${counted(work.dirty, 'changed file')} that it did not commit.` : 'It changed nothing.'
    return { next: 'failed', code: null, reason: `It ended without asking for review. ${left}` }
  }
  // Its setup failed, or its program is not there: nobody has died.
  const hasBegun = run.started_at !== null
  if (sameAgain(ending)) {
    const reason = hasBegun ? `Twice the same, and nothing changed in between: ${failure}` : failure
    return { next: 'failed', code: null, reason }
  }
  if (ending.lives >= ending.mostLives) {
    const reason = hasBegun ? `It died ${counted(ending.lives, 'time')}, at last so: ${failure}` : failure
    return { next: 'failed', code: null, reason, ...(work.ahead && !ending.duty ? { review: `${reason} It left ${commits}.` } : {}) }
  }
  const at = ending.now + ending.backOffMs * 2 ** (ending.lives - 1)
  return { next: 'again', at, reason: failure }
}

function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? '' : 's'}`
}

/** A machine that fails in the same way on the same tree will do so for ever. A lost process says nothing of the kind. */
function sameAgain({ run, before, work }: Ending): boolean {
  if (!before || run.exit_reason === 'runner_lost' || run.exit_signal === 'SIGKILL') return false
  return before.failure === run.failure && before.exit_code === run.exit_code && before.fingerprint === work.fingerprint
}
