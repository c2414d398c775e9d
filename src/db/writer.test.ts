import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { type Refusal, TransientFault } from '../kernel/error.ts'
import type { Tx } from '../kernel/storage.ts'
import { openTestApp } from '../testing/app.ts'
import { rowCounts } from '../testing/probe.ts'
import { deferred } from '../testing/signals.ts'
import { builderOn, Connection } from './sqlite-connection.ts'
import { tables } from './tables.ts'
import { Writer } from './writer.ts'

interface Rows {
  rows: { id: number; body: string }
}

/** Only where time is the point is a job taken back for it: elsewhere a machine that stands still for a moment changes nothing. */
const SHORT_MS = 2_000

function open(slowestJobMs = 60_000) {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-writer-'))
  const path = join(folder, 'test.db')
  const connection = new Connection(path)
  connection.exec('PRAGMA journal_mode = WAL; CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT NOT NULL UNIQUE)')
  const writer = new Writer(connection, slowestJobMs)
  onTestFinished(async () => {
    await writer.close()
    connection.close()
    rmSync(folder, { recursive: true })
  })
  const bodies = () =>
    connection.raw
      .prepare('SELECT body FROM rows ORDER BY id')
      .all()
      .map((row) => row.body)
  return { writer, connection, path, bodies }
}

const insert = (tx: Tx, body: string) =>
  tables<Rows>(tx)
    .insertInto('rows')
    .values({ body } as never)
    .execute()
const put = (body: string) => async (tx: Tx) => {
  await insert(tx, body)
  return body
}

describe('group commit', () => {
  test('[D1] calls that wait together share one commit, and each is answered after it', async () => {
    const { writer, connection, bodies } = open()
    const commits = vi.spyOn(connection, 'exec')
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => writer.write(put(`row ${i}`))))
    expect(answers).toEqual(Array.from({ length: 200 }, (_, i) => `row ${i}`))
    expect(bodies()).toEqual(answers)
    expect(commits.mock.calls.filter(([text]) => text === 'COMMIT')).toHaveLength(1)
    expect([writer.batches, writer.calls, writer.queued]).toEqual([1, 200, 0])
  })

  test('[D1] through the door too: a hundred calls cost a few commits', async () => {
    const app = await openTestApp()
    onTestFinished(() => app.close())
    const task = await app.task()
    const before = app.app.engine.stats()
    await Promise.all(Array.from({ length: 100 }, (_, i) => app.owner.call('task_note', { task_id: task.id, body: String(i) })))
    const after = app.app.engine.stats()
    expect(after.calls - before.calls).toBeGreaterThanOrEqual(100)
    expect(after.batches - before.batches).toBeLessThanOrEqual(10)
  })

  test('[D1] nobody is answered before the commit is durable', async () => {
    const { writer, connection } = open()
    const order: string[] = []
    const exec = connection.exec.bind(connection)
    vi.spyOn(connection, 'exec').mockImplementation((text) => {
      exec(text)
      if (text === 'COMMIT') order.push('committed')
    })
    const jobs = ['a', 'b'].map((body) => writer.write(put(body)).then(() => order.push(body)))
    await Promise.all(jobs)
    expect(order).toEqual(['committed', 'a', 'b'])
  })

  test('[D2] jobs run one at a time, in the order in which they came', async () => {
    const { writer } = open()
    const trace: string[] = []
    const job = (name: string) => async (tx: Tx) => {
      trace.push(`${name} begins`)
      await insert(tx, name)
      await new Promise((resolve) => setImmediate(resolve))
      trace.push(`${name} ends`)
    }
    await Promise.all(['a', 'b', 'c'].map((name) => writer.write(job(name))))
    expect(trace).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  })

  test('[D3] a job that fails takes back its own rows and nobody else’s', async () => {
    const { writer, bodies } = open()
    const failing = async (tx: Tx) => {
      await insert(tx, 'half')
      throw new Error('no')
    }
    const duplicate = async (tx: Tx) => {
      await insert(tx, 'fresh')
      await insert(tx, 'first')
    }
    const results = await Promise.allSettled([
      writer.write(put('first')),
      writer.write(failing),
      writer.write(duplicate),
      writer.write(put('last')),
    ])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(bodies()).toEqual(['first', 'last'])
    expect(writer.batches).toBe(1)
  })

  test('[D2] a later job of the batch sees what an earlier one wrote', async () => {
    const { writer } = open()
    const count = async (tx: Tx) => (await tables<Rows>(tx).selectFrom('rows').select('id').execute()).length
    const [, seen] = await Promise.all([writer.write(put('x')), writer.write(count)])
    expect(seen).toBe(1)
  })
})

describe('time', () => {
  test('[D4] a job that takes too long is taken back; the others are not held up by it', async () => {
    const { writer, bodies } = open(SHORT_MS)
    const never = async (tx: Tx) => {
      await insert(tx, 'slow')
      await new Promise(() => {})
    }
    const results = await Promise.allSettled([writer.write(put('a')), writer.write(never), writer.write(put('b'))])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((results[1] as PromiseRejectedResult).reason).toBeInstanceOf(TransientFault)
    expect(bodies()).toEqual(['a', 'b'])
  })

  test('[D4] also one that never lets go of the event loop', async () => {
    const { writer, bodies } = open(SHORT_MS)
    const stubborn = async (tx: Tx) => {
      await insert(tx, 'stubborn')
      for (const end = performance.now() + SHORT_MS + 100; performance.now() < end; );
    }
    await expect(writer.write(stubborn)).rejects.toBeInstanceOf(TransientFault)
    expect(bodies()).toEqual([])
  })

  test('[D5] a statement that comes after the end of its job reaches no transaction', async () => {
    const { writer, bodies } = open(SHORT_MS)
    const [go, outcome] = [deferred(), deferred<unknown>()]
    const late = async (tx: Tx) => {
      await go.promise
      outcome.resolve(await insert(tx, 'late').catch((error: unknown) => error))
    }
    await expect(writer.write(late)).rejects.toBeInstanceOf(TransientFault)
    await writer.write(async (tx) => {
      await insert(tx, 'mine')
      go.resolve()
      expect(String(await outcome.promise)).toContain('has ended')
    })
    expect(bodies()).toEqual(['mine'])
  })
})

describe('a transaction that is lost', () => {
  const losing = async (tx: Tx) => {
    await insert(tx, 'lost')
    await sql`ROLLBACK`.execute(tables<Rows>(tx))
    throw new Error('the disk said no')
  }

  test('[D6] with it go the others’ rows, so they are run again, each on its own', async () => {
    const { writer, bodies } = open()
    const runs: string[] = []
    const counted = (body: string) => async (tx: Tx) => {
      runs.push(body)
      return put(body)(tx)
    }
    const results = await Promise.allSettled([writer.write(counted('a')), writer.write(losing), writer.write(counted('b'))])
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)))).toEqual([
      'a',
      'Error: the disk said no',
      'b',
    ])
    expect(runs).toEqual(['a', 'a', 'b'])
    expect(bodies()).toEqual(['a', 'b'])
  })

  test('[D6] a job that hides the loss is not answered as done', async () => {
    const { writer, bodies } = open()
    const hiding = async (tx: Tx) => {
      await losing(tx).catch(() => {})
      return 'done'
    }
    await expect(writer.write(hiding)).rejects.toThrow()
    await writer.write(put('after'))
    expect(bodies()).toEqual(['after'])
  })

  test('[D7] a full disk refuses what does not fit, says so, and work goes on when there is room', async () => {
    const { writer, connection, bodies } = open()
    await writer.write(put('before'))
    const pages = Number(connection.raw.prepare('PRAGMA page_count').get()?.page_count)
    connection.exec(`PRAGMA max_page_count = ${pages + 2}`)
    const big = 'x'.repeat(100_000)
    const putAndTell = (tx: Tx) =>
      tables<Rows>(tx)
        .insertInto('rows')
        .values({ body: `${big}!` } as never)
        .returning('id')
        .execute()
    const results = await Promise.allSettled([
      writer.write(put('small')),
      writer.write(put(big)),
      writer.write(putAndTell),
      writer.write(put('small too')),
    ])
    expect(results.map((result) => result.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as Refusal] : []))
    for (const reason of reasons) expect(reason.body).toMatchObject({ code: 'STORAGE_FULL', hint: expect.stringContaining('space') })
    connection.exec('PRAGMA max_page_count = 1000000')
    await writer.write(put(big))
    expect(bodies()).toEqual(['before', 'small', 'small too', big])
  })
})

describe('another connection holds the lock', () => {
  const locked = (path: string) => {
    const other = new Connection(path)
    other.exec('BEGIN IMMEDIATE')
    return {
      release() {
        other.exec('ROLLBACK')
        other.close()
      },
    }
  }

  test('[D8] busy is a passing fault, and the writer goes on afterwards', async () => {
    const { writer, path, bodies } = open()
    const lock = locked(path)
    await expect(writer.write(put('early'))).rejects.toBeInstanceOf(TransientFault)
    lock.release()
    await writer.write(put('later'))
    expect(bodies()).toEqual(['later'])
  })

  test.concurrent('[D8] a call is retried until the lock is gone, and applied once', async ({ onTestFinished }) => {
    const app = await openTestApp()
    onTestFinished(() => app.close())
    const task = await app.task()
    const lock = locked(join(app.folder, 'signalbox.db'))
    const turnedAway = deferred<unknown>()
    const { engine } = app.app
    app.app.kernel.parts.storage = {
      view: engine.view,
      write: (job) =>
        engine.write(job).catch((error: unknown) => {
          turnedAway.resolve(error)
          throw error
        }),
    }
    const noted = app.owner.call('task_note', { task_id: task.id, body: 'patient' })
    expect(await turnedAway.promise).toBeInstanceOf(TransientFault)
    expect(await app.owner.call('task_get', { task_id: task.id })).toMatchObject({ task: { note_count: 0 } })
    lock.release()
    await noted
    expect(await app.owner.call('task_get', { task_id: task.id })).toMatchObject({ task: { note_count: 1 } })
  })

  test.concurrent('[D8] one that never gets it is TRANSIENT_ERROR, writes nothing, and is in the audit once there is one', async ({
    onTestFinished,
  }) => {
    const app = await openTestApp()
    onTestFinished(() => app.close())
    const task = await app.task()
    const before = await rowCounts(app.app.engine.view, ['seals'])
    const lock = locked(join(app.folder, 'signalbox.db'))
    expect(await app.owner.refused('task_note', { task_id: task.id, body: 'x' })).toMatchObject({ code: 'TRANSIENT_ERROR' })
    expect(await rowCounts(app.app.engine.view, ['seals'])).toEqual(before)
    lock.release()
    await app.reopen()
    const { calls } = await app.owner.call('audit_tail', { tool: 'task_note' })
    expect(calls).toMatchObject([{ outcome: 'failed', code: 'TRANSIENT_ERROR' }])
  })
})

describe('closing', () => {
  test('[D9] what was accepted is finished, what comes later is refused', async () => {
    const { writer, bodies } = open()
    const accepted = Promise.all(Array.from({ length: 600 }, (_, i) => writer.write(put(String(i)))))
    const closing = writer.close()
    await expect(writer.write(put('late'))).rejects.toBeInstanceOf(TransientFault)
    await closing
    expect(await accepted).toHaveLength(600)
    expect(bodies()).toHaveLength(600)
  })
})

describe('statements', () => {
  test('[D10] a statement is prepared once, and the cache does not grow without end', async () => {
    const { connection } = open()
    const db = builderOn(connection)
    const prepare = vi.spyOn(connection.raw, 'prepare')
    const ask = (n: number) => sql.raw(`SELECT ${n} AS n`).execute(db)
    for (let i = 0; i < 50; i++) await ask(0)
    expect(prepare).toHaveBeenCalledTimes(1)
    for (let n = 1; n <= 2_000; n++) await ask(n)
    expect(prepare).toHaveBeenCalledTimes(2_001)
    await ask(2_000)
    expect(prepare).toHaveBeenCalledTimes(2_001)
    await ask(0)
    expect(prepare).toHaveBeenCalledTimes(2_002)
  })
})
