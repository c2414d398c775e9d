import type { Caller, Fields } from './callers.ts'
import type { Random } from './random.ts'
import { pause } from './stop.ts'
import type { Waiter } from './waiters.ts'

/**
 * One task, its one writer and those who follow it. In lockstep the writer goes on only when every follower has seen the
 * last move, so that each of them must see each move; otherwise it does not wait for anybody.
 */
export class Track {
  readonly task: string
  readonly lockstep: boolean
  readonly followers: Waiter[] = []
  /** When the writer was told that a version is there. */
  readonly acknowledged = new Map<number, number>()
  readonly problems: string[] = []
  version = 1
  /** No more moves will come. */
  stopped = false
  #status = 'BACKLOG'
  #seen: () => void = () => {}

  constructor(task: string, lockstep: boolean) {
    this.task = task
    this.lockstep = lockstep
  }

  /** Moves on and on, with pauses of `thinkMs` in the mean. */
  async write(caller: Caller, random: Random, thinkMs: number, stop: AbortSignal): Promise<void> {
    for (;;) {
      await pause(random.below(2 * thinkMs + 1), stop)
      if (stop.aborted) return
      const status = this.#status === 'IN_PROGRESS' ? random.pick(['BACKLOG', 'REVIEW']) : 'IN_PROGRESS'
      const move = { task_id: this.task, status, idempotency_key: `${this.task} ${this.version}` }
      let outcome = await caller.call('task_move', move)
      // A connection that was idle for long may close in the moment in which it is used.
      if (outcome.kind === 'lost') outcome = await caller.call('task_move', move)
      if (outcome.kind !== 'answer') return void this.problems.push(`a move failed: ${JSON.stringify(outcome)}`)
      this.#moved(outcome.value)
      if (this.lockstep) await this.#allSeen()
    }
  }

  #moved({ task }: Fields): void {
    this.#status = task.status
    this.version = task.version
    this.acknowledged.set(task.version, performance.now())
  }

  /** Bounded by the waits themselves: each returns in its time, and says what it has not seen. Who failed has said so, and is gone. */
  #allSeen(): Promise<void> {
    return new Promise((resolve) => {
      this.#seen = () => {
        if (this.followers.every((follower) => follower.gone || follower.seen >= this.version)) resolve()
      }
      this.#seen()
    })
  }

  /** A follower has seen something new, or is gone. */
  progress(): void {
    this.#seen()
  }
}
