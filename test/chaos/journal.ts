import type { Fields, Way } from './callers.ts'

export const WRITES = ['task_create', 'task_note', 'task_move', 'task_update', 'decision_log'] as const
export type Write = (typeof WRITES)[number]

/** One thing that a writer wants, once. The marker stands in its input and nowhere else, so its effects can be counted. */
export interface Intent {
  marker: string
  tool: Write
  input: Fields
  key: string | undefined
}

export interface Entry extends Intent {
  writer: string
  principal: string
  way: Way
  /** What the daemon acknowledged. `unknown`: it died before it answered, and there was no key to ask again with. */
  outcome: 'answer' | 'refusal' | 'unknown'
  value: Fields
  /** How often it had to be sent before there was an answer. */
  sent: number
}

/** What the clients know: everything that was acknowledged to them. */
export class Journal {
  readonly entries: Entry[] = []
  /** Things that must not happen at all. */
  readonly wrong: string[] = []
  replays = 0
  repeated = 0
  /** Told of each acknowledgement in the moment it arrives. */
  onAcknowledged: () => void = () => {}

  add(entry: Entry): void {
    this.entries.push(entry)
    if (entry.sent > 1) this.repeated++
    if (entry.outcome !== 'unknown') this.onAcknowledged()
  }

  count(outcome: Entry['outcome']): number {
    return this.entries.filter((entry) => entry.outcome === outcome).length
  }
}

export const MARKER = /\[\[[\w.-]+\]\]/
