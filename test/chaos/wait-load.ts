import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { decodeCursor } from '../../src/db/engine.ts'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../../src/testing/signals.ts'
import { type Caller, httpCaller, mcpCaller } from './callers.ts'
import { liftLimits } from './cast.ts'
import { type Footprint, footprint, gauges, openFiles, WITH_HEAP_PROBE } from './memory.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { heardByAll, pause } from './stop.ts'
import { StreamReader } from './stream-reader.ts'
import { Track } from './track.ts'
import { checkStream, readContents } from './verify.ts'
import { HOW, type Timeouts, Waiter } from './waiters.ts'

export interface LoadPlan {
  seed: number
  warmUpSeconds: number
  seconds: number
  waiters: number
  /** How many of the waiters wait over MCP; the others over plain HTTP. */
  overMcp: number
  writers: number
  readers: number
  timeouts: Timeouts
  /** How long a writer pauses between two moves, in the mean; 0 keeps the daemon as busy as it can be. */
  thinkMs: number
  /** How late a wait may return, beyond its timeout. */
  graceMs: number
}

export interface LoadReport extends Round {
  seed: number
  warm: Footprint
  after: Footprint
}

interface Round {
  missed: Waiter['missed']
  moves: number
  waits: number
  timeouts: number
  /** From the writer's acknowledgement to the wait's return, in milliseconds. */
  inLockstep: Percentiles
  freeRunning: Percentiles
  /** How long GET /healthz took, each time on a connection of its own. */
  health: Percentiles
  /** What the streams brought, all together. */
  delivered: number
  streams: number
  loadedRssMb: number
  /** How long this process kept itself from noticing anything, at the most. */
  ownStallMs: number
  wrong: string[]
}

export interface Percentiles {
  count: number
  p50: number
  p99: number
  max: number
}

/** Many waits and streams over many writers; then everybody leaves, and nothing may stay behind in the daemon. */
export async function waitUnderLoad(plan: LoadPlan): Promise<LoadReport> {
  const mortal = await Mortal.start({ env: WITH_HEAP_PROBE })
  try {
    const files = openFiles(mortal.daemon)
    const random = new Random(plan.seed)
    const ground = await prepare(mortal)
    const warmUp = await round(mortal, ground, plan, random, plan.warmUpSeconds)
    await everybodyGone(mortal)
    const warm = await footprint(mortal.daemon)
    const measured = await round(mortal, ground, plan, random, plan.seconds)
    await everybodyGone(mortal)
    await until(() => openFiles(mortal.daemon) <= files)
    const after = await footprint(mortal.daemon)
    const wrong = [...warmUp.wrong, ...reallyMissed(warmUp, warm), ...measured.wrong, ...reallyMissed(measured, after)]
    return { seed: plan.seed, warm, after, ...measured, wrong }
  } finally {
    await mortal.remove()
  }
}

/** A wait that times out so long after a change was acknowledged has missed it, */
const MISSED_MS = 1_000

/** unless the answers were only so far from each other because somebody stood still between them. */
function reallyMissed({ missed, ownStallMs }: Round, { stallMs }: Footprint): string[] {
  return missed.filter(({ ms }) => ms > MISSED_MS + ownStallMs + stallMs).map(({ what }) => what)
}

interface Ground {
  project: string
  tokens: string[]
}

async function prepare({ daemon }: Mortal): Promise<Ground> {
  await liftLimits(daemon)
  const { project_id: project } = await daemon.call('project_create', { name: 'Waits' })
  const agents = await Promise.all([1, 2, 3].map(() => daemon.call('agent_invite', { role: 'orchestrator' })))
  return { project, tokens: [daemon.token, ...agents.map((agent) => agent.token as string)] }
}

async function round(mortal: Mortal, ground: Ground, plan: LoadPlan, random: Random, seconds: number): Promise<Round> {
  const { daemon } = mortal
  const tracks = await createTracks(mortal, ground, plan.writers)
  const { waiters, callers } = await createWaiters(mortal, ground, tracks, plan, random)
  const head = decodeCursor((await daemon.call('task_list', { limit: 1 })).cursor)?.seq ?? 0
  const readers = Array.from({ length: plan.readers }, (_, i) => createReader(mortal, ground, i))
  await Promise.all(readers.map((reader) => reader.connected))

  const stalls = monitorEventLoopDelay()
  stalls.enable()
  const stop = heardByAll()
  // Everybody connects first: the daemon takes one new connection in each turn of its event loop, and this is not about that.
  const writers = tracks.map((_, i) => httpCaller(mortal, tokenFor(ground, i)))
  for (const caller of [...writers, ...callers]) await caller.call('agent_me', {})
  const following = waiters.map((waiter) => waiter.run())
  // On a busy machine some have timed out and ask again while the last ones arrive.
  await until(async () => ((await gauges(daemon)).waiting_calls ?? 0) >= waiters.length * 0.7, 60_000)
  const writing = tracks
    .filter((track) => !track.stopped)
    .map((track, i) => track.write(writers[i] as Caller, random.fork(), plan.thinkMs, stop.signal))
  const moved = () => tracks.every((track) => track.stopped || !track.lockstep || track.acknowledged.size > 0)
  const health = await checkHealthFor(seconds, daemon, moved)
  stop.abort()
  const { resident_bytes = 0 } = await gauges(daemon)
  await Promise.all(writing)
  for (const track of tracks) track.stopped = true
  for (const waiter of waiters) waiter.leave()
  await Promise.all(following)

  const wrong = [...tracks.flatMap((track) => track.problems), ...waiters.flatMap((waiter) => waiter.problems)]
  for (const waiter of waiters)
    if (waiter.seen < waiter.track.version) wrong.push(`a waiter ended at ${waiter.seen} of ${waiter.track.version}`)
  await checkReaders(mortal, readers, head, wrong)
  await Promise.all([...callers, ...writers].map((caller) => caller.close()))
  return {
    moves: sum(tracks, (track) => track.acknowledged.size),
    waits: sum(waiters, (waiter) => waiter.waits),
    timeouts: sum(waiters, (waiter) => waiter.timeouts),
    inLockstep: percentiles(delays(waiters.filter((waiter) => waiter.track.lockstep))),
    freeRunning: percentiles(delays(waiters.filter((waiter) => !waiter.track.lockstep))),
    health: percentiles(health),
    delivered: sum(readers, (reader) => reader.seen.length),
    streams: sum(readers, (reader) => reader.connections),
    loadedRssMb: Math.round(resident_bytes / 1_048_576),
    ownStallMs: Math.round(stalls.max / 1e6),
    missed: waiters.flatMap((waiter) => waiter.missed),
    wrong,
  }
}

/** Whoever asks how the daemon is has no connection yet. On a machine that stands still it takes longer until enough has happened. */
async function checkHealthFor(seconds: number, daemon: TestDaemon, enough: () => boolean): Promise<number[]> {
  const end = performance.now() + seconds * 1_000
  const took: number[] = []
  while (performance.now() < end || !enough()) {
    const began = performance.now()
    const { ok } = (await (await fetch(`${daemon.url}/healthz`, { headers: { connection: 'close' } })).json()) as { ok: boolean }
    if (ok) took.push(performance.now() - began)
    await pause(200)
  }
  return took
}

/** Half of them in lockstep; the first two have no writer at all, so that their waits run into their limits. */
async function createTracks({ daemon }: Mortal, { project }: Ground, writers: number): Promise<Track[]> {
  const created = await Promise.all(
    Array.from({ length: writers + 2 }, (_, i) => daemon.call('task_create', { title: `track ${i}`, project_id: project })),
  )
  return created.map(({ task_id }, i) => {
    const track = new Track(task_id, i % 2 === 0)
    track.stopped = i < 2
    return track
  })
}

/** Over MCP four share a session, in both eras. */
async function createWaiters(mortal: Mortal, ground: Ground, tracks: Track[], plan: LoadPlan, random: Random) {
  const { cursor } = await mortal.daemon.call('task_list', { limit: 1 })
  const updatedAt = new Date().toISOString()
  const sessions = await Promise.all(
    Array.from({ length: Math.ceil(plan.overMcp / 4) }, (_, i) => mcpCaller(mortal, tokenFor(ground, i), i % 2 ? 'mcp 2026' : 'mcp 2025')),
  )
  const callers = Array.from({ length: plan.waiters }, (_, i) =>
    i < plan.overMcp ? (sessions[i % sessions.length] as Caller) : httpCaller(mortal, tokenFor(ground, i)),
  )
  const waiters = callers.map((caller, i) => {
    const track = tracks[i % tracks.length] as Track
    // Who waits for another status may be back at the first one before it looks, unless its writer waits for it.
    const how = random.pick(track.lockstep ? HOW : HOW.slice(0, 3))
    // Without a writer, half of them stay until the daemon sends them away: when they hang up before that, it must notice.
    const timeouts = track.stopped && i % 4 < 2 ? [undefined] : plan.timeouts
    return new Waiter(track, how, { cursor, updatedAt }, caller, random.fork(), { ...plan, timeouts })
  })
  return { waiters, callers: new Set(callers) }
}

/** People read everything, agents what concerns tasks; one in twenty is slow. */
function createReader(mortal: Mortal, ground: Ground, i: number): StreamReader {
  const types = i % 4 === 0 ? undefined : 'task.*'
  return new StreamReader({ target: mortal, token: tokenFor(ground, i), types, slow: i % 20 === 7 })
}

async function checkReaders({ daemon }: Mortal, readers: StreamReader[], head: number, wrong: string[]): Promise<void> {
  if (!readers.length) return
  const events = readContents(join(daemon.home, 'signalbox.db')).events.filter((event) => event.seq > head)
  const of = (types: string | undefined) => events.filter((event) => !types || event.type.startsWith('task.')).map((event) => event.seq)
  const [all, tasks] = [of(undefined), of('task.*')]
  for (const [i, reader] of readers.entries()) {
    const due = reader.plan.types ? tasks : all
    await reader.reaches(due.at(-1) ?? 0)
    wrong.push(...reader.problems)
    checkStream(`stream ${i}${reader.plan.slow ? ' (slow)' : ''}`, reader.seen, due, wrong)
    reader.close()
  }
}

/** No call waits, no stream is open, no session is left. */
async function everybodyGone({ daemon }: Mortal): Promise<void> {
  let left = {}
  const gone = until(async () => {
    const { waiting_calls, event_streams, mcp_sessions } = await gauges(daemon)
    left = { waiting_calls, event_streams, mcp_sessions }
    return Object.values(left).every((count) => count === 0)
  })
  await gone.catch(() => Promise.reject(new Error(`somebody was left behind: ${JSON.stringify(left)}`)))
}

/** The first one is the owner's. */
function tokenFor({ tokens }: Ground, i: number): string {
  return tokens[i % tokens.length] as string
}

/** A wait may be back before its writer's acknowledgement is. */
function delays(waiters: Waiter[]): number[] {
  return waiters.flatMap(({ track, sights }) => sights.map(({ version, at }) => Math.max(0, at - (track.acknowledged.get(version) ?? at))))
}

function percentiles(values: number[]): Percentiles {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (part: number) => Math.round((sorted[Math.floor((sorted.length - 1) * part)] ?? 0) * 10) / 10
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) }
}

function sum<T>(items: T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

export function describeLoad(report: LoadReport): string {
  const { inLockstep, freeRunning, health, warm, after } = report
  const delay = (what: string, { count, p50, p99, max }: Percentiles) => `  ${count} ${what}: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms`
  const size = ({ heapMb, rssMb, files }: Footprint) => `heap ${heapMb} MB, RSS ${rssMb} MB, ${files} files`
  return [
    `seed ${report.seed}: ${report.moves} moves, ${report.waits} waits of which ${report.timeouts} timed out; wrong ${report.wrong.length}`,
    delay('wake-ups in lockstep', inLockstep),
    delay('wake-ups, writers running free', freeRunning),
    delay('health checks', health),
    ...(report.delivered ? [`  streams brought ${report.delivered} events over ${report.streams} connections`] : []),
    `  longest stall of the event loop: ${after.stallMs} ms in the daemon, ${report.ownStallMs} ms in this process`,
    `  warm: ${size(warm)}; loaded: RSS ${report.loadedRssMb} MB; after: ${size(after)}`,
  ].join('\n')
}
