import { exportPage } from '../db/audit-export.ts'
import type { Engine } from '../db/engine.ts'
import { sealStore } from '../db/seal-store.ts'
import { Sealer } from '../db/sealer.ts'
import { compare, verdict, type Walk, walkSeals } from '../db/verify.ts'
import { Refusal, TransientFault } from '../kernel/error.ts'
import type { Storage } from '../kernel/storage.ts'
import type { Seals } from '../ports/seals.ts'

/** The sealer, and what the tools see of its chain. */
export function createSeals(engine: Engine, now: () => number, onDefect: (error: unknown) => void) {
  const { view, order } = engine
  // Storage that is away or full is told by health, and sealing goes on with it.
  const onFault = (error: unknown) => error instanceof TransientFault || error instanceof Refusal || onDefect(error)
  const sealer = new Sealer({ storage: engine, order, now, onFault })
  let stopping = false
  let walking: Promise<Walk> | undefined
  /** One at a time, shared by all who ask: a storm of them must not read the whole log once for each. */
  const walk = () => {
    walking ??= walkSeals(view, order, () => stopping).finally(() => {
      walking = undefined
    })
    return walking
  }
  const port: Seals = {
    async verify(expect) {
      const walked = await walk()
      const hashOf = async (number: number) => (await sealStore(view).find(number))?.hash
      return verdict(walked, expect === undefined ? null : await compare(expect, hashOf))
    },
    page: (after) => exportPage(view, order, after),
  }
  return {
    sealer,
    port,
    async close() {
      stopping = true
      await walking?.catch(() => {})
      await sealer.close()
    },
  }
}

/** Every call and every event is written through this: after each commit there may be something to seal. */
export function sealing(engine: Storage, sealer: Sealer): Storage {
  return {
    view: engine.view,
    ...(engine.hold ? { hold: engine.hold.bind(engine) } : {}),
    async write(job) {
      const value = await engine.write(job)
      sealer.wake()
      return value
    },
  }
}
