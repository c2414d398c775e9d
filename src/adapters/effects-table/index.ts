import { effectStore } from '../../db/effect-store.ts'
import type { Effects, EffectsParts, Work } from '../../ports/effects.ts'
import { Attempt } from '../effects-shared/attempt.ts'

const AT_ONCE = 8
/** The clock of the database may jump while a timer runs; it is looked at again at least this often. */
const LONGEST_TIMER_MS = 60_000
const TRY_AGAIN_MS = 1_000

/** The embedded driver: one process owns the table, so what it finds on lease at its start was cut off. */
export function createTableEffects(parts: EffectsParts): Effects {
  const { engine, owner, times } = parts
  const store = (tx = engine.view) => effectStore(tx, engine.facts)
  const running = new Map<string, Attempt>()
  let work: Work | undefined
  let timer: NodeJS.Timeout | undefined
  let filling: Promise<void> | undefined
  let again = false

  function wake(): void {
    again = true
    filling ??= fill()
      .then(
        () => true,
        () => later(TRY_AGAIN_MS),
      )
      .then((looked) => {
        filling = undefined
        // A wake between the last look and here would otherwise be lost.
        if (looked && again && work) wake()
      })
  }

  async function fill(): Promise<void> {
    while (again && work) {
      again = false
      // Before the look at what is due: one whose time comes between the two would otherwise be in neither, and wait for ever.
      const next = await store().nextInMs()
      // Those that run here come on top: after a jump of the clock their leases seem to be over.
      for (const id of await store().due(AT_ONCE + running.size)) if (work && !running.has(id)) await begin(id, work)
      if (next !== undefined) later(next)
    }
  }

  async function begin(id: string, doWork: Work): Promise<void> {
    if (running.size >= AT_ONCE) return
    const row = await engine.write((tx) => store(tx).claim(id, owner, times.leaseMs))
    if (!row) return
    const attempt = new Attempt(parts, row)
    running.set(id, attempt)
    void attempt.run(doWork).finally(() => {
      running.delete(id)
      wake()
    })
  }

  function later(ms: number): void {
    clearTimeout(timer)
    if (work) timer = setTimeout(wake, Math.min(Math.max(ms, 1), LONGEST_TIMER_MS))
  }

  return {
    enqueue: async (tx, effects) => void (await store(tx).insert(effects)),
    decide: (tx, id, decision) => store(tx).decide(id, decision),
    wake,
    async start(doWork) {
      await engine.write((tx) => store(tx).expireAllBut([]))
      work = doWork
      wake()
    },
    async stop(deadlineMs) {
      work = undefined
      clearTimeout(timer)
      await filling
      await Attempt.drain([...running.values()], deadlineMs, times.graceMs)
    },
  }
}
