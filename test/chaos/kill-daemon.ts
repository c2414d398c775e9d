import { encodeCursor } from '../../src/db/engine.ts'
import type { DaemonOptions } from '../../src/testing/daemon.ts'
import { type Cast, hire } from './cast.ts'
import { Journal } from './journal.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { heardByAll, pause } from './stop.ts'
import { StreamReader } from './stream-reader.ts'
import { type Contents, checkStream, type Verdict, verify } from './verify.ts'

export interface KillReport extends Verdict {
  seed: number
  kills: number
  acknowledged: number
  refused: number
  /** Died before the answer, and had no key to be repeated with. */
  unknown: number
  /** Sent again after a death, under the same key. */
  repeated: number
  /** Sent again although they were acknowledged, to compare the answers. */
  replays: number
  events: number
}

/**
 * Sixteen writers, and a daemon that is killed again and again under them: at a random time, in the moment in which an
 * acknowledgement arrives, or while it starts. Then everything is compared.
 */
export function killUnderLoad(seed: number, strikes: number): Promise<KillReport> {
  return strikeUnderLoad(seed, strikes, { strike: killDaemon })
}

export interface Ordeal {
  options?: DaemonOptions
  strike(mortal: Mortal, journal: Journal, random: Random): Promise<void>
  /** Watches meanwhile; what it returns is called at the end and tells what was wrong. */
  beside?(mortal: Mortal): () => Promise<string[]>
  /** What is stored, where it is not in the state folder. */
  read?(): Promise<Contents>
}

export async function strikeUnderLoad(seed: number, strikes: number, ordeal: Ordeal): Promise<KillReport> {
  const random = new Random(seed)
  const mortal = await Mortal.start(ordeal.options)
  try {
    const journal = new Journal()
    const cast = await hire(mortal, journal, random)
    const sessions = cast.writers.map((writer) => writer.plan.caller.session())
    const stream = new StreamReader({ target: mortal, token: mortal.daemon.token, after: encodeCursor(1, 0) })
    const beside = ordeal.beside?.(mortal)
    const stop = heardByAll()
    const writing = cast.writers.map((writer) => writer.run(stop.signal))

    for (let i = 0; i < strikes; i++) await ordeal.strike(mortal, journal, random)
    stop.abort()
    await Promise.all(writing)

    const { contents, lost, doubled, wrong } = await verify(mortal.daemon, journal, await ordeal.read?.())
    const log = contents.events.map((event) => event.seq)
    await stream.counts(log.length)
    stream.close()
    checkStream('the stream', stream.seen, log, wrong)
    wrong.push(...stream.problems, ...((await beside?.()) ?? []))
    checkResumed(cast, sessions, mortal.deaths, wrong)
    await cast.close()
    const kills = mortal.deaths
    const exit = await mortal.end('SIGTERM')
    if (exit !== 0) wrong.push(`after SIGTERM it ended with ${exit}`)
    const [acknowledged, refused, unknown] = (['answer', 'refusal', 'unknown'] as const).map((outcome) => journal.count(outcome))
    const { repeated, replays } = journal
    return { seed, kills, acknowledged, refused, unknown, repeated, replays, events: log.length, lost, doubled, wrong } as KillReport
  } finally {
    await mortal.remove()
  }
}

export async function killDaemon(mortal: Mortal, journal: Journal, random: Random): Promise<void> {
  await someTime(journal, random)
  await mortal.end('SIGKILL')
  if (random.chance(0.2)) await mortal.killWhileStarting(random.below(600))
  await mortal.start()
}

/** At a random time, or in the moment in which an acknowledgement arrives. */
export async function someTime(journal: Journal, random: Random): Promise<void> {
  if (random.chance(0.3)) await acknowledgements(journal, 1 + random.below(150))
  else await pause(random.below(900))
}

/** Resolves with the nth acknowledgement from now, in the moment it arrives. */
function acknowledgements(journal: Journal, n: number): Promise<void> {
  return new Promise((resolve) => {
    let left = n
    journal.onAcknowledged = () => {
      if (--left === 0) resolve()
    }
  })
}

/** Every client got through after the last death, on the connection that it opened at the start. */
function checkResumed(cast: Cast, sessions: (string | undefined)[], deaths: number, wrong: string[]): void {
  cast.writers.forEach((writer, i) => {
    const { name, caller } = writer.plan
    if (!writer.resumed.has(deaths)) wrong.push(`${name} (${caller.way}) did not come back after the last death`)
    if (caller.session() !== sessions[i]) wrong.push(`${name} (${caller.way}) lost its MCP session`)
  })
}

export function summary(reports: KillReport[]): string {
  const sum = (of: (report: KillReport) => number) => reports.reduce((total, report) => total + of(report), 0)
  return [
    `${reports.length} seeds, ${sum((r) => r.kills)} kills`,
    `${sum((r) => r.acknowledged)} acknowledged, ${sum((r) => r.refused)} refused by a rule, ${sum((r) => r.unknown)} unknown`,
    `${sum((r) => r.repeated)} repeated after a death, ${sum((r) => r.replays)} replayed on purpose, ${sum((r) => r.events)} events`,
    `lost ${sum((r) => r.lost.length)}, doubled ${sum((r) => r.doubled.length)}, wrong ${sum((r) => r.wrong.length)}`,
  ].join('; ')
}
