import { z } from 'zod'
import { checkKept, neverStarted, placeOf } from '../../adapters/runner/state.ts'
import type { Harness, HarnessEvent, Harnesses } from '../../ports/harness.ts'
import type { Batch, Exit, Frame, Input, Runner, RunnerState, RunSpec, StopReason } from '../../ports/runner.ts'
import { type Deferred, deferred } from '../signals.ts'

interface FakeRun {
  /** Of its agent; without one it was never started. */
  spec: RunSpec | undefined
  frames: Frame[]
  /** Those that were taken, each once. */
  inputs: Input[]
  takesInput: boolean
  exit: Exit | undefined
  grew: Deferred
}

/** Processes that print and end when the test says so. Like the real ones they outlive the app that started them. */
export class FakeRunner implements Runner {
  readonly runs = new Map<string, FakeRun>()
  /** By the run and the name of the file: `run_1/token`. */
  readonly kept = new Map<string, string>()
  /** What `start` fails with, as long as it is set. */
  broken: string | undefined
  /** Why nothing is hidden from agents. */
  exposing: string | undefined

  /** In the order in which they were started. */
  get started(): string[] {
    return [...this.runs].filter(([, run]) => run.spec).map(([id]) => id)
  }

  get living(): string[] {
    return this.started.filter((id) => !this.#run(id).exit)
  }

  print(id: string, ...events: HarnessEvent[]): void {
    this.tell(id, `${JSON.stringify(events)}\n`)
  }

  tell(id: string, text: string, stream: Frame['stream'] = 'out'): void {
    this.#run(id).frames.push({ stream, at: Date.now(), bytes: Buffer.from(text) })
    this.#wake(id)
  }

  exit(id: string, code: number | null = 0, more: Partial<Exit> = {}): void {
    this.#run(id).exit ??= { reason: 'exited', code, signal: null, detail: `code ${code}`, at: Date.now(), ...more }
    this.#wake(id)
  }

  async folder(run: string): Promise<string> {
    this.#run(run)
    return placeOf('/nowhere', run).folder
  }

  async keep(run: string, name: string, make: () => string): Promise<string> {
    const key = `${run}/${checkKept(name)}`
    this.#run(run)
    const content = this.kept.get(key) ?? make()
    this.kept.set(key, content)
    return content
  }

  async start(run: string, spec: RunSpec) {
    if (this.broken !== undefined) throw new Error(this.broken)
    const found = this.#run(run)
    if (!found.spec && !found.exit) {
      const { stdin } = spec
      found.spec = spec
      found.takesInput = stdin === 'open' || (typeof stdin === 'object' && stdin.open === true)
      if (typeof stdin === 'object') this.tell(run, stdin.text, 'in')
    }
    return STARTED
  }

  async exposed(): Promise<string | undefined> {
    return this.exposing
  }

  async look(run: string): Promise<RunnerState> {
    const found = this.runs.get(placeOf('/nowhere', run).run)
    if (!found) return { state: 'absent' }
    if (found.exit) return { state: 'ended', exit: found.exit }
    return found.spec ? { state: 'running', ...STARTED } : { state: 'prepared' }
  }

  async *follow(run: string, from: number, signal: AbortSignal): AsyncIterable<Batch> {
    const { state } = await this.look(run)
    if (state === 'absent' || state === 'prepared') throw new Error(`${run} has not been started.`)
    const found = this.#run(run)
    for (let offset = from; !signal.aborted; ) {
      const grew = found.grew.promise
      const frames = found.frames.slice(offset)
      offset = found.frames.length
      const { exit } = found
      if (frames.length || exit) yield { frames, offset, ...(exit ? { exit } : {}) }
      // What is told while a batch is being taken is told once: whoever listens only then hears nothing.
      if (exit || signal.aborted) return
      await Promise.race([grew, new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))])
    }
  }

  async printed(run: string, from: number): Promise<Batch> {
    const frames = this.runs.get(placeOf('/nowhere', run).run)?.frames.slice(from) ?? []
    return { frames, offset: from + frames.length }
  }

  async send(run: string, input: Input): Promise<boolean> {
    if ((await this.look(run)).state !== 'running') return false
    const found = this.#run(run)
    if (found.inputs.some(({ seq }) => seq === input.seq)) return true
    if ((input.data !== undefined || input.close) && !found.takesInput) return false
    found.inputs.push(input)
    if (input.data !== undefined) this.tell(run, input.data, 'in')
    if (input.close) found.takesInput = false
    return true
  }

  async stop(run: string, why: StopReason): Promise<Exit> {
    const { state } = await this.look(run)
    if (state === 'absent') return neverStarted(why)
    this.exit(run, null, state === 'running' ? { reason: why, signal: 'SIGTERM', detail: 'stopped' } : neverStarted(why))
    return this.#run(run).exit as Exit
  }

  async forget(run: string): Promise<void> {
    if ((await this.look(run)).state === 'running') throw new Error(`${run} is still running. Stop it first.`)
    this.runs.delete(run)
    for (const key of [...this.kept.keys()]) if (key.startsWith(`${run}/`)) this.kept.delete(key)
  }

  #run(id: string): FakeRun {
    const { run } = placeOf('/nowhere', id)
    const none = { spec: undefined, frames: [], inputs: [], takesInput: false, exit: undefined, grew: deferred() }
    const known = this.runs.get(run) ?? none
    this.runs.set(run, known)
    return known
  }

  #wake(id: string): void {
    const run = this.#run(id)
    const { grew } = run
    run.grew = deferred()
    grew.resolve()
  }
}

const STARTED = { pid: 1, started: '1', boot: 'boot' }

/** Prints events as they are: one list to a frame. */
export function fakeHarness(more: Partial<Harness> = {}): Harness {
  return {
    name: 'fake',
    title: 'A fake',
    meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn' },
    can: { message: true, interrupt: true, resume: true, approve: true },
    options: z.strictObject({ taste: z.string().optional() }),
    probe: async () => ({ found: true, version: '1' }),
    launch: ({ brief, session }) => ({ argv: ['fake'], env: {}, inherit: [], stdin: 'open', files: { brief, session: session ?? '' } }),
    begin: () => ({ frames: 0 }),
    decode: (state, { stream, bytes }) => ({
      state: { frames: Number(state.frames) + 1 },
      events: stream === 'in' ? [] : (JSON.parse(bytes.toString()) as HarnessEvent[]),
    }),
    message: (state, text) => ({ state, events: [{ type: 'text', from: 'person', text }], send: [`${text}\n`] }),
    interrupt: (state) => ({ state, events: [], signal: 'SIGINT' }),
    decide: (state, id, { allow, message }) => ({ state, events: [], send: [`${JSON.stringify({ id, allow, message })}\n`] }),
    end: (_state, exit) => [{ type: 'exited', ok: exit.reason === 'exited' && exit.code === 0, reason: exit.detail }],
    ...more,
  }
}

export function harnessesOf(...list: Harness[]): Harnesses {
  return { names: () => list.map(({ name }) => name), get: (name) => list.find((harness) => harness.name === name) }
}
