import { pause } from '../kernel/patience.ts'
import type { ReactorContext } from '../kernel/reactor.ts'

const TRY_AGAIN_MS = 1_000

/** Until it says that it is done. What goes wrong is told, and tried again. */
export async function repeatedly(ctx: ReactorContext, once: () => Promise<boolean>): Promise<void> {
  while (!ctx.signal.aborted) {
    try {
      if (await once()) return
    } catch (error) {
      if (ctx.signal.aborted) return
      ctx.defect(error)
    }
    await pause(TRY_AGAIN_MS, ctx.signal)
  }
}
