import { pause } from '../../kernel/patience.ts'
import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import type { Harness, HarnessEvent, HarnessState, Step } from '../../ports/harness.ts'
import type { Batch } from '../../ports/runner.ts'
import { approvalDecided, approvalExpired, decidedOf, withdrawApproval } from '../approval/index.ts'
import { settingChanged } from '../system/index.ts'
import { admitNow } from './admission.ts'
import { GRACE_MS } from './effects.ts'
import { runMessages } from './points.ts'
import { progressed, ended as runEnded, sent as runSent } from './reports.ts'
import { runInput, runStarted, runStopping } from './schema.ts'
import { type RunRow, runStore } from './store.ts'

const TRY_AGAIN_MS = 1_000
/** A piece that storage never takes must not keep a run from its end. */
const FAILURES_BEFORE_LEAVING_OUT = 3
const LEFT_OUT: HarnessEvent = { type: 'text', from: 'error', text: 'Some of what it printed could not be kept.' }
const LONGEST_TOGETHER = 8_000

type Told = Step & { send: string[] }

const UNHEARD = { message: 'told anything', interrupt: 'interrupted' }

/** Reads what the runs of this host print, tells what it means, and passes on what they are told. */
export const follower: Reactor = {
  name: 'runs',
  async start(ctx) {
    const followed = new Map<string, Followed>()
    const follow = (run: RunRow) => {
      if (followed.has(run.id) || ctx.signal.aborted) return
      const one = new Followed(ctx, run)
      followed.set(run.id, one)
      void one.over.then(() => followed.delete(run.id))
    }
    ctx.on(runStarted, (event) => {
      if (event.data.host === ctx.ports.daemon.host) void found(ctx, event.subject).then((run) => run && follow(run))
    })
    ctx.on(runStopping, (event) => void followed.get(event.subject)?.stop(event.data.why))
    ctx.on(runInput, (event) => void followed.get(event.subject)?.speak())
    for (const type of [approvalDecided, approvalExpired]) ctx.on(type, (event) => void followed.get(event.data.run_id)?.speak())
    // More places than before: whoever waits for one may begin.
    ctx.on(settingChanged, (event) => {
      if (event.subject.startsWith('runs.max_per_')) void ctx.report(admitNow, {}).catch(ctx.defect)
    })
    for (const run of await runStore(ctx.view).livingOn(ctx.ports.daemon.host)) follow(run)
    return { ended: async () => void (await Promise.all([...followed.values()].map((one) => one.over))) }
  },
}

async function found(ctx: ReactorContext, id: string): Promise<RunRow | undefined> {
  return runStore(ctx.view)
    .find(id)
    .catch((error) => void ctx.defect(error))
}

/** One run. Reading and speaking take turns: both move the state of its harness. */
class Followed {
  readonly over: Promise<void>
  readonly #ctx: ReactorContext
  readonly #id: string
  readonly #harness: Harness | undefined
  /** How often the same piece could not be told. */
  #failures = 0
  #isOver = false
  #speaksLater = false
  #run: RunRow
  #turn: Promise<unknown> = Promise.resolve()

  constructor(ctx: ReactorContext, run: RunRow) {
    this.#ctx = ctx
    this.#id = run.id
    this.#run = run
    this.#harness = ctx.ports.harnesses.get(run.harness)
    this.over = this.#follow().finally(() => {
      this.#isOver = true
    })
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ctx
    while (!signal.aborted) {
      try {
        await this.#read()
        return
      } catch (error) {
        if (signal.aborted) return
        this.#ctx.defect(error)
        await pause(TRY_AGAIN_MS, signal)
      }
    }
  }

  async #read(): Promise<void> {
    const { ports, signal } = this.#ctx
    this.#run = (await runStore(this.#ctx.view).find(this.#id)) ?? this.#run
    if (this.#run.state === 'ended') return
    await this.#inTurn(() => this.#deliver())
    void this.speak()
    if (this.#run.stop_asked !== null) void this.stop(this.#run.stop_asked as 'stopped' | 'budget')
    for await (const batch of ports.runner.follow(this.#id, this.#run.spool_offset, signal)) {
      await this.#inTurn(() => this.#take(batch))
      if (batch.exit) return
    }
  }

  /** The effect does so too, where it meets the right machine: both together are one stop. */
  async stop(why: 'stopped' | 'budget'): Promise<void> {
    await this.#ctx.ports.runner.stop(this.#id, why, GRACE_MS).catch(this.#ctx.defect)
  }

  /** What people want said to the agent, and what they answered to it, one at a time. */
  async speak(): Promise<void> {
    for (const part of [() => this.#deliver(), () => this.#answer(), () => this.#say()])
      await this.#inTurn(part).catch((error) => {
        this.#ctx.defect(error)
        this.#speakLater()
      })
  }

  /** A runner that took nothing for a while is asked again: the agent waits for its answer, and nobody else would send it. */
  #speakLater(): void {
    if (this.#speaksLater) return
    this.#speaksLater = true
    void pause(TRY_AGAIN_MS, this.#ctx.signal).then(() => {
      this.#speaksLater = false
      if (!this.#isOver && !this.#ctx.signal.aborted) void this.speak()
    })
  }

  async #take({ frames, offset, exit }: Batch): Promise<void> {
    const { state, events, send, close, signal } = this.#decode(frames)
    const told = this.#failures < FAILURES_BEFORE_LEAVING_OUT ? inFewer(events) : [LEFT_OUT]
    if (frames.length) {
      this.#failures++
      await this.#advance({ offset, state, events: told, send, close, signal })
      this.#failures = 0
    }
    if (!exit) return
    const last = this.#harness?.end(this.#state(), exit) ?? []
    await this.#ctx.report(runEnded, { run_id: this.#id, exit, events: last })
  }

  #decode(frames: Batch['frames']): Told {
    const all: Told = { state: this.#state(), events: [], send: [] }
    for (const frame of frames) {
      const { state, events, send = [], close, signal } = this.#decodeOne(all.state, frame)
      all.state = state
      all.events.push(...events)
      all.send.push(...send)
      all.close ||= close
      all.signal ??= signal
    }
    return all
  }

  /** Whatever is printed, the run must come to its end. */
  #decodeOne(state: HarnessState, frame: Batch['frames'][number]): Step {
    try {
      return this.#harness?.decode(state, frame) ?? { state, events: [] }
    } catch (error) {
      this.#ctx.defect(error)
      return { state, events: [{ type: 'text', from: 'error', text: 'Something that it printed could not be read.' }] }
    }
  }

  async #say(): Promise<void> {
    for (const { id, kind, text, unheard } of (await this.#ctx.ask(runMessages, this.#run)) ?? []) {
      if (await this.#isOnItsWay(id)) continue
      const step = kind === 'message' ? this.#harness?.message(this.#state(), text) : this.#harness?.interrupt(this.#state())
      if (step) await this.#advance({ ...step, send: step.send ?? [], offset: this.#run.spool_offset, message_id: id })
      else await unheard(`The agent cannot be ${UNHEARD[kind]} now.`)
    }
  }

  /** Decided and not passed on: also by people who found no daemon that followed the run. */
  async #answer(): Promise<void> {
    const { view, report } = this.#ctx
    for (const { id, request, state, message } of await decidedOf(view, this.#id)) {
      const step = this.#harness?.decide(this.#state(), request, { allow: state === 'allowed', message: message ?? '' })
      if (step) await this.#advance({ ...step, send: step.send ?? [], offset: this.#run.spool_offset, approval_id: id })
      else await report(withdrawApproval, { approval_id: id, reason: 'The program did not wait for the answer any more.' })
    }
  }

  async #isOnItsWay(message: string): Promise<boolean> {
    return (await runStore(this.#ctx.view).unsent(this.#id)).some((input) => input.message_id === message)
  }

  /** Written down first, then sent: what was sent and not written down would be sent again. */
  async #advance(told: Told & { offset: number; message_id?: string; approval_id?: string }): Promise<void> {
    const state = JSON.stringify(told.state)
    await this.#ctx.report(progressed, { run_id: this.#id, step: this.#run.step, ...told, state })
    this.#run = { ...this.#run, step: this.#run.step + 1, spool_offset: told.offset, harness_state: state }
    if (told.send.length || told.close || told.signal) await this.#deliver()
  }

  /** In order. Only a signal passes what is not taken: it does not go through the input of the program. */
  async #deliver(): Promise<void> {
    const { view, ports, report } = this.#ctx
    let refused = false
    for (const { seq, data, close, signal } of await runStore(view).unsent(this.#id)) {
      const input = { seq, ...(data === null ? {} : { data }), ...(close ? { close: true } : {}), ...(signal ? { signal } : {}) }
      const arrived = (!refused || signal !== null) && (await ports.runner.send(this.#id, input))
      if (arrived) await report(runSent, { run_id: this.#id, seq })
      else refused = true
    }
  }

  #state(): HarnessState {
    return JSON.parse(this.#run.harness_state) as HarnessState
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act)
    this.#turn = done.catch(() => {})
    return done
  }
}

/** What a program prints line after line is told together: tens of thousands of short lines would take a transaction too long. */
function inFewer(events: HarnessEvent[]): HarnessEvent[] {
  const fewer: HarnessEvent[] = []
  let lines: string[] = []
  let length = 0
  for (const [i, event] of events.entries()) {
    const next = events[i + 1]
    if (event.type !== 'text' || (event.from !== 'program' && event.from !== 'error')) {
      fewer.push(event)
      continue
    }
    lines.push(event.text)
    length += event.text.length + 1
    const goesOn = next?.type === 'text' && next.from === event.from && length + next.text.length < LONGEST_TOGETHER
    if (goesOn) continue
    fewer.push({ ...event, text: lines.join('\n') })
    lines = []
    length = 0
  }
  return fewer
}
