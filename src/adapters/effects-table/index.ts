import { type EffectRow, effectStore } from '../../db/effect-store.ts'
import type { Engine } from '../../db/engine.ts'
import type { Claim, Outcome } from '../../kernel/effect.ts'
import type { Effects } from '../../ports/effects.ts'
import { Attempt, LEASE_MS } from './attempt.ts'

const AT_ONCE = 8
const LONGEST_TIMER_MS = 60_000

/** The embedded driver: one process owns the table, so what it finds on lease at its start was cut off. */
export function createTableEffects(engine: Engine, owner: string): Effects {
  const store = (tx = engine.view) => effectStore(tx, engine.facts)
  const running = new Map<string, { row: EffectRow; attempt: Attempt }>()
  let work: ((claim: Claim) => Promise<Outcome>) | undefined
  let timer: NodeJS.Timeout | undefined
  let filling: Promise<void> | undefined
  let again = false

  function wake(): void {
    again = true
    filling ??= fill()
      .catch(() => later(1_000))
      .finally(() => {
        filling = undefined
      })
  }

  async function fill(): Promise<void> {
    while (again && work) {
      again = false
      for (const { id, queue } of await store().due(AT_ONCE * 4)) {
        if (!work || running.size >= AT_ONCE) break
        if (running.has(id) || (queue !== null && [...running.values()].some(({ row }) => row.queue === queue))) continue
        await begin(id, work)
      }
    }
    const next = await store().nextInMs()
    if (next !== undefined && work) later(next)
  }

  async function begin(id: string, doWork: (claim: Claim) => Promise<Outcome>): Promise<void> {
    const claimed = await engine.write((tx) => store(tx).claim(id, owner, LEASE_MS))
    if (!claimed) return
    const attempt = new Attempt(engine, claimed.row, claimed.cutOff)
    running.set(id, { row: claimed.row, attempt })
    void attempt.run(doWork).finally(() => {
      running.delete(id)
      wake()
    })
  }

  function later(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(wake, Math.min(Math.max(ms, 1), LONGEST_TIMER_MS))
  }

  return {
    enqueue: async (tx, effects) => void (await store(tx).insert(effects)),
    decide: (tx, id, decision) => store(tx).decide(id, decision),
    wake,
    async start(doWork) {
      await engine.write((tx) => store(tx).expire(undefined))
      work = doWork
      wake()
    },
    async stop(deadlineMs) {
      work = undefined
      clearTimeout(timer)
      await filling
      await Attempt.drain(
        [...running.values()].map(({ attempt }) => attempt),
        deadlineMs,
      )
    },
  }
}
