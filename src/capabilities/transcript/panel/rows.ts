import type { Output } from '../../../ui/client.ts'

export type Entry = Output<'transcript_read'>['entries'][number]

/**
 * What the list draws: where a run or a turn begins, and what was said and done in it. A beginning is named after its first
 * entry, and so it is another one when what is older was read.
 */
export type Row =
  | { is: 'run'; key: string; run_id: string }
  | { is: 'turn'; key: string; turn: number }
  | { is: 'entry'; key: string; entry: Entry; result?: Entry }

export const keyOf = ({ run_id, number }: Entry) => `${run_id}.${number}`

/** Of entries in the order in which they happened. */
export function rowsOf(entries: Entry[]): Row[] {
  const rows: Row[] = []
  let [run, turn] = ['', 0]
  let calls = new OpenCalls()
  for (const entry of entries) {
    if (entry.run_id !== run) {
      ;[run, turn] = [entry.run_id, 0]
      calls = new OpenCalls()
      rows.push({ is: 'run', key: `run of ${keyOf(entry)}`, run_id: run })
    }
    if (entry.turn !== turn) {
      turn = entry.turn
      rows.push({ is: 'turn', key: `turn of ${keyOf(entry)}`, turn })
    }
    const call = entry.kind === 'tool_result' ? calls.answered() : undefined
    if (call) call.result = entry
    else {
      const row: Row = { is: 'entry', key: keyOf(entry), entry }
      rows.push(row)
      if (entry.kind === 'tool_call') calls.made(row)
    }
  }
  return rows
}

type CallRow = Extract<Row, { is: 'entry' }>

/** A result does not say of which call it is: with several open at once, none of them is given one that may be another's. */
class OpenCalls {
  #open = 0
  #only: CallRow | undefined
  #mixed = false

  made(row: CallRow): void {
    this.#mixed ||= this.#open > 0
    this.#open++
    this.#only = row
  }

  answered(): CallRow | undefined {
    const call = this.#open === 1 && !this.#mixed ? this.#only : undefined
    this.#open = Math.max(0, this.#open - 1)
    if (!this.#open) this.#mixed = false
    return call
  }
}

/** Older ones, then newer ones; each once. */
export function joined(older: Entry[], newer: Entry[]): Entry[] {
  const last = older.at(-1)
  return last ? [...older, ...newer.filter((entry) => isAfter(entry, last))] : newer
}

export function isAfter(a: Entry, b: Entry): boolean {
  return a.run_id === b.run_id ? a.number > b.number : a.run_id > b.run_id
}
