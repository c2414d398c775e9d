import { expect, test } from 'vitest'
import { deferred, until } from '../testing/signals.ts'
import { AuditBuffer } from './audit.ts'
import type { CallRecord, Ledger } from './log.ts'
import type { Storage } from './storage.ts'

/** Writes one at a time, when the test lets it. */
function slowStorage() {
  const seen = { written: [] as string[], transactions: 0 }
  const gate = deferred()
  const ledger = {
    audit: async (_tx, calls) => void seen.written.push(...calls.map(({ id }) => id)),
    countRefusals: async () => {},
  } as Partial<Ledger> as Ledger
  const storage = {
    async write(job: (tx: never) => Promise<unknown>) {
      seen.transactions++
      await gate.promise
      await new Promise((resolve) => setImmediate(resolve))
      return job(undefined as never)
    },
  } as Partial<Storage> as Storage
  return { seen, gate, buffer: new AuditBuffer(ledger, storage, () => 0) }
}

test('[K6] reads that are flushed while an earlier flush is under way are written once, and both come to an end', async () => {
  const { seen, gate, buffer } = slowStorage()
  const ids = Array.from({ length: 500 }, (_, i) => String(i))
  for (const id of ids) buffer.add({ id } as CallRecord)
  const first = buffer.flush()
  await until(() => seen.transactions === 1)
  const others = [buffer.flush(), buffer.close()]
  gate.resolve()
  await Promise.all([first, ...others])
  expect(seen.written).toEqual(ids)
  expect(seen.transactions).toBe(3)
})
