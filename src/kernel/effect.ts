import type { z } from 'zod'
import { NotHere } from './error.ts'
import type { EventOf, EventType, LoggedEvent } from './event.ts'
import type { Ask, Points } from './point.ts'
import type { Tx } from './storage.ts'
import type { Ports, Report, Tool } from './tool.ts'

/**
 * A durable unit of side-effect work: enqueued in the transaction that wants it, done after its commit.
 *
 * | state   | means                                                              |
 * |---------|--------------------------------------------------------------------|
 * | waiting | to be done at its time                                             |
 * | running | a daemon has it on lease                                           |
 * | done    |                                                                    |
 * | dead    | it failed as often as it may; a person retries or drops it         |
 * | unknown | cut off in the middle, and nobody can tell whether it was done     |
 * | dropped | a person decided that it shall not be done                         |
 *
 * | from → to         | when                                                                    |
 * |-------------------|-------------------------------------------------------------------------|
 * | waiting → running | claimed: due, and nothing of its queue in front of it                   |
 * | running → running | claimed again after its lease ran out: it was cut off                   |
 * | running → done    | done, or recognised as done                                             |
 * | running → waiting | it failed (tried again after a back-off), its daemon was told to stop, or it is for another one |
 * | running → dead    | it failed for the last time, or nobody can ever do it                   |
 * | running → unknown | cut off, and not recognised                                             |
 * | dead, unknown → waiting, dropped | a person decided                                         |
 *
 * A queue is a line: one at a time, in the order in which they were enqueued. One that waits for its back-off holds the line,
 * because what comes after it may build on it. One that is dead or unknown leaves the line, and joins it again at its old
 * place when a person retries it. One with a delay joins at its time, at the place of its enqueueing.
 */
export const EFFECT_STATES = ['waiting', 'running', 'done', 'dead', 'unknown', 'dropped'] as const
export type EffectState = (typeof EFFECT_STATES)[number]

export interface NewEffect {
  type: string
  payload: Record<string, unknown>
  /** Effects of one queue are done one at a time, in order. */
  queue?: string
  delayMs?: number
}

export interface EffectToStore extends NewEffect {
  id: string
  callId: string
  /** Attempts before it is dead. */
  attempts: number
}

/** All times of the machinery in one place. Leases are in database time, everything else is measured by a monotonic clock. */
export interface EffectTimes {
  /** How long a daemon has an effect before others may take it; renewed three times as often. */
  leaseMs: number
  /** Daemons that share a database say this often that they live … */
  beatMs: number
  /** … and are given up when they were silent for so long. Below the lease. */
  deadAfterMs: number
  /** Before the second attempt; doubled for each further one, at most an hour. No jitter: queues spread the load already. */
  backOffMs: number
  /** How late a delayed start can be where the engine has to look for it. */
  lookMs: number
  /** What a told-to-stop effect gets to end by itself. */
  graceMs: number
}

export const EFFECT_TIMES: EffectTimes = {
  leaseMs: 30_000,
  beatMs: 3_000,
  deadAfterMs: 12_000,
  backOffMs: 2_000,
  lookMs: 1_000,
  graceMs: 500,
}

/** What the door needs of whatever runs effects. */
export interface EffectQueue {
  /** In the caller's transaction: there with its commit, or not at all. */
  enqueue(tx: Tx, effects: EffectToStore[]): Promise<void>
  /** A person's decision about one that is dead or unknown. False when it is in no such state. */
  decide(tx: Tx, id: string, decision: 'retry' | 'drop'): Promise<boolean>
  /** Something may have become due. */
  wake(): void
}

export interface EffectContext {
  /** The same at every attempt: what the outside world can be asked about. */
  readonly effectId: string
  readonly attempt: number
  /** Committed rows, as they are now. */
  readonly view: Tx
  readonly ask: Ask<EffectContext>
  readonly ports: Ports
  /** Aborted when the lease is lost or the daemon stops. */
  readonly signal: AbortSignal
  /** The value of a setting as it is now, not as it was when the effect was enqueued. */
  setting<T>(key: string): Promise<T>
  /** Tells of every event of this type, as it is committed, until what it returns is called or the effect is over. */
  on<E extends EventType>(type: E, listener: (event: EventOf<E>) => void): () => void
  /**
   * Tells what came of it, through an internal tool, as the principal `system`. The same report twice is one report (for
   * 24 h, like every idempotency key), so an attempt may repeat what an earlier one has told; other input is another report.
   */
  readonly report: Report
}

export interface EffectType<P extends z.ZodType = z.ZodType> {
  type: string
  payload: P
  /** Attempts before it is dead. */
  attempts: number
  /**
   * Asked when an earlier attempt was cut off in the middle: was it done? It reports what `do` would have reported. Without it the effect is
   * repeated: each of its steps knows what an earlier attempt has done.
   */
  recognise?(ctx: EffectContext, payload: z.output<P>): Promise<'done' | 'not_done' | 'unknown'>
  /** Repeated, it could be done twice, and nobody can tell whether it was done: cut off, it is shown as unknown. */
  once?: true
  /** Throws when it was not done; soon after the signal, if it can. */
  do(ctx: EffectContext, payload: z.output<P>): Promise<void>
}

export function defineEffect<P extends z.ZodType>(declaration: EffectType<P>) {
  const enqueue = (payload: z.output<P>, how: { queue?: string; delayMs?: number } = {}): NewEffect => ({
    type: declaration.type,
    payload: payload as Record<string, unknown>,
    ...how,
  })
  return Object.assign(enqueue, declaration) as typeof enqueue & EffectType<P>
}

/** Daemons that are killed in the middle of it do not count. */
const CALLS = 100

/** The effect that only calls this tool; undefined when nobody calls it later. */
export function callLater(tool: Tool): EffectType | undefined {
  if (tool.later === undefined) return undefined
  const { later: type, input: payload } = tool
  return { type, payload, attempts: CALLS, do: async (ctx, input) => void (await ctx.report(tool, input as Record<string, unknown>)) }
}

/** A claimed effect, as the driver hands it over. */
export interface Claim {
  id: string
  type: string
  payload: unknown
  attempt: number
  maxAttempts: number
  /** An earlier attempt began and nobody heard its end. */
  cutOff: boolean
  signal: AbortSignal
}

/** `cutOff`: whether an earlier attempt was done is still to be found out. `elsewhere`: it is for another daemon. */
export type Outcome =
  | { state: 'done' }
  | { state: 'failed' | 'stopped' | 'elsewhere'; error: string; cutOff: boolean }
  | { state: 'dead' | 'unknown'; error: string }

export interface ReactorParts {
  types: Map<string, EffectType>
  points: Points
  view: Tx
  ports: Ports
  report(effectId: string, tool: string, input: Record<string, unknown>): Promise<Record<string, unknown>>
  setting<T>(key: string): Promise<T>
  subscribe(listener: (events: LoggedEvent[]) => void): () => void
}

/** Does one claimed effect. Never throws: the driver writes down what it returns. */
export async function react(parts: ReactorParts, claim: Claim): Promise<Outcome> {
  const effect = parts.types.get(claim.type)
  if (!effect) return { state: 'dead', error: `No capability of this daemon knows the effect ${claim.type}.` }
  const subscriptions: (() => void)[] = []
  const ctx: EffectContext = {
    effectId: claim.id,
    attempt: claim.attempt,
    view: parts.view,
    ask: parts.points.asking(() => ctx),
    ports: parts.ports,
    signal: claim.signal,
    report: ((tool, input) => parts.report(claim.id, tool.name, input)) as Report,
    setting: parts.setting,
    on(type, listener) {
      const end = parts.subscribe((events) => {
        for (const event of events) if (event.type === type.type) listener(event as EventOf<typeof type>)
      })
      subscriptions.push(end)
      return end
    },
  }
  let { cutOff } = claim
  try {
    const payload = effect.payload.safeParse(claim.payload)
    if (!payload.success) return { state: 'dead', error: `Its payload does not fit ${claim.type}: ${payload.error.message}` }
    const before = cutOff ? await wasDone(effect, ctx, payload.data) : 'not_done'
    if (before === 'done') return { state: 'done' }
    if (before === 'unknown') return { state: 'unknown', error: 'An earlier attempt was cut off; whether it was done is not known.' }
    // An effect that takes its daemon down with it would otherwise do so at every start.
    if (claim.attempt > claim.maxAttempts) return { state: 'dead', error: 'It was cut off at its last attempt, and is not done.' }
    cutOff = false
    await effect.do(ctx, payload.data)
    return { state: 'done' }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const failed = error instanceof NotHere ? 'elsewhere' : 'failed'
    return { state: claim.signal.aborted ? 'stopped' : failed, error: text, cutOff }
  } finally {
    for (const end of subscriptions) end()
  }
}

async function wasDone({ recognise, once }: EffectType, ctx: EffectContext, payload: unknown): Promise<'done' | 'not_done' | 'unknown'> {
  if (recognise) return recognise(ctx, payload)
  return once ? 'unknown' : 'not_done'
}

const LONGEST_BACK_OFF_MS = 3_600_000

/** `base`, twice that, four times that … at most an hour. */
export function backOffMs(attempt: number, base: number): number {
  return Math.min(2 ** (attempt - 1) * base, LONGEST_BACK_OFF_MS)
}
