export interface Health {
  ok: boolean
  version: string
  uptime_seconds: number
  database: {
    engine: string
    size_bytes: number
    queued_writes: number
    commits: number
    committed_calls: number
    /** How long committed events have been waiting for an older transaction to end. */
    events_held_back_ms: number
  }
  waiting_calls: number
  event_readers: number
  mcp_sessions: number
  notices: string[]
}

/** What the running process knows about itself. */
export interface Daemon {
  /** This daemon among those that share a database: what lies on its disk is seen by it alone. */
  readonly host: string
  /** Whether others may use the same database. */
  readonly shared: boolean
  /** Where agents reach it; resolves when it listens. */
  address(): Promise<string>
  health(): Health
  /** Resolves when every call that was answered before is in the audit: reads are written down in batches. */
  audited(): Promise<void>
  /** Reads every page of the database in a process of its own. */
  check(): Promise<{ ok: boolean; problems: string[] }>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    daemon: Daemon
  }
}
