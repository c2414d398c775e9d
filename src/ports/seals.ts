import type { Verdict } from '../db/verify.ts'

/** The chain of seals over the log and the audit: looked at, never changed. */
export interface Seals {
  /** Reads everything that is sealed; shared by all who ask meanwhile. */
  verify(expect: string | undefined): Promise<Verdict>
  page(after: number): Promise<{ lines: string[]; previous: string; last: number; head: string | null }>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    seals: Seals
  }
}
