import { join } from 'node:path'
import { encodeCursor } from '../../src/db/engine.ts'
import { Backups } from './backups.ts'
import { httpCaller } from './callers.ts'
import { type Cast, hire, orchestrator } from './cast.ts'
import { Follower } from './follower.ts'
import { Journal } from './journal.ts'
import { type Footprint, footprint, WITH_HEAP_PROBE } from './memory.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { heardByAll, pause } from './stop.ts'
import { StreamReader } from './stream-reader.ts'
import { type Contents, checkStream, type Verdict, verify } from './verify.ts'
import { ALL_WRITES, Writer } from './writers.ts'

export interface LongReport extends Verdict {
  seed: number
  acknowledged: number
  refused: number
  unknown: number
  replays: number
  events: number
  restarts: number
  slowestStopMs: number
  backups: number
  settings: number
  revocations: number
  reconnects: number
  /** Of the last life, which is not restarted: when it is warm, and at the end. */
  warm: Footprint
  after: Footprint
}

const THINK_MS = 40

/** Ordinary life, faster: everybody writes while the daemon is restarted, backed up and reconfigured and tokens come and go. */
export async function longRun(seed: number, minutes: number): Promise<LongReport> {
  const run = new LongRun(seed, await Mortal.start({ env: WITH_HEAP_PROBE }))
  try {
    return await run.run(minutes * 60_000)
  } finally {
    await run.mortal.remove()
  }
}

class LongRun {
  readonly mortal: Mortal
  readonly #seed: number
  readonly #random: Random
  readonly #journal = new Journal()
  readonly #backups = new Backups()
  readonly #guests: Promise<void>[] = []
  readonly #revoked: string[] = []
  readonly #wrong: string[] = []
  #burst = 1_000_000
  #restarts = 0
  #slowestStopMs = 0
  #settings = 0

  constructor(seed: number, mortal: Mortal) {
    this.#seed = seed
    this.#random = new Random(seed)
    this.mortal = mortal
  }

  async run(ms: number): Promise<LongReport> {
    const { mortal } = this
    const { daemon } = mortal
    const cast = await hire(mortal, this.#journal, this.#random, THINK_MS)
    const begin = { target: mortal, token: daemon.token, after: encodeCursor(1, 0) }
    const readers = [
      new StreamReader(begin),
      new StreamReader({ ...begin, slow: true }),
      new Follower(mortal, httpCaller(mortal, daemon.token)),
    ]
    const stop = heardByAll()
    const writing = cast.writers.map((writer) => writer.run(stop.signal))

    await this.#disturb(cast, stop.signal, performance.now() + ms * 0.6, ['restart', 'backup', 'setting', 'revocation'])
    const gentle = ['backup', 'setting', 'revocation'] as const
    await this.#disturb(cast, stop.signal, performance.now() + ms * 0.1, gentle)
    const warm = await footprint(daemon)
    await this.#disturb(cast, stop.signal, performance.now() + ms * 0.3, gentle)
    const after = await footprint(daemon)
    stop.abort()
    await Promise.all([...writing, ...this.#guests])

    const { contents, lost, doubled, wrong } = await verify(daemon, this.#journal)
    const log = contents.events.map((event) => event.seq)
    for (const [i, reader] of readers.entries()) {
      await reader.reaches(log.length)
      await reader.close()
      wrong.push(...reader.problems)
      checkStream(`reader ${i}`, reader.seen, log, wrong)
    }
    this.#backups.compare(join(daemon.home, 'signalbox.db'))
    checkRevocations(contents, this.#revoked, wrong)
    await cast.close()
    const { taken, problems } = this.#backups
    return {
      seed: this.#seed,
      acknowledged: this.#journal.count('answer'),
      refused: this.#journal.count('refusal'),
      unknown: this.#journal.count('unknown'),
      replays: this.#journal.replays,
      events: log.length,
      restarts: this.#restarts,
      slowestStopMs: Math.round(this.#slowestStopMs),
      backups: taken.length,
      settings: this.#settings,
      revocations: this.#revoked.length,
      reconnects: (readers[1] as StreamReader).connections,
      warm,
      after,
      lost,
      doubled,
      wrong: [...wrong, ...problems, ...this.#wrong],
    }
  }

  async #disturb(cast: Cast, stop: AbortSignal, until: number, how: readonly ('restart' | 'backup' | 'setting' | 'revocation')[]) {
    const disturbances = {
      restart: () => this.#restart(),
      backup: () => this.#backups.take(this.mortal.daemon),
      setting: () => this.#changeSetting(),
      revocation: () => this.#revoke(cast, stop),
    }
    while (performance.now() < until) {
      await pause(this.#random.below(4_000))
      await disturbances[this.#random.pick(how)]()
    }
  }

  async #restart(): Promise<void> {
    const began = performance.now()
    const exit = await this.mortal.end('SIGTERM')
    this.#slowestStopMs = Math.max(this.#slowestStopMs, performance.now() - began)
    if (exit !== 0) this.#wrong.push(`after SIGTERM it ended with ${exit}`)
    await this.mortal.start()
    this.#restarts++
    await this.#checkSetting()
  }

  async #changeSetting(): Promise<void> {
    this.#burst = 500_000 + this.#random.below(500_000)
    await this.mortal.daemon.call('setting_update', { key: 'limits.agent_burst', value: this.#burst })
    this.#settings++
    await this.#checkSetting()
  }

  /** In force as soon as it is acknowledged, and after a restart. */
  async #checkSetting(): Promise<void> {
    const { settings } = await this.mortal.daemon.call('setting_get', { key: 'limits.agent_burst' })
    if (settings[0].value !== this.#burst) this.#wrong.push(`the setting is ${settings[0].value}, not ${this.#burst}`)
  }

  /** A guest comes, writes, and is shown the door: not one call of its token may be done after that. */
  async #revoke(cast: Cast, stop: AbortSignal): Promise<void> {
    const { daemon } = this.mortal
    const { principal, token } = await orchestrator(this.mortal)
    const caller = httpCaller(this.mortal, token)
    const guest = new Writer(
      {
        name: `g${this.#revoked.length}`,
        principal,
        caller,
        project: cast.project,
        may: ALL_WRITES,
        tasks: [...cast.shared],
        random: this.#random.fork(),
        thinkMs: 0,
      },
      this.mortal,
      this.#journal,
    )
    const writing = guest.run(stop)
    this.#guests.push(writing.then(() => caller.close()))
    await pause(this.#random.below(1_000))
    const { revoked } = await daemon.call('token_revoke', { agent_id: principal })
    if (revoked !== 1) this.#wrong.push(`${revoked} tokens were revoked`)
    const { error } = await daemon.post('agent_me', {}, token)
    if (error?.code !== 'AUTH_STALE_TOKEN') this.#wrong.push(`a revoked token got ${JSON.stringify(error)}`)
    await writing
    if (!guest.ended) this.#wrong.push(`${principal} was never turned away`)
    this.#revoked.push(principal)
  }
}

function checkRevocations({ events, calls }: Contents, revoked: string[], wrong: string[]): void {
  const callSeq = new Map(calls.map((call) => [call.id, call.seq]))
  const endedAt = new Map(
    events.filter((e) => e.type === 'token.ended').map((e) => [e.data.holder_id as string, callSeq.get(e.call_id) ?? 0]),
  )
  for (const principal of revoked) if (!endedAt.has(principal)) wrong.push(`the log does not say that the token of ${principal} ended`)
  for (const call of calls) {
    const ended = endedAt.get(call.principal)
    if (ended !== undefined && call.seq > ended && call.outcome !== 'refused')
      wrong.push(`${call.id} was ${call.outcome} after its token ended`)
  }
}

export function describeLongRun(report: LongReport): string {
  const size = ({ heapMb, rssMb, files }: Footprint) => `heap ${heapMb} MB, RSS ${rssMb} MB, ${files} files`
  return [
    `seed ${report.seed}: ${report.acknowledged} acknowledged, ${report.refused} refused, ${report.unknown} unknown, ${report.replays} replays, ${report.events} events`,
    `  ${report.restarts} restarts (slowest stop ${report.slowestStopMs} ms), ${report.backups} backups, ${report.settings} settings, ${report.revocations} revocations`,
    `  the slow stream was connected ${report.reconnects} times`,
    `  warm: ${size(report.warm)}; after: ${size(report.after)}`,
    `  lost ${report.lost.length}, doubled ${report.doubled.length}, wrong ${report.wrong.length}`,
  ].join('\n')
}
