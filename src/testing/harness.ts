import { type ChildProcess, spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Harness, HarnessEvent, HarnessState, Launch, LaunchPlan, Step } from '../ports/harness.ts'
import type { Exit, Frame } from '../ports/runner.ts'

/** What a test says about a launch; the rest is made up. */
export type Scene = Pick<Launch, 'options'> &
  Partial<Pick<Launch, 'run' | 'cwd' | 'brief' | 'task' | 'session' | 'model' | 'approvals' | 'noScript'>> & {
    url?: string
    token?: string
  }

export interface Recording {
  /** What the fold began with. */
  state: HarnessState
  frames: Frame[]
  exit: Exit
  /** All that was told, the end too. */
  events: HarnessEvent[]
}

/** As much of a recording as is needed to tell it again. */
export type Tape = Pick<Recording, 'frames' | 'exit'> & { state?: HarnessState }

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-harness-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }))
  return folder
}

export function launchOf(scene: Scene): Launch {
  const folder = temporaryFolder()
  const token = scene.token ?? 'sbx_not_a_token_that_anybody_knows'
  const tokenFile = join(folder, 'token')
  writeFileSync(tokenFile, token, { mode: 0o600 })
  return {
    run: scene.run ?? 'run_test',
    folder,
    cwd: scene.cwd ?? temporaryFolder(),
    brief: scene.brief ?? '',
    task: scene.task ?? null,
    mcp: { url: scene.url ?? 'http://127.0.0.1:9/mcp', token, tokenFile },
    model: scene.model ?? null,
    approvals: scene.approvals ?? 'allow',
    session: scene.session ?? null,
    noScript: scene.noScript ?? null,
    options: scene.options,
  }
}

/** One life of the real program, started as its plan says and told as it goes. In the place of a runner, for as long as the test lives. */
export class Driven {
  readonly events: HarnessEvent[] = []
  readonly frames: Frame[] = []
  readonly ended: Promise<Recording>
  readonly #harness: Harness
  readonly #child: ChildProcess
  readonly #told = new EventEmitter()
  readonly #first: HarnessState
  #state: HarnessState

  constructor(harness: Harness, scene: Scene) {
    const launch = launchOf(scene)
    const plan = harness.launch(launch)
    for (const [name, text] of Object.entries(plan.files)) writeFileSync(join(launch.folder, name), text, { mode: 0o600 })
    this.#harness = harness
    this.#first = plan.state ?? harness.begin()
    this.#state = this.#first
    this.#child = start(plan, launch.cwd)
    this.#child.stdout?.on('data', (bytes) => this.#take({ stream: 'out', at: Date.now(), bytes }))
    this.#child.stderr?.on('data', (bytes) => this.#take({ stream: 'err', at: Date.now(), bytes }))
    this.ended = this.#end()
    onTestFinished(() => void this.#child.kill('SIGKILL'))
  }

  /** Resolves with the first such event, also when it was told before. */
  async saw<T extends HarnessEvent['type']>(type: T, which: (event: Extract<HarnessEvent, { type: T }>) => boolean = () => true) {
    const found = () =>
      this.events.find((event): event is Extract<HarnessEvent, { type: T }> => event.type === type && which(event as never))
    const over = this.ended.then(() => {
      if (!found()) throw new Error(`it ended without ${type}: ${JSON.stringify(this.events)}`)
    })
    for (;;) {
      const event = found()
      if (event) return event
      await Promise.race([once(this.#told, 'event'), over])
    }
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  closeInput(): void {
    this.#child.stdin?.end()
  }

  message(text: string): void {
    const step = this.#harness.message(this.#state, text)
    if (!step) throw new Error('it takes no message')
    this.#follow(step)
  }

  interrupt(): void {
    const step = this.#harness.interrupt(this.#state)
    if (!step) throw new Error('it takes no interrupt')
    this.#follow(step)
  }

  decide(id: string, decision: { allow: boolean; message: string }): void {
    const step = this.#harness.decide(this.#state, id, decision)
    if (!step) throw new Error(`it does not ask for ${id}`)
    this.#follow(step)
  }

  #take(frame: Frame): void {
    this.frames.push(frame)
    this.#follow(this.#harness.decode(this.#state, frame))
  }

  #follow({ state, events, send = [], close, signal }: Step): void {
    this.#state = JSON.parse(JSON.stringify(state))
    this.events.push(...events)
    for (const text of send) {
      this.frames.push({ stream: 'in', at: Date.now(), bytes: Buffer.from(text) })
      this.#child.stdin?.write(text)
    }
    if (close) this.closeInput()
    if (signal) this.kill(signal)
    this.#told.emit('event')
  }

  async #end(): Promise<Recording> {
    const spawned = once(this.#child, 'close').catch((error: Error) => error)
    const how = await spawned
    const at = Date.now()
    const exit: Exit =
      how instanceof Error
        ? { reason: 'spawn_failed', code: null, signal: null, detail: how.message, at }
        : { reason: 'exited', code: how[0], signal: how[1], detail: '', at }
    this.events.push(...this.#harness.end(this.#state, exit))
    return { state: this.#first, frames: this.frames, exit, events: this.events }
  }
}

function start({ argv: [program, ...args], env, inherit, stdin }: LaunchPlan, cwd: string): ChildProcess {
  const names = ['PATH', 'HOME', 'TMPDIR', ...inherit]
  const inherited = Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])))
  const child = spawn(program, args, { cwd, env: { ...inherited, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  // A program may end without having read its input.
  child.stdin.on('error', () => {})
  if (typeof stdin === 'object') child.stdin.write(stdin.text)
  if (stdin !== 'open' && !(typeof stdin === 'object' && stdin.open)) child.stdin.end()
  return child
}

/** The same fold once more: what a daemon tells that reads the spool anew. */
export function replay(harness: Harness, { state: first, frames, exit }: Tape, keep = (state: HarnessState) => state): HarnessEvent[] {
  let state = first ?? harness.begin()
  const events = frames.flatMap((frame) => {
    const step = harness.decode(keep(state), frame)
    state = step.state
    return step.events
  })
  return [...events, ...harness.end(keep(state), exit)]
}
