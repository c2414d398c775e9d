import { Refusal, refuse, TransientFault } from '../kernel/error.ts'
import type { Tx } from '../kernel/storage.ts'
import type { Place, PlacedRow, RowOrder } from './row-order.ts'
import {
  BEFORE_THE_FIRST,
  digest,
  type Hashed,
  hashRow,
  hashSeal,
  headOf,
  marks,
  parseHead,
  SEALED_TABLES,
  type Seal,
  type SealedTable,
} from './seal.ts'
import { NONE_OF_OURS, sealStore } from './seal-store.ts'

export type Problem = 'changed' | 'missing' | 'inserted' | 'moved'

/** The first place at which rows and seals disagree. */
export interface Fault {
  table: SealedTable | 'seals'
  /** The row's number; of a seal, its own. */
  seq: number
  problem: Problem
  seal: number
  sealed_at: number | null
}

export interface Walk {
  head: string | null
  sealed: Record<SealedTable, number>
  unsealed: Record<SealedTable, number>
  fault: Fault | undefined
}

export type Expectation = 'found' | 'rewritten' | 'cut'

/** What is known beyond the rows at hand, asked only to say what exactly is wrong. */
export interface Beyond {
  exists(table: SealedTable, seq: number): Promise<boolean>
  isSealed(table: SealedTable, seq: number): Promise<boolean>
}

const SEALS_A_PAGE = 20

/**
 * Compares every sealed row with its seal. What is sealed no longer moves, and nothing can be committed before it: so it is
 * read page by page while others write, up to the seal that was the last one when it began.
 */
export async function walkSeals(view: Tx, order: RowOrder, isStopping: () => boolean): Promise<Walk> {
  const head = await sealStore(view).head()
  const walk: Walk = {
    head: head ? headOf(head) : null,
    sealed: { events: 0, calls: 0 },
    unsealed: { events: 0, calls: 0 },
    fault: undefined,
  }
  if (!head) return { ...walk, unsealed: await unsealed(view, order, {}) }
  const after: Partial<Record<SealedTable, Place>> = {}
  let last: Pick<Seal, 'number' | 'hash'> = { number: 0, hash: BEFORE_THE_FIRST }
  for await (const seal of inPages(view, head.number)) {
    if (!seal) return { ...walk, fault: unreadable('seals', last.number + 1, last.number + 1) }
    if (isStopping()) throw refuse('SHUTTING_DOWN', 'The daemon is stopping; the seals were not read to their end.')
    walk.fault = sealFault(seal, last) ?? (await walkRows(view, order, seal, after, walk))
    if (walk.fault) return walk
    last = seal
  }
  if (await sealStore(view).hasForeign())
    return { ...walk, fault: { ...unreadable('seals', NONE_OF_OURS, NONE_OF_OURS), problem: 'inserted' } }
  return { ...walk, unsealed: await unsealed(view, order, after) }
}

/** A number that no program of ours could have written: it cannot even be read. */
function unreadable(table: Fault['table'], seq: number, seal: number): Fault {
  return { table, seq, problem: 'changed', seal, sealed_at: null }
}

/** Undefined in the place of one that cannot be read. */
async function* inPages(view: Tx, upTo: number): AsyncGenerator<Seal | undefined> {
  for (let last: Seal | undefined; ; ) {
    const page = await readable((limit) => sealStore(view).page(last?.number, upTo, limit), SEALS_A_PAGE)
    if (!page) return yield undefined
    for (const seal of page) {
      yield seal
      // Health and everybody else's calls come in between.
      await new Promise((resolve) => setImmediate(resolve))
    }
    last = page.at(-1)
    if (!last) return
  }
}

async function unsealed(view: Tx, order: RowOrder, after: Partial<Record<SealedTable, Place>>) {
  return { events: await order.count(view, 'events', after.events), calls: await order.count(view, 'calls', after.calls) }
}

/** As many rows as are wanted, or as can be read; undefined when the very next one cannot. A fault of storage is no finding. */
async function readable<T>(read: (limit: number) => Promise<T[]>, limit: number): Promise<T[] | undefined> {
  try {
    return await read(limit)
  } catch (error) {
    if (error instanceof TransientFault || error instanceof Refusal) throw error
    return limit === 1 ? undefined : readable(read, Math.ceil(limit / 2))
  }
}

async function walkRows(view: Tx, order: RowOrder, seal: Seal, after: Partial<Record<SealedTable, Place>>, walk: Walk) {
  const hashed: Record<SealedTable, Hashed[]> = { events: [], calls: [] }
  for (const table of SEALED_TABLES) {
    const list = marks(seal[table])
    const rows: PlacedRow[] = []
    while (rows.length < list.length) {
      const some = await readable((limit) => order.following(view, table, rows.at(-1) ?? after[table], limit), list.length - rows.length)
      if (!some) return unreadable(table, (list[rows.length] as [number, string])[0], seal.number)
      if (!some.length) break
      rows.push(...some)
    }
    hashed[table] = rows.map((row) => ({ seq: row.seq, hash: hashRow(table, row) }))
    after[table] = rows.at(-1) ?? after[table]
    walk.sealed[table] += rows.length
  }
  const beyond: Beyond = {
    exists: async (table, seq) => (await order.placeOf(view, table, seq)) !== undefined,
    isSealed: (table, seq) => sealStore(view).seals(table, seq),
  }
  return rowsFault(seal, hashed, beyond)
}

/** Whether it is the next link, as it was made. */
export function sealFault(seal: Seal, last: Pick<Seal, 'number' | 'hash'>): Fault | undefined {
  const next = last.number + 1
  const fault = (seq: number, problem: Problem): Fault => ({ table: 'seals', seq, problem, seal: seq, sealed_at: seal.at })
  if (seal.number > next) return { ...fault(next, 'missing'), sealed_at: null }
  if (seal.number < next) return fault(seal.number, 'inserted')
  return seal.previous === last.hash && seal.hash === hashSeal(seal) ? undefined : fault(next, 'changed')
}

/** Of a seal that is itself as it was made. */
export async function rowsFault(seal: Seal, rows: Record<SealedTable, Hashed[]>, beyond: Beyond): Promise<Fault | undefined> {
  const where = { seal: seal.number, sealed_at: seal.at }
  for (const table of SEALED_TABLES) {
    const found = await firstBad(table, seal, rows[table], beyond)
    if (found) return { table, ...found, ...where }
  }
  // Every row fits its short mark and yet not all fit the long hash: a row was made to fit its mark.
  return digest(rows) === seal.rows ? undefined : { table: 'seals', seq: seal.number, problem: 'changed', ...where }
}

async function firstBad(table: SealedTable, seal: Seal, rows: Hashed[], beyond: Beyond) {
  const list = marks(seal[table])
  const at = list.findIndex(([seq, mark], i) => rows[i]?.seq !== seq || !rows[i].hash.startsWith(mark))
  const here = rows[at < 0 ? list.length : at]
  if (at < 0) return here && { seq: here.seq, problem: 'inserted' as const }
  const [seq] = list[at] as [number, string]
  if (here?.seq === seq) return { seq, problem: 'changed' as const }
  if (!(await beyond.exists(table, seq))) return { seq, problem: 'missing' as const }
  if (here && !(await beyond.isSealed(table, here.seq))) return { seq: here.seq, problem: 'inserted' as const }
  return { seq: here?.seq ?? seq, problem: 'moved' as const }
}

/** Whether the chain has the seal that a head kept elsewhere names. */
export async function compare(expect: string, hashOf: (number: number) => Promise<string | undefined>): Promise<Expectation> {
  const head = parseHead(expect)
  if (!head) throw notAHead(expect)
  const hash = await hashOf(head.number)
  if (hash === undefined) return 'cut'
  return hash === head.hash ? 'found' : 'rewritten'
}

function notAHead(text: string) {
  return refuse('INVALID_INPUT', `"${text.slice(0, 90)}" is not a head.`, { hint: 'It looks like 12.9f86d081…, as audit_verify gives it.' })
}

export interface Verdict {
  ok: boolean
  head: string | null
  sealed_events: number
  sealed_calls: number
  unsealed_events: number
  unsealed_calls: number
  first_bad: Fault | null
  expected: Expectation | null
  meaning: string
}

export function verdict(walk: Walk, expected: Expectation | null): Verdict {
  const { head, sealed, unsealed, fault } = walk
  return {
    ok: !fault && (expected ?? 'found') === 'found',
    head,
    sealed_events: sealed.events,
    sealed_calls: sealed.calls,
    unsealed_events: unsealed.events,
    unsealed_calls: unsealed.calls,
    first_bad: fault ?? null,
    expected,
    meaning: [fault ? faultMeans(fault) : SOUND, expected ? EXPECTED_MEANS[expected] : fault ? '' : UNKNOWN].filter(Boolean).join(' '),
  }
}

const SOUND = 'Every sealed row is what it was when it was sealed, or the chain was rebuilt from an edited row on.'
const UNKNOWN = 'Only a head that was kept elsewhere (expect) tells the two apart.'

const EXPECTED_MEANS: Record<Expectation, string> = {
  found: 'The chain has the seal that was expected: up to there nothing was rewritten.',
  rewritten: 'The chain has another seal in the place of the one that was expected: it was rewritten since that head was noted.',
  cut: 'The chain ends before the seal that was expected: it was cut, or the database was put back to an older state, such as a backup.',
}

function faultMeans({ table, seq, problem, seal, sealed_at }: Fault): string {
  const when = sealed_at === null ? '' : ` of ${timeOf(sealed_at)}`
  const rest = 'Past Signalbox: none of its tools does that. Who did it is not known, and what comes after it was not looked at.'
  if (table === 'seals') return `${SEAL_MEANS[problem](seq, when)} ${rest}`
  return `Row ${seq} of ${table} ${ROW_MEANS[problem]} (seal ${seal}${when}). ${rest}`
}

/** A damaged seal may name any number. */
function timeOf(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms)
}

const ROW_MEANS: Record<Problem, string> = {
  changed: 'is not what it was when it was sealed',
  missing: 'was sealed and is gone',
  inserted: 'stands among sealed rows and was never sealed',
  moved: 'stands in another place of the order than when it was sealed',
}

const SEAL_MEANS: Record<Problem, (number: number, when: string) => string> = {
  changed: (number, when) => `Seal ${number}${when} is not what it was when it was made, or does not belong to this chain.`,
  missing: (number) => `Seal ${number} is gone.`,
  inserted: (number, when) => `Seal ${number}${when} is none of this chain.`,
  moved: (number, when) => `Seal ${number}${when} stands in another place.`,
}
