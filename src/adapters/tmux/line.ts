import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Tmux } from './tmux.ts'

/** A burst is one change: a screen is drawn in many pieces. */
const TOGETHER_MS = 40
const OUTPUT_ON = "refresh-client -f '!no-output'"

/**
 * What a server tells by itself, over one client that shows nothing. It says when the server or its program has ended; and
 * while somebody looks, that something was printed. What was printed is not kept: the screen is asked for it.
 */
export class Line {
  /** Grows with everything that it tells. */
  version = 0
  over = false
  readonly #child: ChildProcess
  #viewers = 0
  /** What it is told before that is lost. */
  #attached = false
  #changed: { promise: Promise<void>; resolve(): void } = promised()
  #timer: NodeJS.Timeout | undefined

  constructor(tmux: Tmux, name: string, env: Record<string, string | undefined>) {
    const args = tmux.argv('-C', 'attach-session', '-t', `=${name}`, '-f', 'no-output,ignore-size')
    this.#child = spawn('tmux', args, { env, cwd: '/', stdio: ['pipe', 'pipe', 'ignore'] })
    this.#child.on('error', () => this.#end())
    this.#child.on('close', () => this.#end())
    this.#child.stdin?.on('error', () => {})
    const lines = createInterface({ input: this.#child.stdout as NonNullable<ChildProcess['stdout']>, crlfDelay: Number.POSITIVE_INFINITY })
    lines.on('line', (line) => this.#hear(line))
    lines.on('error', () => {})
  }

  /** It tells of output as long as somebody looks. */
  view(): void {
    if (++this.#viewers > 1) return
    this.#say(OUTPUT_ON)
    // What was printed while nobody looked was not told.
    this.#tell()
  }

  unview(): void {
    if (--this.#viewers === 0) this.#say('refresh-client -f no-output')
  }

  /** Resolves when there is news after that version, or the signal comes. */
  async after(version: number, signal?: AbortSignal): Promise<void> {
    if (this.version !== version || this.over || signal?.aborted) return
    const { promise } = this.#changed
    if (!signal) return promise
    await new Promise<void>((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done)
        resolve()
      }
      signal.addEventListener('abort', done)
      void promise.then(done)
    })
  }

  close(): void {
    this.#child.kill('SIGKILL')
    this.#end()
  }

  #hear(line: string): void {
    if (line.startsWith('%session-changed') && !this.#attached) {
      this.#attached = true
      if (this.#viewers) this.#say(OUTPUT_ON)
    }
    if (line.startsWith('%output') || line.startsWith('%extended-output')) this.#timer ??= setTimeout(() => this.#tell(), TOGETHER_MS)
    // `end`: from here on it tells what we asked it to tell; what was printed a moment before it did not.
    else if (/^%(end|exit|layout-change|session-changed)/.test(line)) this.#tell()
  }

  #tell(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.version++
    const { resolve } = this.#changed
    this.#changed = promised()
    resolve()
  }

  #say(command: string): void {
    if (this.#attached && !this.over) this.#child.stdin?.write(`${command}\n`)
  }

  #end(): void {
    if (this.over) return
    this.over = true
    this.#tell()
  }
}

function promised(): { promise: Promise<void>; resolve(): void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}
