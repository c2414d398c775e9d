/** The chain of seals over the log and the audit: looked at, never changed. */
export interface Seals {
  /** Reads everything that is sealed; shared by all who ask meanwhile. */
  verify(expect: string | undefined): Promise<SealVerdict>
  page(after: number): Promise<{ lines: string[]; previous: string; last: number; head: string | null }>
}

export interface SealVerdict {
  ok: boolean
  head: string | null
  sealed_events: number
  sealed_calls: number
  unsealed_events: number
  unsealed_calls: number
  first_bad: {
    table: 'events' | 'calls' | 'seals'
    seq: number
    problem: 'changed' | 'missing' | 'inserted' | 'moved'
    seal: number
    sealed_at: number | null
  } | null
  expected: 'found' | 'rewritten' | 'cut' | null
  meaning: string
}

declare module '../kernel/tool.ts' {
  interface Ports {
    seals: Seals
  }
}
