import type { z } from 'zod'
import { answerOf, calledIn, type Failures } from './audit.ts'
import type { Dialect } from './dialect.ts'
import type { EffectQueue, EffectToStore, NewEffect } from './effect.ts'
import { CODES, type Code, type ErrorBody, isCode, Refusal, refuse, TransientFault, UncertainFault } from './error.ts'
import type { Cursor, EventFilter, NewEvent } from './event.ts'
import { mapIds, notFound } from './id.ts'
import type { RateLimit } from './limit.ts'
import type { CallRecord, Feed, Ledger, StoredAnswer } from './log.ts'
import { delay, type Patience, patiently } from './patience.ts'
import { actingFor, inScope, type Lane, mayCall, maySee, onLane, onlyProject, type Principal, type RoleRules, SYSTEM } from './policy.ts'
import { auditJson, lengthsOnly, redactText, withoutSecrets } from './redact.ts'
import type { Found, Registry } from './registry.ts'
import type { Settings } from './settings.ts'
import type { Storage, Tx } from './storage.ts'
import { canonicalJson, checkText, storable } from './text.ts'
import { IDEMPOTENCY_KEY, type LookContext, type Ports, type RunContext, type Tool, type WatchContext } from './tool.ts'
import { strangeValues, UNREADABLE, unreadable, withoutUnreadable } from './unreadable.ts'

/** What the kernel takes from the machine, so that it stays pure. */
export interface Host {
  now(): number
  monotonic(): number
  id(prefix: string): string
  hash(text: string): string
}

export interface Identity {
  /** `stale` is a token that was ours once: its owner is known, so the refusal can be audited. */
  authenticate(view: Tx, secret: string): Promise<{ readonly principal: Principal; readonly stale?: string } | undefined>
  /** Still valid, with its current scope and role, in this transaction. */
  refresh(tx: Tx, principal: Principal): Promise<Principal | undefined>
  /** The agent that a person wants to act for. */
  agent(view: Tx, ref: string): Promise<Principal | undefined>
}

/** What a token has proven at this moment: for the one call that follows at once. */
export type Proof = NonNullable<Awaited<ReturnType<Identity['authenticate']>>>

export type Surface = 'mcp' | 'stdio' | 'http' | 'sse' | 'cli' | 'daemon'

export interface Request {
  tool: string
  input: unknown
  /** The bearer token, with what it has just proven where the surface had to ask; `system` only from inside the daemon. */
  credential: { secret: string; proof?: Proof } | 'system'
  surface: Surface
  lane?: Lane
  dialect?: string
  actFor?: string
  /** Where an unauthenticated request came from. */
  source?: string
  signal?: AbortSignal
  /** Longest time a wait may stay silent on this surface. */
  holdMs?: number
}

export type Answer = { ok: true; value: Record<string, unknown> } | { ok: false; error: ErrorBody; shaped?: Record<string, unknown> }

export interface KernelParts {
  registry: Registry
  storage: Storage
  ledger: Ledger
  feed: Feed
  effects: EffectQueue
  identity: Identity
  settings: Settings
  host: Host
  ports: Ports
  limit: RateLimit
  auditLater(call: CallRecord): void
  failures?: Failures
  countRefusal(source: string, reason: string): void
  onDefect(error: unknown, call: { id: string; tool: string }): void
  onCall?(call: CallRecord): void
  /** What must hold before the caller hears that it was done: a changed setting is in force for the very next call. */
  beforeAnswer?(events: NewEvent[]): Promise<void>
}

export const DEFAULT_HOLD_MS = 45_000
const NEVER = new AbortController().signal
const LONGEST_STACK = 2_500

/** One call on its way through the door. */
interface Call {
  id: string
  at: number
  began: number
  request: Request
  lane: Lane
  principal: Principal
  found?: Found
  input: unknown
  /** Its transaction is durable: whatever fails from here on, something was written. */
  committed?: boolean
}

/** What a transaction leaves behind for its answer. */
interface Done {
  value: unknown
  input: unknown
  events: NewEvent[]
  /** Something may be due now that was not before. */
  wantsEffects: boolean
  replayed: boolean
}

/** As it is stored under an idempotency key. */
interface Answered {
  value?: unknown
  refusal?: ErrorBody
  /** Whose refusal it is. */
  token?: string
}

/** Who calls; `why` is the reason to refuse a caller that is nevertheless known, so that the refusal is audited. */
interface Caller {
  principal: Principal
  why?: Refusal
}

export class Kernel {
  readonly parts: KernelParts
  /** Those that `authenticate` gave out, each with its secret, until a call uses them. */
  readonly #proofs = new WeakMap<Proof, string>()
  readonly #inside = new Set<Promise<Answer>>()

  constructor(parts: KernelParts) {
    this.parts = parts
  }

  /** The only door. Never throws: every outcome is an answer, and every answer is in the audit. */
  async invoke(request: Request): Promise<Answer> {
    const answer = this.#pass(request)
    this.#inside.add(answer)
    try {
      return await answer
    } finally {
      this.#inside.delete(answer)
    }
  }

  /** Resolves when every call that is inside has its answer, at the latest after this time. */
  async answered(withinMs: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, withinMs)
    })
    await Promise.race([Promise.allSettled(this.#inside), late])
    clearTimeout(timer)
  }

  async #pass(request: Request): Promise<Answer> {
    const who = await this.#authenticate(request)
    if ('error' in who) return this.#shape({ request }, who.error)
    const call = this.#open(request, who.principal)
    let leave = () => {}
    try {
      leave = this.admit(who.principal)
    } catch (error) {
      return this.#shape(call, (error as Refusal).body)
    }
    try {
      if (who.why) throw who.why
      const found = this.parts.registry.find(request.tool, request.dialect)
      call.found = found
      const refusal = this.#refusal(call.principal, call.lane, found)
      if (refusal) throw refusal
      return await this.#serve(call, this.#chosen(call, found))
    } catch (error) {
      return await this.#fail(call, error)
    } finally {
      leave()
    }
  }

  /** Throws RATE_LIMITED, or returns what to call when it is over. Surfaces ask for what is no call: a session, a stream, a list. */
  admit(principal: Principal): () => void {
    if (principal.kind === 'system') return () => {}
    const of = (what: string) => this.parts.settings.get<number>(`limits.${principal.kind}_${what}`)
    try {
      return this.parts.limit.enter(principal.tokenId ?? principal.id, { perSecond: of('calls_per_second'), burst: of('burst') })
    } catch (error) {
      this.parts.countRefusal(principal.id, 'RATE_LIMITED')
      throw error
    }
  }

  /** What this token may call, under the names that the dialect uses. Enforced again at call time. */
  permitted(principal: Principal, lane: Lane, dialectName?: string): Found[] {
    const dialect = dialectName === undefined ? undefined : this.parts.registry.dialect(dialectName)
    const all: Found[] = dialect
      ? dialect.tools
          .filter((t) => !t.unlisted)
          .map((adapter) => ({ tool: this.parts.registry.tool(adapter.native), calledAs: adapter.name, dialect, adapter }))
      : this.parts.registry.tools.map((tool) => ({ tool, calledAs: tool.name }))
    return all.filter((found) => !found.tool.internal && !this.#refusal(principal, lane, found))
  }

  /** Whose token this is, or was: for connections and streams, which a token that is for one call alone does not open. */
  async authenticate(secret: string): Promise<Proof | undefined> {
    const found = await this.#known(secret)
    const only = found?.principal.only
    if (found && only !== undefined) return { ...found, stale: `is for ${only} alone` }
    if (found) this.#proofs.set(found, secret)
    return found
  }

  /** Each is good once: by the next call its token may have ended. */
  #proven({ secret, proof }: { secret: string; proof?: Proof }): Proof | undefined {
    if (!proof || this.#proofs.get(proof) !== secret) return undefined
    this.#proofs.delete(proof)
    return proof
  }

  /** Read each time: a change holds for the next call. */
  get #patience(): Patience {
    const { settings } = this.parts
    return { retries: settings.get('limits.retries'), delayMs: settings.get('limits.retry_delay_ms') }
  }

  #patiently<T>(work: () => Promise<T>): Promise<T> {
    return patiently(work, this.#patience)
  }

  #known(secret: string): Promise<Proof | undefined> {
    return this.#patiently(() => this.parts.identity.authenticate(this.parts.storage.view, secret))
  }

  async #authenticate(request: Request): Promise<Caller | { error: ErrorBody }> {
    if (request.credential === 'system') return { principal: SYSTEM }
    try {
      const found = this.#proven(request.credential) ?? (await this.#known(request.credential.secret))
      if (found?.stale) return { principal: found.principal, why: stale(`This token ${found.stale}.`) }
      if (found) return request.actFor === undefined ? found : await this.#actFor(found.principal, request.actFor)
    } catch (error) {
      return { error: this.#bodyOf(error, { id: '-', tool: request.tool }) }
    }
    this.parts.countRefusal(request.source ?? 'unknown', 'UNAUTHENTICATED')
    return { error: unauthenticated() }
  }

  async #actFor(principal: Principal, ref: string): Promise<Caller> {
    // A token for one tool alone is that for nobody else either.
    if (principal.kind !== 'person' || principal.only !== undefined)
      return { principal, why: refuse('PERMISSION_DENIED', 'Only a person may act for an agent.') }
    const agent = await this.parts.identity.agent(this.parts.storage.view, ref)
    return agent
      ? { principal: actingFor(agent, principal) }
      : { principal, why: notFound('agent', ref, this.parts.registry.lister('agent')) }
  }

  #open(request: Request, principal: Principal): Call {
    const { host } = this.parts
    return { id: host.id('call'), at: host.now(), began: host.monotonic(), request, lane: request.lane ?? 'admin', principal, input: null }
  }

  async #serve(call: Call, found: Found): Promise<Answer> {
    const { tool } = found
    const { key, input } = this.#parse(call, found)
    let value: unknown
    let replayed = false
    if (tool.run) {
      const prepared = tool.prepare && !(await this.#answeredBefore(call, tool, key)) ? await this.#prepare(call, tool, input) : undefined
      const done = await this.#transact(call, tool, input, key, prepared)
      replayed = done.replayed
      value = done.value
      if (tool.watch && !(value instanceof Refusal)) {
        value = this.#checked(tool, await tool.watch(this.#watchContext(call), done.input, value))
        await this.#auditAnswer(call, value)
      }
    } else {
      const rows = new Map<string, unknown>()
      const named = await this.#patiently(() => this.#resolve(this.parts.storage.view, call.principal, tool, input, undefined, rows))
      const resolved = inOwnProject(call.principal, tool, named as Record<string, unknown>)
      const seen = tool.watch
        ? await tool.watch(this.#watchContext(call), resolved)
        : await this.#patiently(async () => tool.look?.(this.#lookContext(call, rows), resolved))
      value = this.#checked(tool, seen)
      this.#auditRead(call, value)
    }
    if (value instanceof Refusal) return this.#shape(call, value.body)
    const shaped = this.#shaped(call, value)
    return { ok: true, value: replayed ? { ...shaped } : shaped }
  }

  /** An answer as the caller's dialect has it. */
  #shaped({ found, input, principal }: Call, value: unknown): Record<string, unknown> {
    const answer = value as Record<string, unknown>
    return found?.adapter?.fromNative(answer, input as Record<string, unknown>, principal) ?? answer
  }

  async #prepare(call: Call, tool: Tool, input: unknown): Promise<unknown> {
    const resolved = await this.#resolve(this.parts.storage.view, call.principal, tool, input)
    const prepared = await tool.prepare?.(this.#lookContext(call), resolved)
    if (prepared instanceof Refusal) throw prepared
    return prepared
  }

  /** The world may have moved on since a call was answered: its replay must not be refused by a second look at it. */
  async #answeredBefore(call: Call, tool: Tool, key: string | undefined): Promise<boolean> {
    return key !== undefined && (await this.#remembered(this.parts.storage.view, call, tool, key)).answer !== undefined
  }

  /**
   * What was answered under this key. A refusal holds for the token that was refused: what stood in the way in one life of an agent may be
   * gone in the next. `stored` is then what the new answer replaces.
   */
  async #remembered(tx: Tx, { principal, at }: Call, tool: Tool, key: string): Promise<{ stored?: StoredAnswer; answer?: Answered }> {
    const stored = await this.parts.ledger.remembered(tx, principal.id, tool.name, key, at)
    const answer = stored && (JSON.parse(stored.answer) as Answered)
    return { stored, answer: answer?.refusal && answer.token !== principal.tokenId ? undefined : answer }
  }

  /** A dialect's own globs come on top of the native ones: else a tool denied in the settings could be had under a seed's name. */
  #refusal(principal: Principal, lane: Lane, { tool, calledAs, dialect }: Found): Refusal | undefined {
    const native = mayCall({ principal, lane, tool, name: tool.name, calledAs, rules: this.#roleRules(principal) })
    const documented = principal.role && dialect?.roles?.[principal.role]
    return native ?? (documented && mayCall({ principal, lane, tool, name: calledAs, calledAs, rules: documented }))
  }

  #roleRules({ role }: Principal): RoleRules | undefined {
    const { settings } = this.parts
    return role && { allow: settings.get(`roles.${role}.allow`), deny: settings.get(`roles.${role}.deny`) }
  }

  /** The other native tool that a dialect means by these arguments, with the permissions of that one. */
  #chosen(call: Call, found: Found): Found {
    const { input } = call.request
    const other = isObject(input) ? found.adapter?.instead?.find(({ when }) => when(input, call.principal)) : undefined
    if (!other || !found.adapter) return found
    call.found = { ...found, tool: this.parts.registry.tool(other.native), adapter: { ...found.adapter, ...other } }
    const refusal = this.#refusal(call.principal, call.lane, call.found)
    if (refusal) throw refusal
    return call.found
  }

  #parse(call: Call, found: Found): { key: string | undefined; input: unknown } {
    const raw = call.request.input ?? {}
    if (!isObject(raw)) throw refuse('INVALID_INPUT', 'The arguments must be an object.')
    checkText(raw)
    // Only now: a value that cannot be walked safely must not reach the audit either.
    call.input = raw
    const { tool, adapter } = found
    const native = adapter ? adapter.toNative(raw, call.principal) : raw
    if (!tool.run) return { key: undefined, input: parsed(tool.input, native, found.calledAs) }
    const { idempotency_key, ...rest } = native
    const key = idempotency_key === undefined ? undefined : parsed(IDEMPOTENCY_KEY, idempotency_key, found.calledAs, 'idempotency_key')
    return { key, input: parsed(tool.input, rest, found.calledAs) }
  }

  /** A thing may have changed while somebody else held it: what counts is how it is once it is ours. */
  async #resolveAndHold(tx: Tx, principal: Principal, tool: Tool, input: unknown): Promise<unknown> {
    const acted = new Set<string>()
    const resolved = await this.#resolve(tx, principal, tool, input, acted)
    if (!this.parts.storage.hold || !acted.size) return resolved
    await this.parts.storage.hold(tx, [...acted].sort())
    return this.#resolve(tx, principal, tool, resolved)
  }

  /** Handles become ids, and every id that the call acts on must lie in the caller's scope as it is now. */
  async #resolve(
    tx: Tx,
    principal: Principal,
    tool: Tool,
    input: unknown,
    acted?: Set<string>,
    rows?: Map<string, unknown>,
  ): Promise<unknown> {
    return mapIds(tool.places, input, async (kind, use, ref) => {
      const thing = await this.parts.registry.thing(kind).find(tx, ref)
      if (!thing) throw notFound(kind, ref, this.parts.registry.lister(kind))
      if (use === 'act') acted?.add(thing.id)
      rows?.set(thing.id, thing.row)
      if (use === 'self' && thing.id !== principal.id)
        throw refuse('PERMISSION_DENIED', `"${ref}" is not you: identity comes from your token.`)
      const outside =
        (use === 'act' && tool.scoped && inScope(principal, kind, thing.id, thing.within)) ||
        maySee(principal, kind, thing.id, thing.within)
      if (outside) throw outside
      return thing.id
    })
  }

  async #transact(call: Call, tool: Tool, input: unknown, key: string | undefined, prepared: unknown) {
    let done: Done | undefined
    const patience = this.#patience
    for (let attempt = 0; ; attempt++) {
      try {
        await this.parts.storage.write(async (tx) => {
          done = undefined
          done = await this.#inTransaction(tx, call, tool, input, key, prepared)
        })
        break
      } catch (error) {
        if (!(error instanceof TransientFault) || error instanceof UncertainFault) throw error
        if (attempt < patience.retries) await delay(patience.delayMs)
        if (done && (await this.#hasCommitted(call))) break
        if (attempt >= patience.retries) throw error
      }
    }
    call.committed = true
    void this.parts.feed.pump()
    if (!done) throw new Error('a transaction ended without an outcome')
    if (done.wantsEffects) this.parts.effects.wake()
    await this.parts.beforeAnswer?.(done.events)
    return done
  }

  /** The fault may have struck after the commit: running the call again would apply it twice. */
  async #hasCommitted(call: Call): Promise<boolean> {
    try {
      return await this.#patiently(() => this.parts.ledger.committed(this.parts.storage.view, call.id))
    } catch (error) {
      throw new UncertainFault(error)
    }
  }

  async #inTransaction(tx: Tx, call: Call, tool: Tool, input: unknown, key: string | undefined, prepared: unknown) {
    const { ledger, identity, host } = this.parts
    const principal = call.principal.kind === 'system' ? call.principal : await identity.refresh(tx, call.principal)
    if (!principal) throw stale('This token ended while the call was waiting.')
    const inputHash = key === undefined ? '' : host.hash(canonicalJson(input))
    const { stored, answer } = key === undefined ? {} : await this.#remembered(tx, call, tool, key)
    if (stored && answer) {
      if (stored.input_hash !== inputHash)
        throw refuse('IDEMPOTENCY_MISMATCH', `The idempotency_key "${key}" was used with another input.`, {
          hint: 'Use a new key for a new intent.',
        })
      await this.#audit(tx, call, 'replayed', answer.refusal ? new Refusal(answer.refusal) : answer.value)
      const watched = tool.watch ? await this.#resolve(tx, principal, tool, input) : input
      return {
        value: answer.refusal ? new Refusal(answer.refusal) : answer.value,
        input: watched,
        events: [],
        wantsEffects: false,
        replayed: true,
      }
    }
    const resolved = await this.#resolveAndHold(tx, principal, tool, input)
    const events: NewEvent[] = []
    const effects: NewEffect[] = []
    let decided = false
    const ctx: RunContext = {
      ...this.#callContext(call),
      principal: onLane(principal, call.lane),
      tx,
      view: tx,
      ask: this.parts.registry.points.asking(() => ctx),
      emit: (event) => events.push(event),
      enqueue: (effect) => effects.push(effect),
      later: (tool, input, how) => effects.push({ type: tool.later as string, payload: input as Record<string, unknown>, ...how }),
      decideEffect: async (id, decision) => {
        decided = await this.parts.effects.decide(tx, id, decision)
        return decided
      },
      id: host.id,
    }
    const value = await tool.run?.(ctx, resolved, prepared)
    const refused = value instanceof Refusal
    const checked = refused || tool.watch ? value : this.#checked(tool, value)
    await ledger.append(tx, events, { id: call.id, at: call.at, actor: principal.id })
    if (effects.length)
      await this.parts.effects.enqueue(
        tx,
        effects.map((effect) => this.#toStore(effect, call)),
      )
    // A refusal that wrote nothing is only true of now: asked again, it is decided again.
    if (key !== undefined && (!refused || events.length || effects.length || decided)) {
      const given: Answered = refused ? { refusal: value.body, token: principal.tokenId } : { value: withoutSecrets(checked) }
      const answer = { input_hash: inputHash, answer: JSON.stringify(given) }
      await ledger.remember(tx, principal.id, tool.name, key, answer, call.at, stored)
    }
    await this.#audit(tx, call, refused ? 'refused' : 'ok', checked)
    return { value: checked, input: resolved, events, wantsEffects: effects.length > 0 || decided, replayed: false }
  }

  #toStore(effect: NewEffect, call: Call): EffectToStore {
    const { attempts } = this.parts.registry.effect(effect.type)
    return { ...effect, id: this.parts.host.id('effect'), callId: call.id, attempts }
  }

  #checked(tool: Tool, value: unknown): unknown {
    if (value instanceof Refusal) return value
    const result = tool.output.safeParse(value)
    if (result.success) return result.data
    const rest = UNREADABLE in tool.output.shape ? tool.output.safeParse(withoutUnreadable(value, result.error)) : result
    if (rest.success) return rest.data
    const strange = tool.look && strangeValues(value, result.error)
    if (strange) throw unreadable(strange)
    throw new Error(`${tool.name} broke its own output schema: ${result.error.message}`)
  }

  #callContext(call: Call) {
    return {
      principal: onLane(call.principal, call.lane),
      callId: call.id,
      now: call.at,
      setting: <T>(key: string) => this.parts.settings.get<T>(key),
    }
  }

  #lookContext(call: Call, rows?: Map<string, unknown>): LookContext {
    const { ledger, storage, ports, feed, registry } = this.parts
    const ctx: LookContext = {
      ...this.#callContext(call),
      view: storage.view,
      ask: registry.points.asking(() => ctx),
      ports,
      signal: call.request.signal ?? NEVER,
      found: (id: string) => rows?.get(id),
      cursor: () => this.#patiently(() => ledger.head(storage.view)),
      tail: (after: Cursor | undefined, filter: EventFilter, limit: number) => feed.read(call.principal, after, filter, limit),
      recent: (before: Cursor | undefined, filter: EventFilter, limit: number) => feed.readBack(call.principal, before, filter, limit),
    }
    return ctx
  }

  #watchContext(call: Call): WatchContext {
    const { feed, host } = this.parts
    const look = this.#lookContext(call)
    const holdMs = call.request.holdMs ?? DEFAULT_HOLD_MS
    const left = () => Math.max(0, holdMs - (host.monotonic() - call.began))
    const ctx: WatchContext = {
      ...look,
      ask: this.parts.registry.points.asking(() => ctx),
      waitFor: async (after, filter, timeoutMs) => {
        const waited = await feed.wait(call.principal, after, filter, { timeoutMs, holdMs: left(), signal: look.signal })
        await this.#requireLiving(call.principal)
        return waited
      },
    }
    return ctx
  }

  /** A wait is long: what happened after its token ended is no longer for its eyes. */
  async #requireLiving(principal: Principal): Promise<void> {
    if (principal.kind === 'system') return
    if (await this.#patiently(() => this.parts.identity.refresh(this.parts.storage.view, principal))) return
    throw stale('This token ended during the wait.')
  }

  #record(call: Call, outcome: CallRecord['outcome'], code: Code | null, output: unknown): CallRecord {
    const { principal, request, found } = call
    // Of a token that has ended the tool was not even looked up.
    const tool = found?.tool ?? this.parts.registry.tools.find(({ name }) => name === request.tool)
    const record: CallRecord = {
      id: call.id,
      at: call.at,
      principal: principal.id,
      principal_kind: principal.kind,
      token: principal.tokenId ?? null,
      by: principal.by ?? null,
      lane: call.lane,
      surface: request.surface,
      dialect: found?.dialect ? calledIn(found.dialect.name, found.calledAs) : null,
      tool: found?.tool.name ?? storable(redactText(request.tool).slice(0, 100)),
      outcome,
      code,
      input: auditJson(lengthsOnly(call.input ?? walkable(request.input), tool?.unrecorded)),
      output: auditJson(output),
      duration_ms: Math.round(this.parts.host.monotonic() - call.began),
    }
    return record
  }

  async #audit(tx: Tx, call: Call, outcome: CallRecord['outcome'], value: unknown): Promise<void> {
    const { tool, dialect } = call.found ?? {}
    // What a call that waits has begun is not its answer yet, so it has no shape in a dialect.
    const kept = (done: unknown) => (!tool?.watch ? this.#shaped(call, done) : dialect?.logsInFull ? { waiting: done } : done)
    const record = this.#recordOf(call, outcome, value, kept)
    await this.parts.ledger.audit(tx, [record])
    this.parts.onCall?.(record)
  }

  #auditRead(call: Call, value: unknown): void {
    // A read's answer can be large and is in the database anyway: the audit keeps who asked what.
    const kept = (seen: unknown) => (call.found?.dialect?.logsInFull ? this.#shaped(call, seen) : null)
    const record = this.#recordOf(call, value instanceof Refusal ? 'refused' : 'ok', value, kept)
    this.parts.auditLater(record)
    this.parts.onCall?.(record)
  }

  #recordOf(call: Call, outcome: CallRecord['outcome'], value: unknown, kept: (value: unknown) => unknown): CallRecord {
    return value instanceof Refusal
      ? this.#record(call, outcome, value.body.code, this.#recordedError(call, value.body, value))
      : this.#record(call, outcome, null, kept(value))
  }

  /** The row of the call was written when it began to wait. What it answered at last is a row beside it. */
  async #auditAnswer(call: Call, value: unknown): Promise<void> {
    if (!call.found?.dialect?.logsInFull || value instanceof Refusal) return
    const record = { ...this.#record(call, 'answered', null, this.#shaped(call, value)), id: answerOf(call.id) }
    await this.#auditNow(record).catch(() => this.parts.auditLater(record))
  }

  /** As its caller was told, with the stack where that is kept. */
  #recordedError(call: Call, body: ErrorBody, error: unknown): unknown {
    const failed = body.code === 'INTERNAL_ERROR' || body.code === 'TRANSIENT_ERROR'
    const dialect = this.#dialectOf(call)
    const said = dialect ? unwrapped(dialect.error(this.parts.registry.hintsIn(dialect, body), call.request.tool, call.principal)) : body
    return failed || dialect?.logsInFull ? { ...said, stack: stackOf(error) } : said
  }

  async #fail(call: Call, error: unknown): Promise<Answer> {
    const { found } = call
    const body = this.#bodyOf(error, { id: call.id, tool: found?.calledAs ?? call.request.tool, committed: call.committed })
    const failed = body.code === 'INTERNAL_ERROR' || body.code === 'TRANSIENT_ERROR'
    const record = this.#record(call, failed ? 'failed' : 'refused', body.code, this.#recordedError(call, body, error))
    // The row of the call itself says that it was done; that its answer failed is a second fact.
    if (call.committed) record.id = this.parts.host.id('call')
    this.parts.onCall?.(record)
    if (found && !found.tool.run) this.parts.auditLater(record)
    else await this.#auditNow(record).catch(() => this.parts.auditLater(record))
    return this.#shape(call, body)
  }

  async #auditNow(record: CallRecord): Promise<void> {
    const { storage, ledger, failures } = this.parts
    const failed = record.outcome === 'failed'
    await storage.write(async (tx) => {
      await ledger.audit(tx, [record])
      if (failed) await failures?.store(tx, [record])
    })
    if (failed) failures?.stored()
  }

  #bodyOf(error: unknown, call: { id: string; tool: string; committed?: boolean }): ErrorBody {
    if (error instanceof Refusal) return error.body
    const written = call.committed ? 'it was carried out, only its answer is missing' : 'nothing was written'
    if (error instanceof UncertainFault)
      return {
        code: 'TRANSIENT_ERROR',
        message: `Storage went away while this was being written (${error.message}); whether it was is not known.`,
        hint: 'Look before you do it again. With an idempotency_key, repeating the call is safe.',
        details: { written: 'unknown' },
      }
    if (error instanceof TransientFault)
      return { code: 'TRANSIENT_ERROR', message: `Storage did not answer (${error.message}); ${written}.`, hint: 'Try again in a moment.' }
    this.parts.onDefect(error, { id: call.id, tool: call.tool })
    return { code: 'INTERNAL_ERROR', message: `${call.tool} failed inside Signalbox; ${written}. Quote ${call.id} when you report it.` }
  }

  #shape(call: Pick<Call, 'request' | 'found'> & { principal?: Principal }, body: ErrorBody): Answer {
    const dialect = this.#dialectOf(call)
    if (!dialect) return { ok: false, error: body }
    const said = this.parts.registry.hintsIn(dialect, body)
    return { ok: false, error: body, shaped: dialect.error(said, call.request.tool, call.principal) }
  }

  #dialectOf({ found, request }: Pick<Call, 'request' | 'found'>): Dialect | undefined {
    return found?.dialect ?? this.parts.registry.spoken(request.dialect)?.dialect
  }
}

export function unauthenticated(): ErrorBody {
  return {
    code: 'UNAUTHENTICATED',
    message: CODES.UNAUTHENTICATED.meaning,
    hint: 'Send "Authorization: Bearer <token>". The owner\'s token is in $SIGNALBOX_HOME/owner.token; agents get theirs from agent_invite.',
  }
}

/** A list is that of the caller's own project where it has one. */
function inOwnProject(principal: Principal, tool: Tool, input: Record<string, unknown>): Record<string, unknown> {
  const own = tool.across === 'log' ? undefined : onlyProject(principal)
  return own && 'project_id' in tool.input.shape && input.project_id === undefined ? { ...input, project_id: own } : input
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function parsed<S extends z.ZodType>(schema: S, value: unknown, tool: string, at?: string): z.output<S> {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issues = result.error.issues.slice(0, 5).map((issue) => {
    const path =
      at ??
      issue.path
        .map((p) => (typeof p === 'number' ? `[${p}]` : `.${String(p)}`))
        .join('')
        .replace(/^\./, '')
    return { path, message: sayMissing(issue).slice(0, 200) }
  })
  const named = issues.map((i) => /^([A-Z_]+): /.exec(i.message)?.[1]).find((code) => code !== undefined && isCode(code))
  const sentence = issues.map((i) => `${i.path || 'arguments'}: ${i.message.replace(/^[A-Z_]+: /, '')}`).join('; ')
  throw refuse((named as Code | undefined) ?? 'INVALID_INPUT', `${tool}: ${sentence}`.slice(0, 1_000), { details: { issues } })
}

function stale(message: string): Refusal {
  return refuse('AUTH_STALE_TOKEN', message, { hint: 'Ask for a new one (agent_invite or token_rotate) and reconnect.' })
}

/** Of a field that is not there, "received undefined" tells a reader less than this. */
function sayMissing(issue: z.core.$ZodIssue): string {
  return /received undefined$/.test(issue.message) ? 'is missing' : issue.message
}

function stackOf(error: unknown): string {
  return redactText(error instanceof Error ? (error.stack ?? error.message) : String(error))
    .slice(0, LONGEST_STACK)
    .toWellFormed()
}

/** What was given to a call that was refused before its input was read; nothing where that cannot be walked safely. */
function walkable(input: unknown): unknown {
  try {
    checkText(input)
    return input ?? null
  } catch {
    return null
  }
}

/** Some documents have the error in an envelope. */
function unwrapped(shaped: Record<string, unknown>): Record<string, unknown> {
  return isObject(shaped.error) ? shaped.error : shaped
}
