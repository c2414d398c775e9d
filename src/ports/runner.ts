/**
 * A run's own process: detached, so that it outlives the daemon. Everything about it is in one folder, which is what is
 * asked after a crash; every method may be called again with the same arguments.
 */
export interface Runner {
  /** Its folder, for us alone, made at the first call. */
  folder(run: string): Promise<string>
  /** What is in that private file of its folder. What an earlier attempt put there stays, so that a secret is minted once. */
  keep(run: string, name: string, make: () => string): Promise<string>
  /** Resolves when the runner has written down who it is, also when an earlier attempt started it. */
  start(run: string, spec: RunSpec): Promise<Started>
  /** Why agents here can read what should be hidden from them. Undefined where it is hidden. */
  exposed(): Promise<string | undefined>
  look(run: string): Promise<RunnerState>
  /**
   * From that offset to the end of the run, waiting for more in between. The last batch has the exit; a lost runner has one too. Throws
   * for a run that was not started.
   */
  follow(run: string, from: number, signal: AbortSignal): AsyncIterable<Batch>
  /** What is there to read from that offset on, without waiting for more. Nothing of a run that was not started. */
  printed(run: string, from: number): Promise<Batch>
  /** False when the run is not there, has ended or takes no input. The same `seq` twice is one input. */
  send(run: string, input: Input): Promise<boolean>
  /**
   * Ends the whole tree, TERM first, KILL after the grace. Resolves with the exit when nothing of it lives any more; that of the first
   * stop holds. One that is prepared has no agent after this, also when it is started; of one that is absent nothing is written down.
   */
  stop(run: string, why: StopReason, graceMs: number): Promise<Exit>
  /** Takes the folder away. Only of a run that has ended. */
  forget(run: string): Promise<void>
}

export interface RunSpec {
  argv: [string, ...string[]]
  cwd: string
  /** That the worktree in `cwd` belongs to: without it git does not work there. */
  repo?: string
  /** On top of the few variables that every agent gets. */
  env: Record<string, string>
  /** Names that it gets from the daemon's own environment, when they are there. */
  inherit: string[]
  /** `closed` is the end of the file at once: programs that look for piped input would wait for ever. A text is followed by it unless it stays open. */
  stdin: 'closed' | 'open' | { text: string; open?: boolean }
  wallClockMs: number | null
  outputBytes: number
  graceMs: number
}

export interface Started {
  pid: number
  /** As the system counts it; with the pid and the boot it names one process. */
  started: string
  boot: string
}

export const STOP_REASONS = ['stopped', 'wall_clock', 'output_limit', 'budget', 'shutdown'] as const
export type StopReason = (typeof STOP_REASONS)[number]

/** `spool_failed`: what it printed could not be kept any more, as on a full disk. */
export const EXIT_REASONS = ['exited', 'spawn_failed', 'runner_lost', 'spool_failed', ...STOP_REASONS] as const

export interface Exit {
  reason: (typeof EXIT_REASONS)[number]
  code: number | null
  signal: string | null
  /** For a person: why it could not be started, what was found of it. */
  detail: string
  at: number
}

/** `absent`: no folder. `prepared`: a folder, and nothing was started in it. */
export type RunnerState = { state: 'absent' | 'prepared' } | ({ state: 'running' } & Started) | { state: 'ended'; exit: Exit }

export interface Input {
  seq: number
  data?: string
  /** No more input after this one. */
  close?: boolean
  /** To the agent's own process. */
  signal?: 'SIGINT' | 'SIGTERM'
}

export interface Frame {
  stream: 'out' | 'err' | 'in'
  at: number
  bytes: Buffer
}

export interface Batch {
  frames: Frame[]
  /** Where to go on after these. */
  offset: number
  exit?: Exit
}

declare module '../kernel/tool.ts' {
  interface Ports {
    runner: Runner
  }
}
