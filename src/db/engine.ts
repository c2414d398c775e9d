import type { ColumnTypes } from '../kernel/capability.ts'
import type { Cursor } from '../kernel/event.ts'
import type { Ledger } from '../kernel/log.ts'
import type { Storage } from '../kernel/storage.ts'

/** Everything in which one database differs from another. SQL elsewhere is portable. */
export interface EngineFacts {
  name: 'sqlite' | 'postgres'
  types: ColumnTypes
}

export const SQLITE: EngineFacts = {
  name: 'sqlite',
  types: { int: 'INTEGER', text: 'TEXT', identity: 'INTEGER PRIMARY KEY', strict: 'STRICT' },
}

export interface Engine extends Storage {
  readonly facts: EngineFacts
  readonly ledger: Ledger
  /** Bumped by restore and copy: a cursor from before is recognised and mapped by its sequence number. */
  readonly generation: number
  /** What is wrong with the stored data, as found when it was opened or read; shown by health. */
  readonly notices: string[]
  /** False once a page could not be read. */
  readonly sound: boolean
  /** The id of the last call on record. */
  newestCall(): string | undefined
  /** Work that reads much runs beside the event loop, so that health always answers. */
  check(): Promise<CheckResult>
  backup(target: string): Promise<void>
  close(): Promise<void>
  stats(): { queued: number; batches: number; calls: number; size_bytes: number }
}

export interface CheckResult {
  ok: boolean
  problems: string[]
}

/** The name in `meta` under which a restore notes the last event of the backup: there its generation begins. */
export function generationStart(generation: number | '%'): string {
  return `generation.${generation}`
}

/** `<generation>.<seq>`, in base 36 so that nobody is tempted to do arithmetic on it. */
export function encodeCursor(generation: number, seq: number): Cursor {
  return `${generation.toString(36)}.${seq.toString(36)}`
}

export function decodeCursor(cursor: Cursor): { generation: number; seq: number } | undefined {
  const match = /^([0-9a-z]{1,8})\.([0-9a-z]{1,11})$/.exec(cursor)
  if (!match) return undefined
  const generation = Number.parseInt(match[1] as string, 36)
  const seq = Number.parseInt(match[2] as string, 36)
  return generation > 0 && Number.isSafeInteger(seq) ? { generation, seq } : undefined
}
