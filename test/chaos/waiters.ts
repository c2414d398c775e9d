import { decodeCursor } from '../../src/db/engine.ts'
import type { Caller, Fields, Way } from './callers.ts'
import type { Random } from './random.ts'
import type { Track } from './track.ts'

/** The ways to follow a task. Only `events` shows every change; the others show the present state after each change. */
export const HOW = ['events', 'cursor', 'updated_at', 'status'] as const
export type How = (typeof HOW)[number]

/** Timers may fire a little early. */
const EARLY_MS = 20
const STATUSES = ['BACKLOG', 'IN_PROGRESS', 'REVIEW', 'DONE']

/** What a wait asks for, in seconds. Without, the daemon holds it for 45 s and asks to be called again. */
export type Timeouts = (number | undefined)[]
const HOLD_SECONDS = 45

interface Limits {
  timeouts: Timeouts
  graceMs: number
}

export interface Sight {
  version: number
  at: number
}

/** Follows one task, one wait after the other, each from where the last one ended. */
export class Waiter {
  readonly track: Track
  readonly how: How
  readonly sights: Sight[] = []
  readonly problems: string[] = []
  /** Changes that a wait did not end with, and how long they had been acknowledged when it timed out. */
  readonly missed: { what: string; ms: number }[] = []
  seen = 1
  waits = 0
  timeouts = 0
  readonly #caller: Caller
  readonly #random: Random
  readonly #limits: Limits
  #cursor: string
  #updatedAt: string
  #status = 'BACKLOG'
  #leaving = new AbortController()

  constructor(track: Track, how: How, start: { cursor: string; updatedAt: string }, caller: Caller, random: Random, limits: Limits) {
    this.track = track
    this.how = how
    this.#caller = caller
    this.#random = random
    this.#limits = limits
    this.#cursor = start.cursor
    this.#updatedAt = start.updatedAt
    track.followers.push(this)
  }

  /** It waits no more, whatever it has seen. */
  get gone(): boolean {
    return this.#leaving.signal.aborted
  }

  get way(): Way {
    return this.#caller.way
  }

  /** Until it is told that its writer has stopped and it has seen the last change. */
  async run(): Promise<void> {
    while (!this.#leaving.signal.aborted) await this.#wait()
  }

  /** The writer has stopped. Who has seen everything hangs up in the middle of the wait; the others go on until they have. */
  leave(): void {
    if (this.seen >= this.track.version) this.#leaving.abort()
  }

  async #wait(): Promise<void> {
    const timeout = this.#random.pick(this.#limits.timeouts)
    const began = performance.now()
    let outcome = await this.#caller.call(...this.#question(timeout), this.#leaving.signal)
    // A connection is idle while all the others connect, or while this process stands still.
    if (outcome.kind === 'lost' && outcome.stale) outcome = await this.#caller.call(...this.#question(timeout), this.#leaving.signal)
    const now = performance.now()
    if (this.#leaving.signal.aborted) return
    this.waits++
    const took = now - began
    if (took > (timeout ?? HOLD_SECONDS) * 1_000 + this.#limits.graceMs) this.#wrong(`a wait of ${timeout} s took ${Math.round(took)} ms`)
    if (outcome.kind !== 'answer') {
      this.#wrong(`a wait failed: ${JSON.stringify(outcome)}`)
      this.#leaving.abort()
      return this.track.progress()
    }
    this.#read(outcome.value, now)
    if (outcome.value.code === 'WAIT_TIMEOUT') this.#timedOut(outcome.value, timeout, took, now)
  }

  #question(timeout_seconds: number | undefined): [string, Fields] {
    const task_id = this.track.task
    const questions: Record<How, () => [string, Fields]> = {
      events: () => ['event_wait', { task_id, types: ['task.moved'], cursor: this.#cursor, timeout_seconds, limit: 200 }],
      cursor: () => ['task_wait', { task_id, cursor: this.#cursor, timeout_seconds }],
      updated_at: () => ['task_wait', { task_id, from_updated_at: this.#updatedAt, timeout_seconds }],
      status: () => ['task_wait', { task_id, wait_for_status: STATUSES.filter((s) => s !== this.#status), timeout_seconds }],
    }
    return questions[this.how]()
  }

  #read(answer: Fields, now: number): void {
    const before = decodeCursor(this.#cursor)?.seq ?? 0
    if ((decodeCursor(answer.cursor)?.seq ?? -1) < before && this.how !== 'updated_at' && this.how !== 'status')
      this.#wrong(`the cursor went back from ${this.#cursor} to ${answer.cursor}`)
    this.#cursor = answer.cursor
    if (this.how === 'events') {
      for (const event of answer.events as Fields[]) this.#see(event.data.version, now, true)
    } else {
      this.#updatedAt = answer.task.updated_at
      this.#status = answer.current_status
      this.#see(answer.task.version, now, this.track.lockstep)
    }
    if (this.track.stopped) this.leave()
  }

  #see(version: number, now: number, everyOne: boolean): void {
    // A state may be shown twice: the row may be newer than the event that ended the wait.
    if (version === this.seen) return
    if (version < this.seen) this.#wrong(`version ${version} was shown after ${this.seen}`)
    else if (everyOne && version !== this.seen + 1) this.#wrong(`versions ${this.seen + 1} to ${version - 1} were never shown`)
    this.seen = version
    this.sights.push({ version, at: now })
    this.track.progress()
  }

  #timedOut(answer: Fields, timeout: number | undefined, took: number, now: number): void {
    this.timeouts++
    if (took < (timeout ?? HOLD_SECONDS) * 1_000 - EARLY_MS) this.#wrong(`a wait of ${timeout} s was over after ${Math.round(took)} ms`)
    if (answer.resume !== (timeout === undefined)) this.#wrong(`a wait of ${timeout} s answered resume: ${answer.resume}`)
    const at = this.track.acknowledged.get(this.seen + 1)
    if (at !== undefined) this.missed.push({ what: this.#told(`a wait of ${timeout} s missed version ${this.seen + 1}`), ms: now - at })
  }

  #wrong(what: string): void {
    this.problems.push(this.#told(what))
  }

  #told(what: string): string {
    return `${this.how} by ${this.way} on ${this.track.task}: ${what}`
  }
}
