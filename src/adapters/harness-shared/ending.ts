import type { HarnessEvent } from '../../ports/harness.ts'
import { type Exit, STOP_REASONS } from '../../ports/runner.ts'
import { clean, clip } from './lines.ts'
import type { Story } from './story.ts'

export interface Ending {
  ok: boolean
  /** We ended it; that is no failure of the program. */
  stopped: boolean
  reason: string
}

/** Judged by the exit record alone, never by what was printed. */
export function ending(exit: Exit): Ending {
  const stopped = (STOP_REASONS as readonly string[]).includes(exit.reason)
  return { ok: exit.reason === 'exited' && exit.code === 0, stopped, reason: clip(clean(sentence(exit))) }
}

function sentence({ reason, code, signal, detail }: Exit): string {
  const told = detail ? `: ${detail}` : ''
  if (reason === 'spawn_failed') return `it could not be started${told}`
  if (reason === 'runner_lost') return `its runner is gone, nobody knows how it ended${told}`
  if (reason !== 'exited') return `${reason}${told}`
  return signal ? `ended by ${signal}` : `exited with code ${code}`
}

/**
 * The last events: an open turn ends, a failure that the program did not tell itself is told, and `exited` comes last. Where a program
 * says of its work whether it was done, `done` is that: some exit with 0 after a failure.
 */
export function conclude(story: Story, exit: Exit, done = true): HarnessEvent[] {
  const exited = ending(exit)
  const { stopped } = exited
  const ok = exited.ok && done
  const reason = exited.ok && !done ? `${exited.reason}, without having done its work` : exited.reason
  const how = ok ? 'completed' : stopped || story.interrupted ? 'interrupted' : 'failed'
  const events: HarnessEvent[] = story.turn ? [{ type: 'turn_ended', how }] : []
  if (how === 'failed' && !story.told) events.push({ type: 'failed', reason })
  return [...events, { type: 'exited', ok, reason }]
}
