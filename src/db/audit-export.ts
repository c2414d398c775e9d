import { refuse } from '../kernel/error.ts'
import { redact, redactText } from '../kernel/redact.ts'
import type { Tx } from '../kernel/storage.ts'
import type { Place, RowOrder } from './row-order.ts'
import {
  BEFORE_THE_FIRST,
  type Hashed,
  hashRow,
  headOf,
  marks,
  parseHead,
  SEALED,
  SEALED_TABLES,
  type Seal,
  type SealedRow,
  type SealedTable,
  sha256,
} from './seal.ts'
import { lastSealed, sealStore } from './seal-store.ts'
import { compare, type Fault, rowsFault, sealFault, type Verdict, verdict, type Walk } from './verify.ts'

/** A page ends with the seal that fills it. */
const PAGE_CHARACTERS = 1_000_000

export interface ExportPage {
  /** Each a line of the file: the rows of a seal, then the seal. */
  lines: string[]
  /** The hash that the first seal of the page builds on. */
  previous: string
  last: number
  /** Where the chain ended when the page was read. */
  head: string | null
}

export async function exportPage(view: Tx, order: RowOrder, after: number): Promise<ExportPage> {
  const store = sealStore(view)
  const head = await store.head()
  const before = after === 0 ? undefined : await store.find(after)
  if (after !== 0 && !before)
    throw refuse('RESOURCE_NOT_FOUND', `There is no seal ${after}.`, { hint: `The last one is ${head?.number ?? 0}.` })
  const lines: string[] = []
  const places = { events: await lastSealed(view, order, 'events', after + 1), calls: await lastSealed(view, order, 'calls', after + 1) }
  let last = after
  for (let size = 0; head && last < head.number && size < PAGE_CHARACTERS; ) {
    const [seal] = await store.page(last, head.number, 1)
    if (!seal) break
    const added = [...(await rowLines(view, order, seal, places)), JSON.stringify({ seal })]
    lines.push(...added)
    size += added.reduce((sum, line) => sum + line.length, 0)
    last = seal.number
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { lines, previous: before?.hash ?? BEFORE_THE_FIRST, last, head: head ? headOf(head) : null }
}

async function rowLines(view: Tx, order: RowOrder, seal: Seal, places: Partial<Record<SealedTable, Place>>): Promise<string[]> {
  const lines: string[] = []
  for (const table of SEALED_TABLES) {
    const rows = await order.following(view, table, places[table], marks(seal[table]).length)
    places[table] = rows.at(-1) ?? places[table]
    lines.push(...rows.map((row) => JSON.stringify({ [SEALED[table].kind]: exported(table, row) })))
  }
  return lines
}

/** The sealed columns; a payload that holds a secret is told by its hash alone. */
function exported(table: SealedTable, row: SealedRow): SealedRow {
  const { columns, payload } = SEALED[table] as { columns: string[]; payload: string[] }
  const told = columns.map((column) => {
    const value = row[column]
    return payload.includes(column) && hasSecret(String(value)) ? [`${column}_sha256`, sha256(String(value))] : [column, value]
  })
  return Object.fromEntries(told) as SealedRow
}

function hasSecret(json: string): boolean {
  try {
    return JSON.stringify(redact(JSON.parse(json))) !== json
  } catch {
    return redactText(json) !== json
  }
}

export const FORMAT = { format: 'signalbox-audit', version: 1, algorithm: 'sha256' } as const

export function headerLine(after: number, previous: string): string {
  return JSON.stringify({ ...FORMAT, after, previous })
}

export function endLine(head: string | null): string {
  return JSON.stringify({ end: head })
}

type Line = { event?: SealedRow; call?: SealedRow; seal?: Seal; end?: string | null }

/** Throws with a sentence for the reader when the file is no whole export. */
export async function verifyExport(lines: AsyncIterable<string>, expect: string | undefined): Promise<Verdict> {
  const walk: Walk = { head: null, sealed: { events: 0, calls: 0 }, unsealed: { events: 0, calls: 0 }, fault: undefined }
  const hashes = new Map<number, string>()
  let last: Pick<Seal, 'number' | 'hash'> | undefined
  let rows: Record<SealedTable, Hashed[]> = { events: [], calls: [] }
  let end: string | null | undefined
  for await (const text of lines) {
    if (!last) {
      last = begin(text)
      refuseBefore(last.number, expect)
      continue
    }
    if (end !== undefined) throw new Error('The file is no whole export: something stands behind its end.')
    const line = lineOf(text)
    for (const table of SEALED_TABLES) {
      const row = line[SEALED[table].kind]
      if (row) rows[table].push({ seq: row.seq, hash: hashRow(table, onlySealed(table, row)) })
    }
    if (line.end !== undefined) end = line.end
    if (!line.seal) continue
    walk.fault ??= await sealedFault(line.seal, last, rows)
    for (const table of SEALED_TABLES) walk.sealed[table] += walk.fault ? 0 : rows[table].length
    hashes.set(line.seal.number, line.seal.hash)
    last = line.seal
    walk.head = headOf(line.seal)
    rows = { events: [], calls: [] }
  }
  if (!last || end === undefined || end !== walk.head || rows.events.length || rows.calls.length)
    throw new Error('The file is no whole export: its end is missing or does not fit.')
  return verdict(walk, expect === undefined ? null : await compare(expect, async (number) => hashes.get(number)))
}

function sealedFault(seal: Seal, last: Pick<Seal, 'number' | 'hash'>, rows: Record<SealedTable, Hashed[]>): Promise<Fault | undefined> {
  const wrong = sealFault(seal, last)
  if (wrong) return Promise.resolve(wrong)
  return rowsFault(seal, rows, {
    exists: async (table, seq) => rows[table].some((row) => row.seq === seq),
    isSealed: async (table, seq) => marks(seal[table]).some(([sealed]) => sealed === seq),
  })
}

/** What an export begins behind is only what its own first line says. */
function refuseBefore(after: number, expect: string | undefined): void {
  const number = parseHead(expect ?? '')?.number
  if (number !== undefined && number <= after)
    throw new Error(`The file begins behind seal ${after}: it tells nothing about seal ${number}. Verify an export that goes further back.`)
}

function begin(text: string): Pick<Seal, 'number' | 'hash'> {
  const header = parsed(text) as Partial<typeof FORMAT> & { after?: number; previous?: string }
  if (header.format !== FORMAT.format) throw new Error('The file is no audit export of Signalbox: its first line does not say so.')
  if (header.version !== FORMAT.version)
    throw new Error(`The export has version ${header.version}; this program knows version ${FORMAT.version}.`)
  const { after = -1, previous = '' } = header
  if (!Number.isSafeInteger(after) || after < 0 || !HASH.test(previous) || (after === 0 && previous !== BEFORE_THE_FIRST))
    throw new Error('The file is no whole export: its first line does not say where it begins.')
  return { number: after, hash: previous }
}

const HASH = /^[0-9a-f]{64}$/
const LINES = [...SEALED_TABLES.map((table) => SEALED[table].kind as string), 'seal', 'end']
const SEAL_COLUMNS = ['number', 'at', 'previous', 'events', 'calls', 'rows', 'hash']

/** Whatever no hash covers must not be in the file: somebody would take it for verified. */
function lineOf(text: string): Line {
  const line = parsed(text)
  const [kind = '', ...more] = Object.keys(line)
  const odd = more.length || !LINES.includes(kind) || JSON.stringify(line) !== text
  if (odd || (line.seal && Object.keys(line.seal).join() !== SEAL_COLUMNS.join())) throw notOurs(text)
  return line
}

/** Exactly the sealed columns, and of a payload either the text or its hash. */
function onlySealed(table: SealedTable, row: SealedRow): SealedRow {
  const { columns, payload } = SEALED[table] as { columns: string[]; payload: string[] }
  const fits = columns.map((column) => {
    if (!payload.includes(column)) return Object.hasOwn(row, column)
    const [told, hash] = [row[column], row[`${column}_sha256`]]
    return hash === undefined ? typeof told === 'string' : told === undefined && HASH.test(String(hash))
  })
  if (fits.includes(false) || Object.keys(row).length !== columns.length) throw notOurs(JSON.stringify(row))
  return row
}

function notOurs(text: string): Error {
  return new Error(`The file is no export as Signalbox writes it: "${text.slice(0, 60)}…" has more or less in it than is sealed.`)
}

function parsed(text: string): Line {
  try {
    const line = JSON.parse(text) as unknown
    if (typeof line === 'object' && line !== null) return line as Line
  } catch {
    // Said below.
  }
  throw new Error(`The file is no whole export: "${text.slice(0, 40)}" is not a line of one.`)
}
