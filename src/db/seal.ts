import { createHash } from 'node:crypto'
import type { CoreTables } from './core.ts'

export type SealedTable = 'events' | 'calls'

/** A row as it is sealed: the stored columns, in which `<column>_sha256` may stand for one that is not told. */
export type SealedRow = { seq: number } & Record<string, unknown>

/** One link of the chain. The lists are JSON: `[[seq, first 16 digits of the row's hash], …]`. */
export interface Seal {
  number: number
  at: number
  previous: string
  events: string
  calls: string
  /** Over the full hashes of all rows of the two lists. */
  rows: string
  hash: string
}

export type Mark = [seq: number, hash: string]

export type Hashed = { seq: number; hash: string }

export const BEFORE_THE_FIRST = '0'.repeat(64)

const MARK_DIGITS = 16

interface SealedColumns<Column> {
  /** What the hash of such a row begins with, so that one table's row is never another's. */
  kind: 'event' | 'call'
  columns: Column[]
  /** These enter by their own hash: an export may leave them out and can still be verified. */
  payload: Column[]
}

/** The order is part of the algorithm, docs/audit.md: a change needs a new version of it. */
export const SEALED: { [T in SealedTable]: SealedColumns<keyof CoreTables[T] & string> } = {
  events: {
    kind: 'event',
    columns: ['seq', 'at', 'type', 'subject', 'actor', 'project_id', 'task_id', 'audience', 'call_id', 'data'],
    payload: ['data'],
  },
  calls: {
    kind: 'call',
    columns: [
      'seq',
      'id',
      'at',
      'principal',
      'principal_kind',
      'token',
      'acting_person',
      'lane',
      'surface',
      'dialect',
      'tool',
      'outcome',
      'code',
      'input',
      'output',
      'duration_ms',
    ],
    payload: ['input', 'output'],
  },
}

export const SEALED_TABLES = Object.keys(SEALED) as SealedTable[]

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export function hashRow(table: SealedTable, row: SealedRow): string {
  const { kind, columns, payload } = SEALED[table] as SealedColumns<string>
  const value = (column: string) => (payload.includes(column) ? payloadHash(row, column) : (row[column] ?? null))
  return sha256(JSON.stringify([kind, ...columns.map(value)]))
}

function payloadHash(row: SealedRow, column: string): unknown {
  const told = row[column]
  return typeof told === 'string' ? sha256(told) : (row[`${column}_sha256`] ?? null)
}

export function hashSeal({ number, at, previous, events, calls, rows }: Omit<Seal, 'hash'>): string {
  return sha256(JSON.stringify(['seal', number, at, previous, events, calls, rows]))
}

export function makeSeal(link: Pick<Seal, 'number' | 'at' | 'previous'>, rows: Record<SealedTable, Hashed[]>): Seal {
  const seal = { ...link, events: marksOf(rows.events), calls: marksOf(rows.calls), rows: digest(rows) }
  return { ...seal, hash: hashSeal(seal) }
}

export function digest({ events, calls }: Record<SealedTable, Hashed[]>): string {
  return sha256(JSON.stringify([...events, ...calls].map((row) => row.hash)))
}

function marksOf(rows: Hashed[]): string {
  return JSON.stringify(rows.map(({ seq, hash }) => [seq, hash.slice(0, MARK_DIGITS)]))
}

/** Somebody may have put anything there: what is no list seals nothing. */
export function marks(list: string): Mark[] {
  return LIST.test(list) ? (JSON.parse(list) as Mark[]) : []
}

const LIST = new RegExp(`^\\[(\\[-?\\d{1,16},"[0-9a-f]{${MARK_DIGITS}}"\\](,(?=\\[)|(?=\\]$)))*\\]$`)

export function headOf(seal: Pick<Seal, 'number' | 'hash'>): string {
  return `${seal.number}.${seal.hash}`
}

export function parseHead(head: string): { number: number; hash: string } | undefined {
  const [, number = '', hash = ''] = /^([1-9][0-9]{0,14})\.([0-9a-f]{64})$/.exec(head) ?? []
  return hash ? { number: Number(number), hash } : undefined
}
