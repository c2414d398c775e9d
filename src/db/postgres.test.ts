import { sql } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { nextNumber } from '../capabilities/handle.ts'
import { capabilities } from '../capabilities/index.ts'
import { TransientFault } from '../kernel/error.ts'
import type { Tx } from '../kernel/storage.ts'
import { openTestApp } from '../testing/app.ts'
import { administer, type Cluster, CuttingProxy, copyDatabase, createDatabase, startCluster } from '../testing/databases.ts'
import { until } from '../testing/signals.ts'
import { connectionsOf } from './address.ts'
import type { Engine } from './engine.ts'
import { openPostgres } from './postgres.ts'
import { tables } from './tables.ts'

const WRITERS = 8
const MILLISECONDS = Number(process.env.SIGNALBOX_LOAD_MS ?? 1_500)

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster({ durable: true })
})
afterAll(() => cluster.remove())

const migrations = capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] }))

async function open(name: string): Promise<Engine> {
  return openPostgres({ url: await createDatabase(cluster.folder, name), migrations })
}

/** A connection of somebody else, in the middle of a transaction that has written. */
async function openTransaction(url: string): Promise<{ end(): Promise<void> }> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN; CREATE TEMPORARY TABLE mine (n int); INSERT INTO mine VALUES (1)')
  return { end: () => client.query('ROLLBACK').then(() => client.end()) }
}

async function news(engine: Engine, after: string) {
  const { events, heldBack } = await engine.ledger.news(engine.view, after, 10)
  return { subjects: events.map((event) => event.subject), heldBack }
}

/** The server has transactions of its own, as when it analyses a table: these hold something back for a moment. */
async function told(engine: Engine, after: string, subjects: string[]): Promise<void> {
  await until(async () => !(await news(engine, after)).heldBack)
  expect((await news(engine, after)).subjects).toEqual(subjects)
}

let made = 0

async function append(engine: Engine, tx: Tx): Promise<string> {
  const subject = `thing_${++made}`
  await engine.ledger.append(tx, [{ type: 'thing.made', subject, data: {} }], { id: `call_${made}`, at: 0, actor: 'x' })
  return subject
}

/** Writes for a while from eight connections at once; returns what was committed. */
async function load(engine: Engine, ms: number, before: (tx: Tx) => Promise<unknown> = async () => {}): Promise<string[]> {
  const committed: string[] = []
  const end = performance.now() + ms
  const writer = async () => {
    while (performance.now() < end) {
      const subject = await engine.write(async (tx) => {
        await before(tx)
        const appended = await append(engine, tx)
        // Another statement, as every call has: its audit row.
        await sql`SELECT 1`.execute(tables(tx))
        return appended
      })
      committed.push(subject)
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
  return committed
}

/** Follows the log until it is told to stop, and then to its end. */
function reader(page: (after: unknown) => Promise<{ subject: string; at: unknown }[]>) {
  const seen: string[] = []
  let stopping = false
  const run = async () => {
    let after: unknown
    for (;;) {
      const last = stopping
      const rows = await page(after)
      seen.push(...rows.map((row) => row.subject))
      after = rows.at(-1)?.at ?? after
      if (last && !rows.length) return seen
    }
  }
  const running = run()
  return {
    seen,
    async stop() {
      stopping = true
      return running
    },
  }
}

async function follower(engine: Engine) {
  const start = await engine.ledger.start(engine.view)
  return reader(async (after) => {
    const events = await engine.ledger.tail(engine.view, (after ?? start) as string, {}, 500)
    return events.map(({ subject, cursor }) => ({ subject, at: cursor }))
  })
}

describe('the order of commits', () => {
  test('[D40] eight writers that commit out of order: a reader misses nothing; one that follows the row numbers does', async () => {
    const engine = await open('order')
    const byCursor = await follower(engine)
    const byNumber = reader(async (after) => {
      const found = sql<{
        subject: string
        at: number
      }>`SELECT subject, seq AS at FROM events WHERE seq > ${after ?? 0} ORDER BY seq LIMIT 500`
      return (await found.execute(tables(engine.view))).rows
    })
    const committed = await load(engine, MILLISECONDS)
    // At least one for certain: its number is lower than that of one that is committed, and read, before it.
    const late = await engine.write(async (tx) => {
      const first = await append(engine, tx)
      const second = await engine.write((other) => append(engine, other))
      committed.push(second)
      await until(() => byNumber.seen.includes(second))
      return first
    })
    committed.push(late)
    const [seen, seenByNumber] = await Promise.all([byCursor.stop(), byNumber.stop()])
    const missed = committed.length - seenByNumber.length
    console.info(
      `${committed.length} events of ${WRITERS} writers: cursor missed ${committed.length - seen.length}, row number missed ${missed}`,
    )
    expect(seen.toSorted()).toEqual(committed.toSorted())
    expect(missed).toBeGreaterThan(0)
    await engine.close()
  })

  test('[D40] whoever writes waits for nobody else who does; at a counter row they would', async () => {
    const engine = await open('speed')
    /** How many of those that come while one is under way are done before it. */
    const passing = async (number: (tx: Tx) => Promise<unknown> = async () => {}) => {
      let passed = 0
      const others = await engine.write(async (tx) => {
        await number(tx)
        await append(engine, tx)
        const all = Array.from({ length: WRITERS }, () =>
          engine
            .write(async (other) => {
              await number(other)
              await append(engine, other)
            })
            .then(() => passed++),
        )
        const blocked = async () => {
          const waiting = sql<{ n: number }>`SELECT count(*)::int AS n FROM pg_locks WHERE NOT granted`
          return Number((await waiting.execute(tables(engine.view))).rows[0]?.n)
        }
        await until(async () => passed + (await blocked()) >= WRITERS)
        return { all, passed }
      })
      await Promise.all(others.all)
      return others.passed
    }
    expect(await passing()).toBe(WRITERS)
    expect(await passing((tx) => nextNumber(tx, 'event'))).toBe(0)
    await engine.close()
  })

  test('[D41] an open transaction of our database holds back what was committed after it began, and nothing is skipped', async () => {
    const engine = await open('held')
    const start = await engine.ledger.start(engine.view)
    const before = await engine.write((tx) => append(engine, tx))
    const other = await openTransaction(cluster.url('held'))
    const after = await engine.write((tx) => append(engine, tx))
    expect(await news(engine, start)).toEqual({ subjects: [before], heldBack: true })
    await other.end()
    await told(engine, start, [before, after])
    await engine.close()
  })

  test("[D41] one in somebody else's database holds nothing back", async () => {
    const engine = await open('neighbour')
    const start = await engine.ledger.start(engine.view)
    const other = await openTransaction(cluster.url('postgres'))
    const made = await engine.write((tx) => append(engine, tx))
    await told(engine, start, [made])
    await other.end()
    await engine.close()
  })

  test('[D41] a role that may not look at the sessions of others waits for all of them rather than skip one', async () => {
    const url = await createDatabase(cluster.folder, 'roles')
    await administer(url, 'CREATE ROLE plain LOGIN; GRANT ALL ON SCHEMA public TO plain; GRANT CREATE ON DATABASE roles TO plain')
    const engine = await openPostgres({ url: url.replace('signalbox@', 'plain@'), migrations })
    const start = await engine.ledger.start(engine.view)
    const before = await engine.write((tx) => append(engine, tx))
    const hidden = await openTransaction(url)
    await engine.write((tx) => append(engine, tx))
    expect(await news(engine, start)).toEqual({ subjects: [before], heldBack: true })
    await hidden.end()
    await until(async () => (await news(engine, start)).subjects.length === 2)
    await engine.close()
  })
})

describe('a connection that is lost', () => {
  /** Stands between the engine and the server, and cuts the connection at its next commit. */
  async function behindProxy(name: string) {
    const url = await createDatabase(cluster.folder, name)
    const proxy = await CuttingProxy.start(cluster.folder)
    const engine = await openPostgres({
      url: url.replace(encodeURIComponent(cluster.folder), encodeURIComponent(proxy.folder)),
      migrations,
    })
    return { proxy, engine }
  }

  const count = async (engine: Engine) =>
    Number((await sql<{ n: number }>`SELECT count(*) AS n FROM events`.execute(tables(engine.view))).rows[0]?.n)

  test('[D42] after the server has the commit: it is found to be done, once', async () => {
    const { proxy, engine } = await behindProxy('after')
    proxy.cutAtCommit = 'behind'
    await engine.write((tx) => append(engine, tx))
    expect([proxy.cuts, await count(engine)]).toEqual([1, 1])
    await engine.close()
    proxy.close()
  })

  test('[D42] before the server has it: it is a passing fault, and nothing is there', async () => {
    const { proxy, engine } = await behindProxy('before')
    proxy.cutAtCommit = 'before'
    await expect(engine.write((tx) => append(engine, tx))).rejects.toThrow(TransientFault)
    expect([proxy.cuts, await count(engine)]).toEqual([1, 0])
    await engine.write((tx) => append(engine, tx))
    expect(await count(engine)).toBe(1)
    await engine.close()
    proxy.close()
  })

  /** Crashes the server at the commit, and lets others commit until one of them has the number that the crash took back. */
  async function crashAtCommit(engine: Engine, proxy: CuttingProxy): Promise<{ reused: boolean }> {
    let xid = ''
    let reused = false
    proxy.insteadOfCommit = async () => {
      await cluster.stop('immediate')
      await cluster.start()
      const other = new pg.Client({ connectionString: cluster.url('crash') })
      await other.connect()
      for (let i = 0; i < 100; i++) await other.query('SELECT pg_current_xact_id()')
      const { rows } = await other.query('SELECT pg_xact_status($1::xid8) AS status', [xid])
      reused = rows[0].status === 'committed'
      await other.end()
    }
    const job = engine.write(async (tx) => {
      await append(engine, tx)
      xid = (await sql<{ xid: string }>`SELECT pg_current_xact_id()::text AS xid`.execute(tables(tx))).rows[0]?.xid as string
    })
    await expect(job).rejects.toThrow(TransientFault)
    await proxy.gate
    return { reused }
  }

  test('[D42] with a crash, after which its number belongs to another transaction: it is not taken for done', {
    timeout: 300_000,
  }, async () => {
    const { proxy, engine } = await behindProxy('crash')
    // What has reached the disk keeps its number, and the server writes on its own now and then.
    await administer(cluster.url('postgres'), `ALTER SYSTEM SET wal_writer_delay = '10s'`)
    await administer(cluster.url('postgres'), 'SELECT pg_reload_conf()')
    let reused = false
    for (let i = 0; i < 20 && !reused; i++) ({ reused } = await crashAtCommit(engine, proxy))
    expect(reused).toBe(true)
    expect(await count(engine)).toBe(0)
    await engine.close()
    proxy.close()
  })

  test('[D42] in the middle of a transaction: it is a passing fault, and the pool goes on', async () => {
    const { proxy, engine } = await behindProxy('middle')
    const job = engine.write(async (tx) => {
      await append(engine, tx)
      proxy.cutAll()
      return append(engine, tx)
    })
    await expect(job).rejects.toThrow(TransientFault)
    await engine.write((tx) => append(engine, tx))
    expect(await count(engine)).toBe(1)
    await engine.close()
    proxy.close()
  })
})

describe('many at once', () => {
  test('[D43] four daemons that start at once on an empty database set it up once', async () => {
    const url = await createDatabase(cluster.folder, 'starting')
    const engines = await Promise.all(Array.from({ length: 4 }, () => openPostgres({ url, migrations })))
    const applied = await sql<{ name: string }>`SELECT name FROM migrations`.execute(tables((engines[0] as Engine).view))
    expect(new Set(applied.rows.map((row) => row.name)).size).toBe(applied.rows.length)
    await Promise.all(engines.map((engine) => engine.close()))
  })

  test('[D48] an address without a host is read, too', () => {
    expect(connectionsOf('postgres://me@/shop?host=/run/postgresql&connection_limit=12')).toEqual({ readers: 4, effects: 2, writers: 5 })
    expect(connectionsOf('postgres://me@/shop')).toEqual({ readers: 6, effects: 4, writers: 10 })
  })

  test.for([
    ['', 21],
    ['&connection_limit=12', 12],
    ['&connection_limit=1', 8],
    ['&connection_limit=many', 21],
  ] as const)(
    '[D48] with "%s" a daemon opens no more than %i connections, and all calls are answered',
    async ([limit, most], { expect }) => {
      const name = `limited${limit.replaceAll(/\W/g, '')}`
      const database = `${await createDatabase(cluster.folder, name)}${limit}`
      const { readers, writers, effects } = connectionsOf(database)
      expect(readers + writers + effects + 1).toBe(most)
      const app = await openTestApp({ database })
      try {
        await app.task({})
        let open = 0
        const calls = Array.from({ length: 40 }, async (_, i) => {
          await (i % 2 ? app.task({}) : app.owner.call('task_list'))
          const found = sql<{
            n: number
          }>`SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = ${name} AND backend_type = 'client backend'`
          open = Math.max(open, (await found.execute(tables(app.app.engine.view))).rows[0]?.n ?? 0)
        })
        await Promise.all(calls)
        expect(open).toBeGreaterThan(readers)
        expect(open).toBeLessThanOrEqual(most)
      } finally {
        await app.close()
      }
    },
  )

  test('[D44] ten times as many writers as connections are slow, none is turned away, and reads come in between', async () => {
    const engine = await open('crowd')
    const writes = Promise.all(Array.from({ length: 200 }, () => engine.write((tx) => append(engine, tx))))
    let reads = 0
    let done = false
    const reading = (async () => {
      for (; !done; reads++) await engine.ledger.head(engine.view)
    })()
    expect(new Set(await writes).size).toBe(200)
    done = true
    await reading
    expect(reads).toBeGreaterThan(1)
    await engine.close()
  })

  test('[D44] a job that fails, or forgets its transaction, gives its connection back', async () => {
    const engine = await open('leaks')
    const failing = Array.from({ length: 60 }, (_, i) =>
      engine.write(async (tx) => {
        await append(engine, tx)
        if (i % 2) throw new Error('no')
        // Sent and not waited for: it must not land in the transaction of whoever gets the connection next.
        void append(engine, tx).catch(() => {})
      }),
    )
    await Promise.allSettled(failing)
    expect(await engine.write((tx) => append(engine, tx))).toMatch(/^thing_/)
    await engine.close()
  })

  test('[D44] a job that hangs in its transaction is ended, and holds nobody up for longer', async () => {
    const url = await createDatabase(cluster.folder, 'hanging')
    const engine = await openPostgres({ url, migrations, idleInTransactionMs: 3_000 })
    const hanging = Array.from({ length: 12 }, () =>
      engine.write(async (tx) => {
        await append(engine, tx)
        await new Promise(() => {})
      }),
    )
    const start = await engine.ledger.start(engine.view)
    const made = engine.write((tx) => append(engine, tx))
    expect(new Set((await Promise.allSettled(hanging)).map(({ status }) => status))).toEqual(new Set(['rejected']))
    await expect(hanging[0]).rejects.toThrow(TransientFault)
    await told(engine, start, [await made])
    await engine.close()
  })

  test('[D47] a newer daemon changes a table under the statements of this one: reads and writes go on', async () => {
    const engine = await open('changed')
    const start = await engine.ledger.start(engine.view)
    // As every call does: a read and a write, with statements that are prepared.
    const both = async () => {
      await engine.write(async (tx) => {
        await append(engine, tx)
        await tables<{ events: { seq: number } }>(tx).selectFrom('events').selectAll().execute()
      })
      return (await engine.ledger.tail(engine.view, start, {}, 100)).length
    }
    await Promise.all(Array.from({ length: 30 }, both))
    await administer(cluster.url('changed'), 'ALTER TABLE events ADD COLUMN newer BIGINT')
    for (let i = 1; i <= 30; i++) expect(await both()).toBe(30 + i)
    await engine.close()
  })

  test('[D45] what another daemon commits is told within 100 ms', async () => {
    const url = await createDatabase(cluster.folder, 'two')
    const [here, there] = await Promise.all([openPostgres({ url, migrations }), openPostgres({ url, migrations })])
    const times: number[] = []
    for (let i = 0; i < 20; i++) {
      const told = new Promise<void>((resolve) => there.onChange?.(resolve))
      await here.write((tx) => append(here, tx))
      const committed = performance.now()
      await told
      times.push(performance.now() - committed)
    }
    times.sort((a, b) => a - b)
    console.info(`told after ${times[10]?.toFixed(1)} ms (median), ${times.at(-1)?.toFixed(1)} ms (longest of ${times.length})`)
    // The best one: whoever only looked now and then would be late every time, and a busy machine is late now and then.
    expect(times[0]).toBeLessThan(100)
    await Promise.all([here.close(), there.close()])
  })
})

describe('a dump that is restored', () => {
  test('[D46] on another server it begins a new generation: old cursors go on, and what is new comes after all that is old', async () => {
    const engine = await open('moved')
    // So that this server is far ahead of a fresh one in the numbers of its transactions.
    const old: string[] = []
    for (let i = 0; i < 5; i++) old.push(await engine.write((tx) => append(engine, tx)))
    const [, second] = await engine.ledger.tail(engine.view, await engine.ledger.start(engine.view), {}, 2)
    const head = await engine.ledger.head(engine.view)
    await engine.close()

    const elsewhere = await startCluster()
    try {
      const url = await createDatabase(elsewhere.folder, 'moved')
      copyDatabase(cluster.folder, elsewhere.folder, 'moved')
      const moved = await openPostgres({ url, migrations })
      expect(moved.generation).toBe(2)
      const made = await moved.write((tx) => append(moved, tx))
      await told(moved, second?.cursor as string, [...old.slice(2), made])
      await told(moved, head, [made])
      await told(moved, await moved.ledger.start(moved.view), [...old, made])
      await moved.close()
      const again = await openPostgres({ url, migrations })
      expect(again.generation).toBe(2)
      await again.close()
    } finally {
      await elsewhere.remove()
    }
  })
})
