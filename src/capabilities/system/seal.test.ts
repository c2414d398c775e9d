import { isDeepStrictEqual } from 'node:util'
import pg from 'pg'
import { describe, expect, inject, onTestFinished } from 'vitest'
import type { CoreTables } from '../../db/core.ts'
import {
  hashRow,
  hashSeal,
  headOf,
  makeSeal,
  marks,
  parseHead,
  SEALED,
  SEALED_TABLES,
  type Seal,
  type SealedRow,
  type SealedTable,
} from '../../db/seal.ts'
import { Sealer } from '../../db/sealer.ts'
import { tables } from '../../db/tables.ts'
import type { Storage } from '../../kernel/storage.ts'
import { openTestApp, type TestApp, test } from '../../testing/app.ts'
import { deferred, faulty, until } from '../../testing/signals.ts'
import { literal, tamper } from '../../testing/tamper.ts'

type Row = SealedRow & { generation?: number; xid?: string }

const verify = (app: TestApp, expect?: string) => app.owner.call('audit_verify', expect === undefined ? {} : { expect })
const database = (app: TestApp) => tables<CoreTables & { seals: Seal }>(app.app.engine.view)
/** In the order of the commits. */
const rowsOf = (app: TestApp, table: SealedTable): Promise<Row[]> => {
  const { order, view } = app.app.engine
  return order.following(view, table, undefined, 10_000)
}
const sealedRows = async (app: TestApp, table: SealedTable) => {
  const sealed = sealedSeqs(await sealsOf(app), table)
  return (await rowsOf(app, table)).filter((row) => sealed.includes(row.seq))
}
const sealsOf = (app: TestApp) => database(app).selectFrom('seals').selectAll().orderBy('number').execute()
const headNow = async (app: TestApp) => headOf((await sealsOf(app)).at(-1) as Seal)
const sealedSeqs = (seals: Seal[], table: SealedTable) => seals.flatMap((seal) => marks(seal[table]).map(([seq]) => seq))

/** One seal. On PostgreSQL an older transaction that is still open, as a heartbeat, holds back what would then come into a second one. */
async function sealAll(app: TestApp): Promise<void> {
  const { order, view } = app.app.engine
  const heldBack = async (table: SealedTable) =>
    (await order.following(view, table, undefined, 10_000, 'settled')).length < (await rowsOf(app, table)).length
  for (const table of SEALED_TABLES) await until(async () => !(await heldBack(table)))
  await until(async () => !(await app.app.sealer.seal()))
}

/** A small log under three seals, without a read, which would be written later. From here on the test alone decides when there is another seal. */
async function smallLog(app: TestApp): Promise<void> {
  await app.app.sealer.close()
  const { project_id } = await app.owner.call('project_create', { name: 'Web' })
  const { task } = await app.owner.call('task_create', { project_id, title: 'One' })
  await sealAll(app)
  await app.owner.call('task_note', { task_id: task.id, body: 'hello' })
  await app.owner.refused('task_move', { task_id: task.id, status: 'DONE' })
  await sealAll(app)
  const agent = await app.agent('orchestrator', { name: 'Ann' })
  await agent.call('decision_log', { title: 'x', body: 'y' })
  await sealAll(app)
  expect(await sealsOf(app)).toHaveLength(3)
}

const update = (table: string, key: string, id: unknown, column: string, value: unknown) =>
  `UPDATE ${table} SET ${column} = ${literal(value)} WHERE ${key} = ${id}`
const insert = (table: string, row: object) =>
  `INSERT INTO ${table} (${Object.keys(row).join(', ')}) VALUES (${Object.values(row).map(literal).join(', ')})`

function otherValues(value: unknown): unknown[] {
  if (typeof value === 'number') return [value + 1, -value]
  return value === null ? ['', 'x'] : [`${value}x`, String(value).slice(1)]
}

async function expectBad(app: TestApp, bad: object, edit: string[], mend: string[]): Promise<void> {
  await tamper(app, ...edit)
  const found = await verify(app)
  expect({ edit, ok: found.ok, bad: found.first_bad }).toMatchObject({ edit, ok: false, bad })
  await tamper(app, ...mend)
}

describe('sealing', () => {
  test('[Z7] where nothing is sealed yet there is no head', async ({ app }) => {
    expect(await verify(app)).toMatchObject({ ok: true, head: null, sealed_events: 0, sealed_calls: 0, first_bad: null, expected: null })
  })

  test('[Z1] [Z7] every row is sealed once, in order, and the answer tells how many are not yet', async ({ app }) => {
    await smallLog(app)
    const seals = await sealsOf(app)
    const [events, calls] = [sealedSeqs(seals, 'events'), sealedSeqs(seals, 'calls')]
    expect(events).toEqual((await rowsOf(app, 'events')).map((row) => row.seq))
    expect(calls).toEqual((await rowsOf(app, 'calls')).map((row) => row.seq).slice(0, calls.length))
    expect(await verify(app)).toMatchObject({
      ok: true,
      head: await headNow(app),
      sealed_events: events.length,
      sealed_calls: calls.length,
      unsealed_events: 0,
    })
    await app.owner.call('project_create', { name: 'More' })
    const { ok, unsealed_events, unsealed_calls } = await verify(app)
    expect([ok, unsealed_events, unsealed_calls > 0]).toEqual([true, 1, true])
  })

  test('[Z1] a commit is sealed by itself, reads too; a stop seals the rest', async ({ app }) => {
    await app.owner.call('project_list')
    await until(async () => sealedSeqs(await sealsOf(app), 'calls').length === 1)
    await app.task()
    await app.owner.call('project_list')
    await app.reopen()
    const seals = await sealsOf(app)
    for (const table of SEALED_TABLES) expect(sealedSeqs(seals, table)).toEqual((await rowsOf(app, table)).map((row) => row.seq))
    expect(await verify(app)).toMatchObject({ ok: true, unsealed_events: 0, unsealed_calls: 0 })
  })

  test('[Z1] sealing leaves no event and no call behind, and a second time there is nothing to do', async ({ app }) => {
    await smallLog(app)
    const before = [await rowsOf(app, 'events'), await rowsOf(app, 'calls')]
    const head = await headNow(app)
    await sealAll(app)
    expect(await headNow(app)).toBe(head)
    expect([await rowsOf(app, 'events'), await rowsOf(app, 'calls')]).toEqual(before)
  })

  test('[Z1] every stored column is sealed, but for those in which PostgreSQL keeps the order', async ({ app }) => {
    await app.task()
    for (const table of SEALED_TABLES) {
      const [row] = await rowsOf(app, table)
      const columns = Object.keys(row as Row).filter((column) => column !== 'generation' && column !== 'xid')
      expect([...SEALED[table].columns].sort()).toEqual(columns.sort())
    }
  })

  test('[Z2] where a sealer fails before or after its commit, the next goes on', async ({ app }) => {
    const { engine, host } = app.app
    for (const fate of ['fails before', 'fails after the commit'] as const) {
      await app.owner.call('project_create', { name: fate })
      const mortal = new Sealer({ storage: faulty(engine, [fate]), order: engine.order, now: host.now })
      await expect(mortal.seal()).rejects.toThrow('line')
      await until(async () => !(await mortal.seal()))
      await app.owner.call('project_create', { name: `${fate}, again` })
      await sealAll(app)
    }
    const seals = await sealsOf(app)
    expect(seals.map((seal) => seal.number)).toEqual(seals.map((_, i) => i + 1))
    for (const table of SEALED_TABLES) expect(sealedSeqs(seals, table)).toEqual((await rowsOf(app, table)).map((row) => row.seq))
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z2] a sealer that was overtaken drops its work and goes on behind the other', async ({ app }) => {
    await smallLog(app)
    const { engine, host } = app.app
    const [reached, gate] = [deferred(), deferred()]
    const storage: Storage = {
      view: engine.view,
      async write(job) {
        reached.resolve()
        await gate.promise
        return engine.write(job)
      },
    }
    await app.owner.call('project_create', { name: 'for both' })
    const slow = new Sealer({ storage, order: engine.order, now: host.now }).seal()
    await reached.promise
    await sealAll(app)
    await app.owner.call('project_create', { name: 'for the slow one' })
    gate.resolve()
    await slow
    await sealAll(app)
    const seals = await sealsOf(app)
    expect(seals.map((seal) => seal.number)).toEqual([1, 2, 3, 4, 5])
    for (const table of SEALED_TABLES) expect(sealedSeqs(seals, table)).toEqual((await rowsOf(app, table)).map((row) => row.seq))
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z2] [Z7] sealers and writers side by side make one chain, and a look at it meanwhile raises no false alarm', async ({ app }) => {
    const { engine, host } = app.app
    const apps = [app, ...(inject('postgres') ? [await another(app)] : [])]
    const sealers = apps.flatMap(({ app: { engine: storage } }) =>
      [1, 2].map(() => new Sealer({ storage, order: storage.order, now: host.now })),
    )
    let writing = true
    const writers = apps.flatMap((one) =>
      Array.from({ length: 8 }, async (_, n) => {
        for (let i = 0; i < 25; i++) await one.owner.call('project_create', { name: `P ${n} ${i}` })
      }),
    )
    const sealing = sealers.map(async (sealer) => {
      while (writing) await sealer.seal()
    })
    const looking = apps.map(async (one) => {
      // Its answer may need no turn of the event loop, and the writers need one.
      for (; writing; await new Promise((resolve) => setImmediate(resolve)))
        expect(await verify(one)).toMatchObject({ ok: true, first_bad: null })
    })
    await Promise.all(writers)
    writing = false
    await Promise.all([...sealing, ...looking])
    // The looks themselves reach the audit a moment later.
    await until(async () => {
      await sealAll(app)
      const sealed = sealedSeqs(await sealsOf(app), 'calls')
      return isDeepStrictEqual(
        sealed,
        (await rowsOf(app, 'calls')).map((row) => row.seq),
      )
    })
    const seals = await sealsOf(app)
    expect(seals.length).toBeGreaterThan(3)
    expect(seals.map((seal) => seal.number)).toEqual(seals.map((_, i) => i + 1))
    for (const table of SEALED_TABLES) {
      const sealed = sealedSeqs(seals, table)
      expect(new Set(sealed).size).toBe(sealed.length)
    }
    expect(sealedSeqs(seals, 'events')).toEqual((await rowsOf(app, 'events')).map((row) => row.seq))
    expect(engine.notices).toEqual([])
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test.runIf(inject('postgres'))(
    '[Z3] rows behind a commit that is still under way wait for it, and are sealed after it',
    async ({ app }) => {
      await smallLog(app)
      const [first] = await rowsOf(app, 'events')
      const client = new pg.Client({ connectionString: app.database })
      await client.connect()
      await client.query('BEGIN')
      const { seq: _, generation: __, xid: ___, ...late } = first as Row
      await client.query(insert('events', { ...late, subject: 'late' }))
      await app.owner.call('project_create', { name: 'after it' })
      const head = await headNow(app)
      expect(await app.app.sealer.seal()).toBe(true)
      expect(await headNow(app)).toBe(head)
      expect(await verify(app)).toMatchObject({ ok: true })
      await client.query('COMMIT')
      await client.end()
      await sealAll(app)
      const sealed = sealedSeqs(await sealsOf(app), 'events')
      expect(sealed).toEqual((await rowsOf(app, 'events')).map((row) => row.seq))
      expect(await verify(app)).toMatchObject({ ok: true, unsealed_events: 0 })
    },
  )
})

/** A second daemon on the same database. */
async function another(app: TestApp): Promise<TestApp> {
  const other = await openTestApp({ database: app.database, ownerSecrets: [] })
  onTestFinished(() => other.close())
  return other
}

describe('edits past Signalbox', () => {
  test('[Z4] any other value in any column of any sealed row is found, and that row is named', { timeout: 240_000 }, async ({ app }) => {
    await smallLog(app)
    for (const table of SEALED_TABLES) {
      for (const row of await sealedRows(app, table)) {
        for (const column of SEALED[table].columns.filter((name) => name !== 'seq')) {
          for (const value of otherValues(row[column]).filter((other) => other !== row[column])) {
            const bad = { table, seq: row.seq, problem: 'changed', seal: expect.any(Number), sealed_at: expect.any(Number) }
            await expectBad(app, bad, [update(table, 'seq', row.seq, column, value)], [update(table, 'seq', row.seq, column, row[column])])
          }
        }
      }
    }
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] a row that is gone, renumbered, added or exchanged with another is named', { timeout: 240_000 }, async ({ app }) => {
    await smallLog(app)
    // Behind the sealed ones there are others, or the next audited read would take the number of one that is gone.
    await app.owner.call('project_create', { name: 'Behind' })
    for (const table of SEALED_TABLES) {
      const rows = await sealedRows(app, table)
      for (const [i, row] of rows.entries()) {
        const { seq } = row
        await expectBad(app, { table, seq, problem: 'missing' }, [`DELETE FROM ${table} WHERE seq = ${seq}`], [insert(table, row)])
        await expectBad(
          app,
          { table, seq, problem: 'missing' },
          [update(table, 'seq', seq, 'seq', 9_000)],
          [update(table, 'seq', 9_000, 'seq', seq)],
        )
        const copy = { ...row, seq: 0, ...(table === 'calls' ? { id: 'call_forged' } : {}) }
        await expectBad(app, { table, seq: 0, problem: 'inserted' }, [insert(table, copy)], [`DELETE FROM ${table} WHERE seq = 0`])
        const next = rows[i + 1]
        if (!next) continue
        const exchange = [
          update(table, 'seq', seq, 'seq', -7),
          update(table, 'seq', next.seq, 'seq', seq),
          update(table, 'seq', -7, 'seq', next.seq),
        ]
        await expectBad(app, { table, problem: expect.stringMatching('changed|moved') }, exchange, exchange)
      }
    }
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] a number that cannot even be read is found and named, and sealing goes on', async ({ app }) => {
    await smallLog(app)
    const [, second] = (await sealedRows(app, 'events')) as [Row, Row]
    await expectBad(
      app,
      { table: 'events', seq: second.seq, problem: 'changed' },
      [`UPDATE events SET at = 9223372036854775807 WHERE seq = ${second.seq}`],
      [`UPDATE events SET at = ${second.at} WHERE seq = ${second.seq}`],
    )
    for (const number of ['9007199254740991', '9223372036854775807']) {
      await tamper(
        app,
        `INSERT INTO seals (number, at, previous, events, calls, rows, hash) VALUES (${number}, 1, 'x', '[]', '[]', 'x', 'y')`,
      )
      await app.owner.call('project_create', { name: 'More' })
      await sealAll(app)
      expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'seals', problem: 'inserted' }, unsealed_events: 0 })
      await tamper(app, `DELETE FROM seals WHERE number = ${number}`)
    }
    await expectBad(
      app,
      { table: 'seals', seq: 2, problem: 'changed' },
      ['UPDATE seals SET at = 9223372036854775807 WHERE number = 2'],
      [`UPDATE seals SET at = ${(await sealsOf(app))[1]?.at} WHERE number = 2`],
    )
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test.runIf(inject('postgres'))('[Z4] two rows that change places in the order of the commits are found', async ({ app }) => {
    await smallLog(app)
    const [a, b] = (await rowsOf(app, 'events')).filter((row, i, all) => i === 0 || row.xid !== all[i - 1]?.xid) as [Row, Row]
    const to = (one: Row, other: Row) => update('events', 'seq', one.seq, 'xid', other.xid)
    await expectBad(app, { table: 'events', problem: 'moved' }, [to(a, b), to(b, a)], [to(a, a), to(b, b)])
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] any other value in any column of any seal is found, and that seal is named', async ({ app }) => {
    await smallLog(app)
    const seals = await sealsOf(app)
    for (const seal of seals) {
      for (const column of Object.keys(seal) as (keyof Seal)[]) {
        for (const value of [...otherValues(seal[column]), ...(column === 'events' || column === 'calls' ? ['[]', ' []', 'null'] : [])]) {
          if (value === seal[column]) continue
          if (column === 'number' && seals.some((other) => other.number === value)) continue
          const problem = column !== 'number' ? 'changed' : Number(value) < 1 ? 'inserted' : 'missing'
          const seq = problem === 'inserted' ? value : seal.number
          await expectBad(
            app,
            { table: 'seals', seq, problem },
            [update('seals', 'number', seal.number, column, value)],
            [update('seals', 'number', column === 'number' ? value : seal.number, column, seal[column])],
          )
        }
      }
    }
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] a seal that is gone, added or exchanged with another is named', async ({ app }) => {
    await smallLog(app)
    const [one, two, three] = (await sealsOf(app)) as [Seal, Seal, Seal]
    for (const seal of [one, two])
      await expectBad(
        app,
        { table: 'seals', seq: seal.number, problem: 'missing' },
        [`DELETE FROM seals WHERE number = ${seal.number}`],
        [insert('seals', seal)],
      )
    const added = (number: number, problem: string) =>
      expectBad(
        app,
        { table: 'seals', seq: number, problem },
        [insert('seals', { ...three, number })],
        [`DELETE FROM seals WHERE number = ${number}`],
      )
    await added(0, 'inserted')
    await added(-1, 'inserted')
    await added(4, 'changed')
    const exchange = [
      update('seals', 'number', 1, 'number', 99),
      update('seals', 'number', 2, 'number', 1),
      update('seals', 'number', 99, 'number', 2),
    ]
    await expectBad(app, { table: 'seals', seq: 1, problem: 'changed' }, exchange, exchange)
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] a row and its mark, changed together, are found in their seal', async ({ app }) => {
    await smallLog(app)
    const [row] = await rowsOf(app, 'events')
    const [seal] = await sealsOf(app)
    const forged = { ...(row as Row), actor: 'nobody' }
    const list = JSON.stringify(
      marks((seal as Seal).events).map(([seq, mark]) => [seq, seq === forged.seq ? hashRow('events', forged).slice(0, 16) : mark]),
    )
    await tamper(app, update('events', 'seq', forged.seq, 'actor', 'nobody'), update('seals', 'number', 1, 'events', list))
    expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'seals', seq: 1, problem: 'changed' } })
  })

  test('[Z4] sealing goes on behind rows that were removed, and the first of them is still named', async ({ app }) => {
    await smallLog(app)
    const rows = await rowsOf(app, 'events')
    const gone = rows.slice(-2).map((row) => row.seq)
    await tamper(app, `DELETE FROM events WHERE seq IN (${gone.join(',')})`)
    await app.owner.call('project_create', { name: 'later' })
    await sealAll(app)
    const seals = await sealsOf(app)
    expect(seals.length).toBeGreaterThan(3)
    const sealed = sealedSeqs(seals, 'events')
    expect(new Set(sealed).size).toBe(sealed.length)
    expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'events', seq: gone[0] } })
  })
})

/** What somebody does who knows the algorithm: the seals from there on made anew over the rows as they are. */
async function rebuild(app: TestApp, from: number, upTo = Number.POSITIVE_INFINITY): Promise<void> {
  const seals = (await sealsOf(app)).filter((seal) => seal.number <= upTo)
  let previous = seals[from - 2]?.hash ?? '0'.repeat(64)
  for (const seal of seals.slice(from - 1)) {
    const hashed = async (table: SealedTable) => {
      const sealed = new Set(marks(seal[table]).map(([seq]) => seq))
      return (await rowsOf(app, table)).filter((row) => sealed.has(row.seq)).map((row) => ({ seq: row.seq, hash: hashRow(table, row) }))
    }
    const anew = makeSeal({ number: seal.number, at: seal.at, previous }, { events: await hashed('events'), calls: await hashed('calls') })
    await tamper(app, `DELETE FROM seals WHERE number = ${seal.number}`, insert('seals', anew))
    previous = anew.hash
  }
}

describe('with a head that was kept elsewhere', () => {
  test('[Z4] rebuilt up to any seal but the last, the chain breaks at the next', async ({ app }) => {
    await smallLog(app)
    const [first] = await sealedRows(app, 'events')
    await tamper(app, update('events', 'seq', first?.seq, 'actor', 'nobody'))
    for (const upTo of [1, 2]) {
      await rebuild(app, 1, upTo)
      expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'seals', seq: upTo + 1, problem: 'changed' } })
    }
    await rebuild(app, 1)
    expect(await verify(app)).toMatchObject({ ok: true })
  })

  test('[Z4] rows that fit their marks, but not the full hashes, are found', async ({ app }) => {
    await smallLog(app)
    const { hash: _, ...last } = (await sealsOf(app)).at(-1) as Seal
    const forged = { ...last, rows: 'f'.repeat(64) }
    await tamper(app, 'DELETE FROM seals WHERE number = 3', insert('seals', { ...forged, hash: hashSeal(forged) }))
    expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'seals', seq: 3, problem: 'changed' } })
  })

  test('[Z5] a chain that was rebuilt looks sound, and is found with it', async ({ app }) => {
    await smallLog(app)
    const [first] = await sealsOf(app)
    const kept = await headNow(app)
    expect(await verify(app, kept)).toMatchObject({ ok: true, expected: 'found' })
    const [call] = (await sealedRows(app, 'calls')).slice(-1)
    await tamper(app, update('calls', 'seq', call?.seq, 'principal', 'somebody else'))
    expect(await verify(app)).toMatchObject({ ok: false, first_bad: { table: 'calls', seq: call?.seq, seal: 3 } })
    await rebuild(app, 3)
    expect(await verify(app)).toMatchObject({ ok: true, expected: null, meaning: expect.stringContaining('or the chain was rebuilt') })
    expect(await verify(app, kept)).toMatchObject({ ok: false, first_bad: null, expected: 'rewritten' })
    expect(await verify(app, headOf(first as Seal))).toMatchObject({ ok: true, expected: 'found' })
  })

  test('[Z5] one that was cut is found with it, also when new seals have taken the place', async ({ app }) => {
    await smallLog(app)
    const kept = await headNow(app)
    await tamper(app, 'DELETE FROM seals WHERE number = 3')
    expect(await verify(app)).toMatchObject({ ok: true })
    expect(await verify(app, kept)).toMatchObject({ ok: false, expected: 'cut', meaning: expect.stringContaining('ends before') })
    await app.owner.call('project_create', { name: 'later' })
    await sealAll(app)
    expect(await verify(app)).toMatchObject({ ok: true })
    expect(await verify(app, kept)).toMatchObject({ ok: false, expected: 'rewritten' })
  })

  test.for(['', 'x', '1', '0.0', `1.${'g'.repeat(64)}`, `01.${'0'.repeat(64)}`])('[Z5] "%s" is no head', async (expect_, { app }) => {
    expect(await app.owner.refused('audit_verify', { expect: expect_ })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(parseHead(expect_)).toBeUndefined()
  })
})
