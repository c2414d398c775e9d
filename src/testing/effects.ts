import { sql } from 'kysely'
import { z } from 'zod'
import { type EffectRow, type EffectTables, effectStore } from '../db/effect-store.ts'
import { tables } from '../db/tables.ts'
import { defineEffect, type EffectContext, type EffectTimes } from '../kernel/effect.ts'
import { NotHere, refuse } from '../kernel/error.ts'
import { defineTool } from '../kernel/tool.ts'
import { openTestApp, type TestApp } from './app.ts'
import { put, withProbe } from './probe.ts'
import { type Deferred, deferred } from './signals.ts'

/**
 * Short where a test waits for it. A lease and the grace are long: a machine that stands still for a moment must not lose an effect
 * by that, nor is one that ends when it is told to taken for one that did not.
 */
export const QUICK: EffectTimes = { leaseMs: 8_000, beatMs: 50, deadAfterMs: 250, backOffMs: 20, lookMs: 50, graceMs: 10_000 }

const Payload = z.strictObject({
  name: z.string(),
  /** How often it fails before it is done. */
  fails: z.int().default(0),
  /** What it says when it fails; `\\0` stands for a NUL. */
  saying: z.string().default(''),
  /** Waits in the middle until the test lets it go, or it is told to stop. */
  holds: z.boolean().default(false),
  /** Does not listen to the signal. */
  deaf: z.boolean().default(false),
  /** The only world in which it can be done. */
  only: z.string().default(''),
  reports: z.array(z.string()).default([]),
})
type Payload = z.output<typeof Payload>

/** The outside world: what was done to it, and by whom it is being done. */
export class World {
  /** Names in the order in which they were really done. */
  readonly done: string[] = []
  /** Every beginning and end, in order: `+a`, `-a`. */
  readonly log: string[] = []
  readonly signals = new Map<string, AbortSignal>()
  readonly asked: string[] = []
  recogniseFails = 0
  readonly host: string
  readonly #began = new Map<string, Deferred>()
  readonly #gates = new Map<string, Deferred>()

  constructor(host = '') {
    this.host = host
  }

  began(name: string): Promise<void> {
    return entry(this.#began, name).promise
  }

  letGo(name: string): void {
    entry(this.#gates, name).resolve()
  }

  async act(ctx: EffectContext, payload: Payload): Promise<void> {
    const { name, fails, saying, holds, deaf, only, reports } = payload
    this.log.push(`+${name}`)
    if (only && only !== this.host) throw new NotHere(name, only)
    this.signals.set(name, ctx.signal)
    entry(this.#began, name).resolve()
    try {
      if (holds) await Promise.race([entry(this.#gates, name).promise, ...(deaf ? [] : [stopped(ctx.signal)])])
      if (ctx.attempt <= fails) throw new Error(`${name} failed at attempt ${ctx.attempt}${saying.replaceAll('\\0', '\0')}`)
      this.done.push(name)
      for (const body of reports) await ctx.report(probeReport, { body })
    } finally {
      this.log.push(`-${name}`)
    }
  }

  async recognise(name: string): Promise<'done' | 'not_done'> {
    this.asked.push(name)
    if (this.recogniseFails-- > 0) throw new Error('the world does not answer')
    return this.done.includes(name) ? 'done' : 'not_done'
  }
}

function entry(map: Map<string, Deferred>, name: string): Deferred {
  const found = map.get(name) ?? deferred()
  map.set(name, found)
  return found
}

function stopped(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('told to stop'))))
}

const probeReport = defineTool({
  name: 'probe_report',
  title: 'Report',
  description: 'What came of an effect.',
  input: z.strictObject({ body: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'operator',
  internal: true,
  async run(ctx, { body }) {
    await put(ctx, `${body} by ${ctx.principal.id}`)
    return {}
  },
})

/** A capability whose tool enqueues whatever it is asked to: recognisable effects, unrecognisable ones, and such as nobody knows. */
export function effectProbe(world: World) {
  const effects = [
    defineEffect({
      type: 'probe.known',
      payload: Payload,
      attempts: 3,
      recognise: (_ctx, { name }) => world.recognise(name),
      do: (ctx, payload) => world.act(ctx, payload),
    }),
    defineEffect({ type: 'probe.unknown', payload: Payload, attempts: 3, once: true, do: (ctx, payload) => world.act(ctx, payload) }),
  ]
  const Wanted = z.strictObject({
    type: z.enum(['probe.known', 'probe.unknown']).default('probe.known'),
    payload: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.array(z.string())])),
    queue: z.string().optional(),
    delay_ms: z.int().optional(),
  })
  const enqueue = defineTool({
    name: 'probe_enqueue',
    title: 'Enqueue',
    description: 'Enqueues effects for a test.',
    input: z.strictObject({ effects: z.array(Wanted).max(1_000), ends: z.enum(['answer', 'refuse', 'throw']).default('answer') }),
    output: z.strictObject({}),
    impact: 'write',
    profile: 'operator',
    async run(ctx, input) {
      for (const { type, payload, queue, delay_ms } of input.effects) ctx.enqueue({ type, payload, queue, delayMs: delay_ms })
      if (input.ends === 'refuse') return refuse('CONFLICT', 'no')
      if (input.ends === 'throw') throw refuse('CONFLICT', 'no')
      return {}
    },
  })
  return withProbe([enqueue, probeReport], { effects })
}

export interface EffectApp extends TestApp {
  world: World
}

export async function openEffectApp(world = new World(), times: Partial<EffectTimes> = {}): Promise<EffectApp> {
  const app = await openTestApp({ capabilities: effectProbe(world), effectTimes: { ...QUICK, ...times } })
  return Object.assign(app, { world })
}

type Wanted = { type?: string; queue?: string; delay_ms?: number } & Partial<Payload> & { name: string }

const wanted = ({ type, queue, delay_ms, ...payload }: Wanted) => ({ type, queue, delay_ms, payload })

/** Enqueues all of them in one call. */
export async function enqueue(app: TestApp, ...effects: Wanted[]): Promise<void> {
  await app.owner.call('probe_enqueue', { effects: effects.map(wanted) })
}

export function effectRows(app: TestApp): Promise<EffectRow[]> {
  return tables<EffectTables>(app.app.engine.view).selectFrom('effects').selectAll().orderBy('created_at').orderBy('id').execute()
}

/** State by name. */
export async function states(app: TestApp): Promise<Record<string, string>> {
  const rows = await effectRows(app)
  return Object.fromEntries(rows.map((row) => [(JSON.parse(row.payload) as Payload).name, row.state]))
}

/** A row as a daemon leaves it that is killed in the middle of it. Nobody is told; open the app again for that. */
export async function leaveCutOff(app: TestApp, effect: Wanted, more: Partial<EffectRow> = {}): Promise<EffectRow> {
  const { engine, host } = app.app
  const id = host.id('effect')
  const { type = 'probe.known', queue, payload } = wanted(effect)
  await engine.write(async (tx) => {
    await effectStore(tx, engine.facts).insert([{ id, type, payload, queue, callId: host.id('call'), attempts: 3 }])
    await tables<EffectTables>(tx)
      .updateTable('effects')
      .set({ state: 'running', owner: 'a daemon that is gone', epoch: 1, attempts: 1, ...more })
      .set({ lease_until: sql<number>`${engine.facts.nowMs()} + 600000` })
      .where('id', '=', id)
      .execute()
  })
  return (await effectRows(app)).find((row) => row.id === id) as EffectRow
}
