import { z } from 'zod'
import type { Build, Built, Delivery, Followed, Git, LineHead, LineOf, NewBranch, Place, Rebased, WorkState } from '../../ports/git.ts'
import type { Harness, HarnessEvent, Harnesses } from '../../ports/harness.ts'
import type { Batch, Exit, Frame, Input, Runner, RunSpec } from '../../ports/runner.ts'
import { type Deferred, deferred } from '../signals.ts'

interface FakeRun {
  spec: RunSpec | undefined
  frames: Frame[]
  inputs: Input[]
  exit: Exit | undefined
  grew: Deferred
}

/** Processes that print and end when the test says so. Like the real ones they outlive the app that started them. */
export class FakeRunner implements Runner {
  readonly runs = new Map<string, FakeRun>()
  readonly kept = new Map<string, string>()
  /** What `start` fails with, as long as it is set. */
  broken: string | undefined

  /** In the order in which they were started. */
  get started(): string[] {
    return [...this.runs].filter(([, run]) => run.spec).map(([id]) => id)
  }

  get living(): string[] {
    return this.started.filter((id) => !this.#run(id).exit)
  }

  print(id: string, ...events: HarnessEvent[]): void {
    this.#run(id).frames.push({ stream: 'out', at: Date.now(), bytes: Buffer.from(`${JSON.stringify(events)}\n`) })
    this.#wake(id)
  }

  exit(id: string, code: number | null = 0, more: Partial<Exit> = {}): void {
    this.#run(id).exit ??= { reason: 'exited', code, signal: null, detail: `code ${code}`, at: Date.now(), ...more }
    this.#wake(id)
  }

  async folder(run: string): Promise<string> {
    this.#run(run)
    return `/nowhere/${run}`
  }

  async keep(run: string, name: string, make: () => string): Promise<string> {
    const key = `${run}/${name}`
    const content = this.kept.get(key) ?? make()
    this.kept.set(key, content)
    return content
  }

  async start(run: string, spec: RunSpec) {
    if (this.broken !== undefined) throw new Error(this.broken)
    this.#run(run).spec ??= spec
    return { pid: 1, started: '1', boot: 'boot' }
  }

  async look(run: string) {
    const found = this.runs.get(run)
    if (!found) return { state: 'absent' as const }
    if (found.exit) return { state: 'ended' as const, exit: found.exit }
    return found.spec ? { state: 'running' as const, pid: 1, started: '1', boot: 'boot' } : { state: 'prepared' as const }
  }

  async *follow(run: string, from: number, signal: AbortSignal): AsyncIterable<Batch> {
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

  async send(run: string, input: Input): Promise<boolean> {
    const found = this.#run(run)
    if (found.exit) return false
    if (!found.inputs.some(({ seq }) => seq === input.seq)) found.inputs.push(input)
    return true
  }

  async stop(run: string, why: Exit['reason']): Promise<Exit> {
    this.exit(run, null, { reason: why, signal: 'SIGTERM', detail: 'stopped' })
    return this.#run(run).exit as Exit
  }

  async forget(run: string): Promise<void> {
    this.runs.delete(run)
    for (const key of this.kept.keys()) if (key.startsWith(`${run}/`)) this.kept.delete(key)
  }

  #run(id: string): FakeRun {
    const known = this.runs.get(id) ?? { spec: undefined, frames: [], inputs: [], exit: undefined, grew: deferred() }
    this.runs.set(id, known)
    return known
  }

  #wake(id: string): void {
    const run = this.#run(id)
    const { grew } = run
    run.grew = deferred()
    grew.resolve()
  }
}

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
    decode: (state, frame) => ({
      state: { frames: Number(state.frames) + 1 },
      events: JSON.parse(frame.bytes.toString()) as HarnessEvent[],
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

/** Worktrees that hold what the test says. */
export class FakeGit implements Git {
  work: WorkState = { state: 'present', head: 'a'.repeat(40), ahead: 0, dirty: 0, fingerprint: 'same' }
  readonly added: string[] = []
  readonly branches = new Set<string>()
  lineHead: LineHead = { state: 'ready', head: 'b'.repeat(40), moved: false }
  readonly builds: Build[] = []
  /** What every build comes to. */
  built: Built = { result: 'built', commit: 'c'.repeat(40) }
  readonly landed: { target: string; from: string; to: string }[] = []
  /** Whether the line is where it is moved from. */
  lands = true
  readonly deliveries: Delivery[] = []
  followed: Followed = { state: 'even' }
  readonly scratches = new Map<string, string>()

  async inspect(path: string) {
    return { top: path, branch: 'main', branches: ['main'], remote: null, head: 'a'.repeat(40) }
  }
  async has() {
    return true
  }
  async moved() {}
  placeFor(repo: string, name: string) {
    return `/worktrees/${repo}/${name}`
  }
  async add({ path }: { path: string }) {
    this.added.push(path)
    return { base: 'b'.repeat(40), head: 'b'.repeat(40) }
  }
  async state() {
    return this.work
  }
  async remove() {
    return { rescue: undefined }
  }
  async diff() {
    return { files: [], text: '', cut: false }
  }
  async file(_place: unknown, path: string) {
    return path === 'AGENTS.md' ? { bytes: Buffer.from('x'), size: 1, cut: false } : undefined
  }
  async rescue() {
    return undefined
  }
  async rescues() {
    return []
  }
  async restore() {
    return { rescue: undefined }
  }
  async size() {
    return 0
  }
  async deliver(_place: Place, delivery: Delivery) {
    this.deliveries.push(delivery)
    return { commit: 'd'.repeat(40) }
  }
  async rebase(): Promise<Rebased> {
    return { result: 'even', head: 'd'.repeat(40) }
  }
  async branch({ branch }: NewBranch) {
    this.branches.add(branch)
    return { head: 'b'.repeat(40) }
  }
  async line(_of: LineOf): Promise<LineHead> {
    return this.lineHead
  }
  async build(build: Build): Promise<Built> {
    this.builds.push(build)
    return this.built
  }
  async land({ target }: LineOf, from: string, to: string) {
    if (!this.lands) return false
    this.landed.push({ target, from, to })
    this.lineHead = { state: 'ready', head: to, moved: false }
    return true
  }
  async follow(_of: LineOf): Promise<Followed> {
    return this.followed
  }
  async scratch(_repo: string, name: string, commit: string) {
    this.scratches.set(name, commit)
    return { path: `/worktrees/.scratch/${name}` }
  }
  async dropScratch(_repo: string, name: string) {
    this.scratches.delete(name)
  }
}
