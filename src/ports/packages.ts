/** What a setup has made, kept for the next checkout that is decided by the same files. */
export interface Packages {
  /**
   * By what the result of this command in this checkout is known again. Undefined when nobody can say: then nothing is kept and nothing
   * given. `files`: all that the commit of the checkout has; `brought`: those that were copied into it.
   */
  keysOf(command: string, checkout: string, files: CommittedFile[], brought: string[]): Promise<Keys | undefined>
  /** Copies what is kept into the checkout; false when nothing is. Nobody who writes there writes to what is kept. */
  give(key: string, checkout: string): Promise<boolean>
  /** Keeps these paths of the checkout by that key. What is there already stays. */
  keep(key: string, checkout: string, paths: string[]): Promise<void>
  /** Has one copy more of it ready, for which the next checkout does not wait. What fails, or is cut off, leaves nothing behind. */
  stock(key: string, signal: AbortSignal): Promise<void>
  /** The least recently used first. */
  list(): Promise<Kept[]>
  drop(key: string): Promise<void>
}

export interface Keys {
  /** The same for every commit in which the files are the same that package managers read. */
  byFiles: string
  /** The same for the same tree only. */
  byTree: string
}

export interface CommittedFile {
  path: string
  /** By its content. */
  id: string
}

export interface Kept {
  key: string
  command: string
  /** With the copy that is ready. */
  bytes: number
  /** What one copy more would take; 0: one is ready. */
  spare_bytes: number
  kept_at: number
  used_at: number
}

declare module '../kernel/tool.ts' {
  interface Ports {
    packages: Packages
  }
}
