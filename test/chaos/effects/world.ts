import { appendFileSync, closeSync, existsSync, openSync, readdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { capabilities } from '../../../src/capabilities/index.ts'
import { type Capability, defineCapability } from '../../../src/kernel/capability.ts'
import { defineEffect, type EffectContext } from '../../../src/kernel/effect.ts'
import { defineEvent } from '../../../src/kernel/event.ts'
import { defineTool } from '../../../src/kernel/tool.ts'
import { pause } from '../stop.ts'

export const Wanted = z.strictObject({
  /** A known one can be recognised by its file, a blind one by nothing. */
  kind: z.enum(['known', 'blind']),
  name: z.string(),
  queue: z.string().optional(),
  fails: z.int().default(0),
  /** How long it takes: what lasts longer than a lease, or is killed in the middle, takes real time. */
  ms: z.int().default(0),
  /** Goes on when a file of this name is there. */
  until: z.string().optional(),
})
export type Wanted = z.input<typeof Wanted>

export type Line = { at: number; pid: number } & (
  | { what: 'acked'; names: string[] }
  | { what: 'begin' | 'end' | 'did' | 'twice' | 'stopped'; name: string; queue?: string }
  | { what: 'killed'; victim: number }
  | { what: 'defect'; text: string }
)
type NewLine = Line extends infer L ? (L extends Line ? Omit<L, 'at' | 'pid'> : never) : never

const COMMITTED = 'committed'

/** The outside world, as a folder that outlives every process: one file per known effect, one log to which everybody appends. */
export class World {
  readonly folder: string

  constructor(folder: string) {
    this.folder = folder
  }

  append(line: NewLine): void {
    appendFileSync(
      join(this.folder, 'log'),
      `${JSON.stringify({ at: performance.timeOrigin + performance.now(), pid: process.pid, ...line })}\n`,
    )
  }

  lines(): Line[] {
    const file = join(this.folder, 'log')
    if (!existsSync(file)) return []
    // Behind the last end of a line stands what somebody is just writing.
    const whole = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    return whole.map((line) => JSON.parse(line) as Line)
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, `${name}.done`))
  }

  get files(): string[] {
    return readdirSync(this.folder).flatMap((file) => (file.endsWith('.done') ? file.slice(0, -'.done'.length) : []))
  }

  /** Really does it; that it was there before is what must never happen. */
  create(name: string): void {
    try {
      closeSync(openSync(join(this.folder, `${name}.done`), 'wx'))
    } catch {
      this.append({ what: 'twice', name })
    }
  }

  async passes(gate: string | undefined, signal: AbortSignal): Promise<void> {
    if (gate) await this.#until(gate, async () => existsSync(join(this.folder, gate)), signal)
  }

  /** Tells those who wait, in whatever process they are, that a row may have another state now. */
  committed(): void {
    writeFileSync(join(this.folder, COMMITTED), '')
  }

  /** Looks now and after every commit of any process; ends without it when the signal says so. */
  untilCommitted(holds: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    return this.#until(COMMITTED, holds, signal)
  }

  async #until(file: string, holds: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    let lookAgain = () => {}
    const watcher = watch(this.folder, (_, changed) => changed === file && lookAgain())
    signal.addEventListener('abort', () => lookAgain(), { once: true })
    try {
      for (;;) {
        // Before the look: a change in the middle of it must not be missed.
        const changed = new Promise<void>((resolve) => {
          lookAgain = resolve
        })
        if (signal.aborted || (await holds())) return
        await changed
      }
    } finally {
      watcher.close()
    }
  }
}

export const marked = defineEvent('mark.made', z.strictObject({ name: z.string() }))

const made = defineTool({
  name: 'mark_made',
  title: 'Mark made',
  description: 'What came of an effect on the world.',
  input: z.strictObject({ name: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'operator',
  internal: true,
  async run(ctx, { name }) {
    ctx.emit(marked({ subject: name }, { name }))
    return {}
  },
})

/** All real capabilities, and one with effects on that world. */
export function markCapabilities(world: World): Capability[] {
  async function act(ctx: EffectContext, { kind, name, queue, fails, ms, until }: z.output<typeof Wanted>): Promise<void> {
    world.append({ what: 'begin', name, queue })
    if (ms) await pause(ms)
    await world.passes(until, ctx.signal)
    if (ctx.signal.aborted) {
      world.append({ what: 'stopped', name, queue })
      throw new Error('told to stop')
    }
    const fine = ctx.attempt > fails
    if (fine && kind === 'known') world.create(name)
    if (fine && kind === 'blind') world.append({ what: 'did', name, queue })
    world.append({ what: 'end', name, queue })
    if (!fine) throw new Error('not yet')
    await ctx.report(made, { name })
  }
  const known = defineEffect({
    type: 'mark.known',
    payload: Wanted,
    attempts: 20,
    async recognise(ctx, { name }) {
      if (!world.has(name)) return 'not_done'
      await ctx.report(made, { name })
      return 'done'
    },
    do: act,
  })
  const blind = defineEffect({ type: 'mark.blind', payload: Wanted, attempts: 20, once: true, do: act })
  const want = defineTool({
    name: 'mark_want',
    title: 'Want marks',
    description: 'Enqueues effects on the world.',
    input: z.strictObject({ marks: z.array(Wanted).max(1_000) }),
    output: z.strictObject({}),
    impact: 'write',
    profile: 'operator',
    async run(ctx, { marks }) {
      for (const mark of marks) ctx.enqueue((mark.kind === 'known' ? known : blind)(mark, { queue: mark.queue }))
      return {}
    },
  })
  return [...capabilities, defineCapability({ name: 'mark', tools: [want, made], events: [marked], effects: [known, blind] })]
}
