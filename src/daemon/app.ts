import { createTableEffects } from '../adapters/effects-table/index.ts'
import {
  capabilities as allCapabilities,
  createIdentity,
  effectStuck,
  ensureOwner,
  escalate,
  settingChanged,
  storedSettings,
  tokenRotated,
} from '../capabilities/index.ts'
import { effectStore } from '../db/effect-store.ts'
import type { Engine } from '../db/engine.ts'
import { openEngine } from '../db/open.ts'
import type { Sealer } from '../db/sealer.ts'
import { dialects as allDialects } from '../dialects/index.ts'
import { AuditBuffer, calledAs, type Failures } from '../kernel/audit.ts'
import type { Capability } from '../kernel/capability.ts'
import { now } from '../kernel/clock.ts'
import type { Dialect } from '../kernel/dialect.ts'
import { EFFECT_TIMES, type EffectTimes, type ReactorParts, react } from '../kernel/effect.ts'
import type { LoggedEvent } from '../kernel/event.ts'
import { type Host, type Identity, Kernel } from '../kernel/invoke.ts'
import { RateLimit } from '../kernel/limit.ts'
import { type CallRecord, Feed } from '../kernel/log.ts'
import { SYSTEM } from '../kernel/policy.ts'
import type { Reactor, ReactorContext } from '../kernel/reactor.ts'
import { Registry } from '../kernel/registry.ts'
import { Settings } from '../kernel/settings.ts'
import type { Tx } from '../kernel/storage.ts'
import { canonicalJson, storable } from '../kernel/text.ts'
import type { Ports, Report } from '../kernel/tool.ts'
import type { Effects, EffectsParts } from '../ports/effects.ts'
import { createHost } from './host.ts'
import { createSeals, sealing } from './seals.ts'
import { VERSION } from './version.ts'

export interface AppOptions {
  /** A path, or the address of a PostgreSQL server. */
  database: string
  /** What the adapters provide; the daemon's own view of itself is added here. */
  ports: Omit<Ports, 'daemon' | 'seals'>
  /** The owner's secrets as found on disk, newest first, and what to do when a rotation has committed. */
  ownerSecrets: string[]
  onOwnerRotated?(isCurrent: (secret: string) => Promise<boolean>): void | Promise<void>
  onDefect(error: unknown, call: { id: string; tool: string }): void
  onCall?(call: CallRecord): void
  capabilities?: Capability[]
  dialects?: Dialect[]
  host?: Host
  /** This daemon among those that share a database. */
  hostName: string
  /** Where agents reach this daemon, as soon as it listens. */
  address: Promise<string>
  effectTimes?: EffectTimes
}

export interface App {
  kernel: Kernel
  engine: Engine
  feed: Feed
  registry: Registry
  identity: Identity
  host: Host
  sealer: Sealer
  ownerToken: string
  /** Surfaces report what only they can count. */
  counts: { mcpSessions(): number }
  close(): Promise<void>
}

const MOST_OPEN_CALLS = 2_000
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const EFFECTS_DRAIN_MS = 2_000
const LAST_ANSWERS_MS = 1_000
const EFFECTS_KEPT_MS = 7 * 24 * HOUR_MS

/** The one place where the parts are put together. */
export async function createApp(options: AppOptions): Promise<App> {
  const capabilities = options.capabilities ?? allCapabilities
  const registry = new Registry(capabilities, options.dialects ?? allDialects)
  const migrations = capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [], values: c.values }))
  const engine = await openEngine(options.database, migrations)
  const host = options.host ?? createHost(now, await engine.newestCall())
  const { ledger } = engine
  const settings = new Settings(registry.settings, storedSettings)
  await settings.reload(engine.view)
  const feed = await Feed.open(ledger, engine)
  const seals = createSeals(engine, host.now, (error) => options.onDefect(error, { id: '-', tool: 'sealer' }))
  const storage = sealing(engine, seals.sealer)
  const identity = createIdentity(host.now, engine.versionOf?.bind(engine))
  const limit = new RateLimit(host.monotonic, MOST_OPEN_CALLS)
  const counts = { mcpSessions: () => 0 }
  const ownerToken = await engine.write((tx) =>
    ensureOwner(tx, options.ownerSecrets, { id: host.id, now: host.now(), shared: engine.facts.shared }),
  )

  const audited = () => audit.flush()
  const ports = { ...options.ports, daemon: { ...createDaemonPort(engine, feed, counts, options), audited }, seals: seals.port }
  const effects = await createEffects(options.database, {
    engine,
    owner: host.id('daemon'),
    host: ports.daemon.host,
    times: options.effectTimes ?? EFFECT_TIMES,
    onStuck: (tx, { id, type, state, error, call_id }) =>
      ledger.append(
        tx,
        [effectStuck({ subject: id, audience: 'people' }, { type, state: state as 'dead' | 'unknown', error: error ?? '' })],
        {
          id: call_id,
          at: host.now(),
          actor: SYSTEM.id,
        },
      ),
    onStuckCommitted: () => void feed.pump(),
  })
  const failures: Failures = {
    async store(tx, calls) {
      const effect = registry.effects.get(escalate.later as string)
      const ofAgents = effect ? calls.filter((call) => call.principal_kind === 'agent') : []
      const toStore = ofAgents.map((call) => {
        const payload = { call_id: call.id, critical: registry.isCritical({ tool: call.tool, ...calledAs(call) }) }
        return { type: effect?.type as string, payload, id: host.id('effect'), callId: call.id, attempts: effect?.attempts as number }
      })
      if (toStore.length) await effects.enqueue(tx, toStore)
    },
    stored: () => effects.wake(),
  }
  const audit = new AuditBuffer(ledger, storage, host.now, failures)
  const isCurrent = async (secret: string) => {
    const found = await identity.authenticate(engine.view, secret)
    return found !== undefined && found.stale === undefined
  }

  const kernel = new Kernel({
    registry,
    storage,
    ledger,
    feed,
    identity,
    settings,
    host,
    limit,
    ports,
    effects,
    auditLater: (call) => audit.add(call),
    failures,
    countRefusal: (source, reason) => audit.countRefusal(source, reason),
    onDefect: options.onDefect,
    onCall: options.onCall,
    beforeAnswer: async (events) => {
      if (events.some((event) => event.type === settingChanged.type)) await settings.reload(engine.view)
      if (events.some((event) => event.type === tokenRotated.type && event.data.owner)) await options.onOwnerRotated?.(isCurrent)
    },
  })

  // The call that changed it has seen to that here; this is for a change that another daemon committed.
  feed.beforeTelling = async (events) => {
    if (events.some((event) => event.type === settingChanged.type)) await settings.reload(engine.view)
  }
  engine.onChange?.(() => void feed.pump())
  const reactorParts: ReactorParts = {
    types: registry.effects,
    points: registry.points,
    view: engine.view,
    ports,
    report: (id, tool, input) => report(kernel, id, tool, input),
    async setting<T>(key: string) {
      // Who is told of a change hears of it before the values in force are read again.
      await settings.reload(engine.view)
      return settings.get<T>(key)
    },
    subscribe: (listener) => feed.subscribe(listener),
  }
  await effects.start((claim) => react(reactorParts, claim))
  const reactors = await startReactors(registry, kernel, feed, options.onDefect)
  // What a daemon that was killed left unsealed.
  seals.sealer.wake()
  const tidy = async () => {
    limit.sweep()
    const forgetSome = [(tx: Tx) => ledger.forget(tx, host.now()), (tx: Tx) => effectStore(tx, engine.facts).forget(EFFECTS_KEPT_MS)]
    for (const some of forgetSome) while (await engine.write(some)) await new Promise((resolve) => setImmediate(resolve))
  }
  // Soon after the start too: a daemon that is restarted every hour must not keep everything for ever.
  const housekeeping = [setTimeout(() => void tidy().catch(() => {}), MINUTE_MS), setInterval(() => void tidy().catch(() => {}), HOUR_MS)]
  for (const timer of housekeeping) timer.unref()

  return {
    kernel,
    engine,
    feed,
    registry,
    identity,
    host,
    sealer: seals.sealer,
    ownerToken,
    counts,
    async close() {
      for (const timer of housekeeping) clearTimeout(timer)
      await reactors.stop()
      feed.interrupt()
      await effects.stop(EFFECTS_DRAIN_MS)
      // The audit of waits that were just interrupted belongs to the last batch.
      await kernel.answered(LAST_ANSWERS_MS)
      await audit.close()
      await seals.close()
      await engine.close()
    },
  }
}

async function createEffects(database: string, parts: EffectsParts): Promise<Effects> {
  if (!parts.engine.facts.shared) return createTableEffects(parts)
  return (await import('../adapters/effects-graphile/index.ts')).createGraphileEffects(parts, database)
}

/**
 * Keyed by what it says: an attempt that repeats it after a crash reports nothing new, another report is another call. What a program
 * printed is told as far as it can be stored: refused for one NUL, it would be tried for ever.
 */
async function report(kernel: Kernel, effectId: string, tool: string, told: Record<string, unknown>) {
  const input = storable(told)
  const idempotency_key = `${effectId}.${kernel.parts.host.hash(canonicalJson(input))}`
  const answer = await kernel.invoke({ tool, input: { ...input, idempotency_key }, credential: 'system', surface: 'daemon' })
  if (!answer.ok) throw new Error(`${tool}: ${answer.error.code}: ${answer.error.message}`)
  return answer.value
}

/** Each goes on where the rows say that the last daemon stopped. */
async function startReactors(registry: Registry, kernel: Kernel, feed: Feed, onDefect: AppOptions['onDefect']) {
  const stopping = new AbortController()
  const { storage, ports } = kernel.parts
  const report = (async ({ name }, input) => {
    const answer = await kernel.invoke({ tool: name, input, credential: 'system', surface: 'daemon' })
    if (!answer.ok) throw new Error(`${name}: ${answer.error.code}: ${answer.error.message}`)
    return answer.value
  }) as Report
  const listeners: { type: string; tell(event: LoggedEvent): void }[] = []
  const unsubscribe = feed.subscribe((events) => {
    for (const event of events) for (const { type, tell } of listeners) if (type === event.type) tell(event)
  })
  const on: ReactorContext['on'] = ({ type }, tell) => void listeners.push({ type, tell: tell as (event: LoggedEvent) => void })
  const started: Awaited<ReturnType<Reactor['start']>>[] = []
  for (const reactor of registry.capabilities.flatMap((c) => c.reactors ?? [])) {
    const defect = (error: unknown) => onDefect(error, { id: '-', tool: reactor.name })
    const ctx: ReactorContext = {
      view: storage.view,
      ask: registry.points.asking(() => ctx),
      ports,
      signal: stopping.signal,
      on,
      report,
      defect,
    }
    started.push(await reactor.start(ctx))
  }
  return {
    async stop() {
      unsubscribe()
      stopping.abort()
      await Promise.all(started.map(({ ended }) => ended()))
    },
  }
}

function createDaemonPort(engine: Engine, feed: Feed, counts: App['counts'], options: AppOptions): Omit<Ports['daemon'], 'audited'> {
  const began = performance.now()
  return {
    host: options.hostName,
    shared: engine.facts.shared,
    address: () => options.address,
    check: () => engine.check(),
    health() {
      const { queued, batches, calls, size_bytes } = engine.stats()
      return {
        ok: engine.sound,
        version: VERSION,
        uptime_seconds: Math.round((performance.now() - began) / 1_000),
        database: {
          engine: engine.facts.name,
          size_bytes,
          queued_writes: queued,
          commits: batches,
          committed_calls: calls,
          events_held_back_ms: Math.round(feed.heldBackMs),
        },
        waiting_calls: feed.waiters,
        event_readers: feed.readers,
        mcp_sessions: counts.mcpSessions(),
        notices: engine.notices,
      }
    },
  }
}
