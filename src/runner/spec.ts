/** What the daemon hands to a runner, through a pipe: it holds the agent's environment, which is on no disk and in no argv. */
export interface Spec {
  run: string
  socket: string
  /** Whoever connects to that socket has to say it first. In the record, for the daemon after this one. */
  secret: string
  argv: [string, ...string[]]
  cwd: string
  env: Record<string, string>
  stdin: 'closed' | 'open' | { text: string; open?: boolean }
  wallClockMs: number | null
  outputBytes: number
  graceMs: number
  /** A PID namespace ends with its first process; without one the tree is found by descent and by the marker. */
  isolation: 'namespace' | 'marker'
  /** The programs that the agent is started through, with their arguments. */
  around: string[]
}

/** In the environment of everything that an agent starts. */
export const MARKER = 'SIGNALBOX_RUN'

/** The files of a run's folder. */
export const RECORD = 'runner.json'
export const EXIT = 'exit.json'
export const STOP = 'stop.json'
export const SPOOL = 'spool'
export const LOG = 'runner.log'

/** Where a runner gets its spec, and where it says that its record is there. Not 1: a stray print would be taken for it. */
export const SPEC_FD = 3
export const READY_FD = 4

export interface Ending {
  reason: 'exited' | 'spawn_failed' | 'runner_lost' | 'spool_failed' | StopWhy
  code: number | null
  signal: string | null
  detail: string
  at: number
}

export type StopWhy = 'stopped' | 'wall_clock' | 'output_limit' | 'budget' | 'shutdown'

/** Why a runner is told to end, beside the SIGTERM that tells it. */
export interface Stop {
  why: StopWhy
  graceMs: number
}
