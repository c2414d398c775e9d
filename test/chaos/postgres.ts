import pg from 'pg'
import { afterAll, beforeAll, expect } from 'vitest'
import { type Cluster, createDatabase, startCluster } from '../../src/testing/databases.ts'
import { MARKER } from './journal.ts'
import { type KillReport, killDaemon, type Ordeal, someTime, strikeUnderLoad, summary } from './kill-daemon.ts'
import type { Mortal } from './mortal.ts'
import { pause } from './stop.ts'
import { type Contents, findings, NOTHING_FOUND } from './verify.ts'

/** One that waits for a database that is away does so as long as that is; one that is slow once is on a busy machine. */
const HEALTH_WITHIN_MS = 20_000
/** A restart every so often, at most. */
const PERIOD_MS = Number(process.env.SIGNALBOX_PERIOD_MS ?? 2_500)

let databases = 0

/** One durable server for the tests of a file; nothing may be lost, doubled or wrong after so many strikes. */
export function onDurableServer(strikes: number): (seed: number, make: (cluster: Cluster) => Promise<Ordeal>) => Promise<KillReport> {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ durable: true })
  })
  afterAll(() => cluster.remove())
  return async (seed, make) => {
    const report = await strikeUnderLoad(seed, strikes, await make(cluster))
    console.info(`SIGNALBOX_SEED=${seed}: ${summary([report])}`)
    expect(findings(report)).toEqual(NOTHING_FOUND)
    return report
  }
}

/** The daemon is killed again and again, as on SQLite. */
export async function daemonKilled(cluster: Cluster): Promise<Ordeal> {
  return { ...(await onPostgres(cluster)), strike: killDaemon }
}

/** The database is restarted again and again, in order or as by a crash, and sometimes it stays away for a while. */
export async function databaseRestarted(cluster: Cluster): Promise<Ordeal> {
  return {
    ...(await onPostgres(cluster)),
    beside: healthAnswers,
    async strike(_mortal, journal, random) {
      // Long enough that calls which were being retried get through before the next one.
      await pause(1_500 + random.below(PERIOD_MS - 1_500))
      await someTime(journal, random)
      await cluster.stop(random.chance(0.5) ? 'immediate' : 'fast')
      if (random.chance(0.3)) await pause(random.below(2_500))
      await cluster.start()
    },
  }
}

async function onPostgres(cluster: Cluster) {
  const url = await createDatabase(cluster.folder, `chaos_${process.pid}_${++databases}`)
  return { options: { env: { SIGNALBOX_DATABASE_URL: url } }, read: () => readPostgres(url) }
}

const IN_ORDER = 'ORDER BY generation, xid, seq'

async function readPostgres(url: string): Promise<Contents> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  // biome-ignore lint/suspicious/noExplicitAny: rows of many tables
  const all = async (sql: string): Promise<any[]> => (await client.query(sql)).rows.map(numbers)
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    const calls = await all(`SELECT seq, id, tool, outcome, code, principal, token, input FROM calls ${IN_ORDER}`)
    const tasks = await all('SELECT id, title, description, status, version, deleted_at FROM tasks')
    const answers = await all('SELECT principal, tool, key, answer FROM idempotency')
    return {
      dense: false,
      events: (await all(`SELECT * FROM events ${IN_ORDER}`)).map((row) => ({ ...row, data: JSON.parse(row.data) })),
      calls: calls.map(({ input, ...call }, place) => ({ ...call, place, marker: MARKER.exec(input)?.[0] })),
      tasks: new Map(tasks.map((row) => [row.id, row])),
      notes: await all('SELECT id, task_id, author, body FROM task_notes ORDER BY id'),
      decisions: await all('SELECT id, author, title, body FROM decisions'),
      answers: new Map(answers.map((row) => [row.key, { ...row, answer: JSON.parse(row.answer) }])),
      problems: [],
    }
  } finally {
    await client.end()
  }
}

/** The driver leaves big integers as text. */
function numbers(row: Record<string, unknown>) {
  for (const name of ['seq', 'version', 'deleted_at', 'at']) if (typeof row[name] === 'string') row[name] = Number(row[name])
  return row
}

/** Asks for health over and over: it has to answer, whatever the database does. */
function healthAnswers(mortal: Mortal): () => Promise<string[]> {
  const stop = new AbortController()
  const wrong: string[] = []
  let answers = 0
  let longest = 0
  const watch = async () => {
    while (!stop.signal.aborted) {
      const asked = performance.now()
      const response = await fetch(`${mortal.url}/healthz`, { headers: { connection: 'close' } }).catch((error) => ({
        status: String(error),
      }))
      if (response.status !== 200) wrong.push(`health answered ${response.status}`)
      answers++
      longest = Math.max(longest, performance.now() - asked)
      await pause(100, stop.signal)
    }
  }
  const watching = watch()
  return async () => {
    stop.abort()
    await watching
    console.info(`health answered ${answers} times, the slowest after ${longest.toFixed(0)} ms`)
    return longest > HEALTH_WITHIN_MS ? [...wrong, `health took ${longest.toFixed(0)} ms`] : wrong
  }
}
