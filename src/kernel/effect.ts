import type { z } from 'zod'
import type { Tx } from './storage.ts'
import type { Ports } from './tool.ts'

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
 */
export const EFFECT_STATES = ['waiting', 'running', 'done', 'dead', 'unknown', 'dropped'] as const
export type EffectState = (typeof EFFECT_STATES)[number]

export interface NewEffect {
  type: string
  payload: Record<string, unknown>
  /** Effects of one queue are never done at the same time. */
  queue?: string
  delayMs?: number
}

export interface EffectToStore extends NewEffect {
  id: string
  callId: string
  /** Attempts before it is dead. */
  attempts: number
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
  readonly ports: Ports
  /** Aborted when the lease is lost or the daemon stops. */
  readonly signal: AbortSignal
  /** Tells what came of it, through an internal tool, as the principal `system`; repeating it is safe. */
  report(tool: string, input: Record<string, unknown>): Promise<Record<string, unknown>>
}

export interface EffectType<P extends z.ZodType = z.ZodType> {
  type: string
  payload: P
  /** Attempts before it is dead. */
  attempts: number
  /**
   * Asked when an earlier attempt was cut off in the middle: was it done? An effect that cannot be recognised is never
   * repeated; it is shown as unknown.
   */
  recognise?(ctx: EffectContext, payload: z.output<P>): Promise<'done' | 'not_done' | 'unknown'>
  /** Throws when it was not done. */
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

/** A claimed effect, as the driver hands it over. */
export interface Claim {
  id: string
  type: string
  payload: unknown
  attempt: number
  /** An earlier attempt began and nobody heard its end. */
  cutOff: boolean
  signal: AbortSignal
}

export type Outcome = { state: 'done' } | { state: 'failed'; error: string } | { state: 'unknown'; error: string }

export interface ReactorParts {
  types: Map<string, EffectType>
  ports: Ports
  report(effectId: string, tool: string, input: Record<string, unknown>): Promise<Record<string, unknown>>
}

/** Does one claimed effect. Never throws: the driver writes down what it returns. */
export async function react(parts: ReactorParts, claim: Claim): Promise<Outcome> {
  const effect = parts.types.get(claim.type)
  if (!effect) return { state: 'failed', error: `no capability knows the effect ${claim.type}` }
  const ctx: EffectContext = {
    effectId: claim.id,
    attempt: claim.attempt,
    ports: parts.ports,
    signal: claim.signal,
    report: (tool, input) => parts.report(claim.id, tool, input),
  }
  try {
    const payload = effect.payload.parse(claim.payload)
    const before = claim.cutOff ? ((await effect.recognise?.(ctx, payload)) ?? 'unknown') : 'not_done'
    if (before === 'done') return { state: 'done' }
    if (before === 'unknown') return { state: 'unknown', error: 'An earlier attempt was cut off; whether it was done is not known.' }
    await effect.do(ctx, payload)
    return { state: 'done' }
  } catch (error) {
    return { state: 'failed', error: error instanceof Error ? error.message : String(error) }
  }
}

/** 2 s, 4 s, 8 s … at most an hour. */
export function backOffMs(attempt: number): number {
  return Math.min(2 ** attempt * 1_000, 3_600_000)
}
