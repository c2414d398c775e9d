import { z } from 'zod'
import type { NewEffect } from './effect.ts'
import type { Refusal } from './error.ts'
import type { Cursor, EventFilter, LoggedEvent, NewEvent } from './event.ts'
import { type Places, placesOf } from './id.ts'
import type { Ask } from './point.ts'
import type { Principal, Profile } from './policy.ts'
import type { Tx } from './storage.ts'
import { isList, UNREADABLE, Unreadable } from './unreadable.ts'

export type Impact = 'read' | 'write' | 'destructive'

/** Adapters by name; each file under ports/ adds its own. */
// biome-ignore lint/suspicious/noEmptyInterface: ports/ files merge into it
export interface Ports {}

/** Rows, and what other capabilities know of them. In a transaction these are the rows as it sees them. */
export interface Reading {
  readonly view: Tx
  readonly ask: Ask<Reading>
}

export interface CallContext {
  /** With the profile that this connection reaches. */
  readonly principal: Principal
  readonly callId: string
  /** Milliseconds since 1970, read once per call. */
  readonly now: number
  /** The current value of a setting, hot. */
  setting<T>(key: string): T
}

/** A transaction: rows and events, all or nothing. It may be run again before it commits. */
export interface RunContext extends CallContext {
  readonly tx: Tx
  /** The same, for what only reads. */
  readonly view: Tx
  readonly ask: Ask<RunContext>
  emit(event: NewEvent): void
  /** Work on the outside world, to be done after this commits. */
  enqueue(effect: NewEffect): void
  /** Calls an internal tool as `system` after this commits, at the earliest after the delay. */
  later<I extends z.ZodObject>(tool: Later<I>, input: z.input<I>, how?: Pick<NewEffect, 'delayMs' | 'queue'>): void
  /** Whether a dead or unknown effect was there to be retried or dropped. */
  decideEffect(id: string, decision: 'retry' | 'drop'): Promise<boolean>
  /** A new sortable, unguessable id. */
  id(prefix: string): string
}

/** A look holds no transaction; it may use ports. */
export interface LookContext extends CallContext {
  readonly view: Tx
  readonly ask: Ask<LookContext>
  readonly ports: Ports
  readonly signal: AbortSignal
  /** The row by which an id of the input was found a moment ago, where its kind keeps one. A watch gets none: it would be old. */
  found(id: string): unknown
  /** Where the log ends now. Read it before the rows, so that what follows it can only repeat, never miss. */
  cursor(): Promise<Cursor>
  /** What the caller may read of the log, oldest first; from its beginning without a cursor. */
  tail(after: Cursor | undefined, filter: EventFilter, limit: number): Promise<LoggedEvent[]>
  /** The same backwards, newest first; from its end without a cursor. */
  recent(before: Cursor | undefined, filter: EventFilter, limit: number): Promise<LoggedEvent[]>
}

/** How a wait ended: by events, by the time the caller gave it, by our own ceiling (ask again), or by shutdown. */
export type Waited = { events: LoggedEvent[]; ended: 'events' | 'timeout' | 'hold' | 'interrupted' }

/** A watch follows the log without polling and without a transaction. */
export interface WatchContext extends Omit<LookContext, 'ask'> {
  readonly ask: Ask<WatchContext>
  /** Resolves with the events after the cursor that fit, at once when there are some. */
  waitFor(after: Cursor, filter: EventFilter, timeoutMs: number): Promise<Waited>
}

type Shape<In, Out, Between> =
  | { run(ctx: RunContext, input: In): Promise<Out | Refusal>; look?: never; watch?: never; prepare?: never }
  | { look(ctx: LookContext, input: In): Promise<Out | Refusal>; run?: never; watch?: never; prepare?: never }
  | { watch(ctx: WatchContext, input: In): Promise<Out | Refusal>; run?: never; look?: never; prepare?: never }
  | {
      /** A look at the outside world, whose finding the transaction then uses. */
      prepare(ctx: LookContext, input: In): Promise<Between | Refusal>
      run(ctx: RunContext, input: In, prepared: Between): Promise<Out | Refusal>
      look?: never
      watch?: never
    }
  | {
      /** A transaction whose outcome the caller then waits for; a replay of the key waits again. `prepare` may refuse it; what it saw is a
       * third argument of `run`, which declares it as optional: two signatures would leave its others without types. */
      run(ctx: RunContext, input: In): Promise<Between | Refusal>
      watch(ctx: WatchContext, input: In, begun: Between): Promise<Out | Refusal>
      prepare?(ctx: LookContext, input: In): Promise<object | Refusal>
      look?: never
    }

interface Declaration<I extends z.ZodObject, O extends z.ZodObject> {
  /** `<noun>_<verb>`, lower snake case, at most 40 characters. */
  name: string
  title: string
  /** One line: every client resends it to the model on every turn. */
  description: string
  input: I
  output: O
  /** A call as somebody would really make it: shown in the help, the reference and the OpenAPI description. */
  example?: z.input<I>
  impact: Impact
  profile: Profile
  /** `person`: no agent may call it, whatever its role or globs. `owner`: only the person who owns the daemon. */
  by?: 'person' | 'owner'
  /** `open`: ids in the input are looked up but not scope-checked. Default: reads are open, writes are scoped. */
  scope?: 'open' | 'own'
  /**
   * What a read shows to an agent that has a project and names none. By default its own, where the tool takes a `project_id`. `log`: what
   * the log shows it. `projects`: it cannot tell them apart, so such an agent may not call it.
   */
  across?: 'log' | 'projects'
  /** How an answer that is no refusal ended, for a script that sees the exit code of the command line. Default: done. */
  outcome?(answer: z.output<O>): 'done' | 'failed' | 'pending'
  /** A failure also reaches the human. */
  critical?: boolean
  /** Fields of the input of which the audit keeps only the length: what somebody types may be a password. By the input, where that depends on it. */
  unrecorded?: readonly string[] | ((input: Record<string, unknown>) => readonly string[])
  /** For the daemon itself; on no surface. */
  internal?: boolean
  /** It can be called later, as an effect that is listed under this name. */
  later?: string
  /** Kept loaded by clients that defer the rest: about six tools. */
  core?: boolean
}

export interface Tool extends Omit<Declaration<z.ZodObject, z.ZodObject>, 'outcome'> {
  // biome-ignore lint/suspicious/noExplicitAny: see run
  outcome?(answer: any): 'done' | 'failed' | 'pending'
  places: Places | undefined
  /** Whether acting ids must lie in the caller's scope. */
  scoped: boolean
  inputJson: Record<string, unknown>
  outputJson: Record<string, unknown>
  // biome-ignore lint/suspicious/noExplicitAny: each declaration is typed; the registry holds them together
  run?(ctx: RunContext, input: any, prepared?: any): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: see run
  look?(ctx: LookContext, input: any): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: see run
  watch?(ctx: WatchContext, input: any, begun?: any): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: see run
  prepare?(ctx: LookContext, input: any): Promise<unknown>
}

/** A tool that can be called later. */
export type Later<I extends z.ZodObject> = Pick<TypedTool<string, I, z.ZodObject>, 'name' | 'input' | 'later'>

/** What is told of the outside world, through an internal tool. */
export type Report = <I extends z.ZodObject, O extends z.ZodObject>(
  tool: Pick<TypedTool<string, I, O>, 'name' | 'input' | 'output'>,
  input: z.input<I>,
) => Promise<z.output<O>>

export type TypedTool<N extends string, I extends z.ZodObject, O extends z.ZodObject> = Omit<Tool, 'name' | 'input' | 'output'> & {
  name: N
  input: I
  output: O
}

/** As people type it: `task create` for `task_create`. */
export function commandOf(tool: string): string {
  const [noun, ...verb] = tool.split('_')
  return `${noun} ${verb.join('-')}`
}

export const IDEMPOTENCY_KEY = z.string().min(1).max(200)

const KEY_JSON = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  description: 'Repeat a call safely: the same key answers as the first time, for 24 h.',
}

export function defineTool<const N extends string, I extends z.ZodObject, O extends z.ZodObject, Between = never>(
  declaration: Declaration<I, O> & { name: N } & Shape<z.output<I>, z.output<O>, Between>,
): TypedTool<N, I, O> {
  const tool = declaration as unknown as TypedTool<N, I, O>
  const writes = tool.run !== undefined
  if (writes === (tool.impact === 'read')) throw new Error(`${tool.name}: a transaction writes, a look or a watch reads`)
  if (tool.look && isList(tool.output)) Object.assign(tool, { output: tool.output.extend({ [UNREADABLE]: Unreadable }) })
  onDemand(tool, 'inputJson', () => {
    const json = jsonSchema(tool.input)
    return writes ? { ...json, properties: { ...(json.properties as object), idempotency_key: KEY_JSON } } : json
  })
  onDemand(tool, 'outputJson', () => jsonSchema(tool.output, 'output'))
  return Object.assign(tool, { places: placesOf(tool.input, tool.name), scoped: tool.scope ? tool.scope === 'own' : writes })
}

/** Made when first asked for, and kept: for all tools at every start it would be a seventh of it. */
function onDemand<T extends object, K extends keyof T & string>(target: T, key: K, make: () => T[K]): void {
  const define = (property: PropertyDescriptor) => Object.defineProperty(target, key, { configurable: true, enumerable: true, ...property })
  define({
    get: () => {
      const value = make()
      define({ value, writable: true })
      return value
    },
  })
}

/** Clients forward the whole schema to the model, and `$schema` confuses some of them. */
function jsonSchema(schema: z.ZodType, io: 'input' | 'output' = 'input'): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, target: 'draft-2020-12' }) as Record<string, unknown>
  return rest
}
