import type { EventOf, EventType } from './event.ts'
import type { Ask } from './point.ts'
import type { Tx } from './storage.ts'
import type { Ports, Report } from './tool.ts'

export interface ReactorContext {
  readonly view: Tx
  readonly ask: Ask<ReactorContext>
  readonly ports: Ports
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
  /** Tells of every event of this type, as it is committed, until the daemon stops. */
  on<E extends EventType>(type: E, listener: (event: EventOf<E>) => void): void
  /** Tells what was seen, through an internal tool, as `system`. Rejects when the tool refuses. */
  readonly report: Report
  /** What went wrong with nobody to hear it. */
  defect(error: unknown): void
}

/**
 * Follows something in the outside world that has no end of its own, as long as the daemon lives. What it has seen is in
 * rows, so that the next daemon goes on there; what is to be *done* is an effect.
 */
export interface Reactor {
  name: string
  /** Resolves when it has taken up what was there; what it then does ends soon after the signal. */
  start(ctx: ReactorContext): Promise<{ ended: () => Promise<void> }>
}
