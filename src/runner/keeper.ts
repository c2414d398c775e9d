import type { Halt } from './ending.ts'
import type { Line } from './socket.ts'
import type { Spec } from './spec.ts'
import type { Spool } from './spool.ts'

/** What goes into the spool, within its limit. */
export interface Keeper {
  /** Written before more is read: an agent that prints faster than the disk takes it is slowed by its own pipe. */
  printed(stream: 'out' | 'err', bytes: Buffer): void
  /** False when it could not be kept, and so must not be passed on. */
  told(text: string, seq?: number): boolean
}

export function createKeeper({ outputBytes, graceMs }: Spec, spool: Spool, line: Line, halt: Halt): Keeper {
  let left = outputBytes
  function keep(...frame: Parameters<Spool['append']>): boolean {
    try {
      spool.append(...frame)
      line.grew()
      return true
    } catch (error) {
      left = -1
      halt.ask({ reason: 'spool_failed', detail: `What it printed could not be kept: ${(error as Error).message}` }, graceMs)
      return false
    }
  }
  return {
    printed(stream, bytes) {
      if (left < 0) return
      const fits = bytes.length <= left
      const kept = keep(stream, bytes.subarray(0, left))
      if (!kept) return
      left = fits ? left - bytes.length : -1
      if (!fits) halt.ask({ reason: 'output_limit', detail: `It printed more than ${outputBytes} bytes.` }, graceMs)
    },
    told: (text, seq) => left >= 0 && keep('in', Buffer.from(text), seq),
  }
}
