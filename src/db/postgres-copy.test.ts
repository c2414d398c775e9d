import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { test as base, describe, expect, inject } from 'vitest'
import { capabilities } from '../capabilities/index.ts'
import { type App, createApp } from '../daemon/app.ts'
import { type Capability, defineCapability } from '../kernel/capability.ts'
import { Caller, openTestApp, type TestApp } from '../testing/app.ts'
import { administer, createDatabase, dropDatabase, TEMPLATE } from '../testing/databases.ts'
import { testSurroundings } from '../testing/ports.ts'
import { type CopiedTable, type CopyOptions, copyToPostgres, planCopy } from './copy.ts'
import { scrubbed, withoutPassword } from './copy-target.ts'
import { decodeCursor, encodeCursor } from './engine.ts'
import { backupFile, restoreFile } from './maintenance.ts'
import { openPostgres } from './postgres.ts'

const migrationsOf = (all: Capability[]) => all.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] }))
const migrations = migrationsOf(capabilities)

/** A SQLite file with an app on it, and an empty PostgreSQL database. */
class Move {
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox-copy-'))
  readonly source = join(this.folder, 'signalbox.db')
  target = ''
  readonly #opened: { close(): Promise<void> }[] = []

  static async begin(template?: string): Promise<Move> {
    const move = new Move()
    move.target = await createDatabase(inject('postgres'), basename(move.folder), template)
    return move
  }

  async sqlite(all = capabilities): Promise<TestApp> {
    return this.#kept(await openTestApp({ database: this.source, capabilities: all }))
  }

  async postgres(ownerToken: string): Promise<App> {
    return this.#kept(
      await createApp({ database: this.target, ...testSurroundings(this.folder), onDefect: () => {}, ownerSecrets: [ownerToken] }),
    )
  }

  copy(onTable?: CopyOptions['onTable'], sets = migrations): Promise<CopiedTable[]> {
    return copyToPostgres({ source: this.source, target: this.target, migrations: sets, onTable })
  }

  plan() {
    return planCopy({ source: this.source, target: this.target, migrations })
  }

  /** Changes the file as no tool would. */
  edit(...statements: string[]): void {
    const db = new DatabaseSync(this.source)
    for (const statement of statements) db.exec(statement)
    db.close()
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read the columns by name
  async rows(sql: string): Promise<any[]> {
    const client = new pg.Client({ connectionString: this.target })
    await client.connect()
    return client.query(sql).then(
      ({ rows }) => client.end().then(() => rows),
      (error) => client.end().then(() => Promise.reject(error)),
    )
  }

  async tables(): Promise<string[]> {
    return (await this.rows(`SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1`)).map(
      (row) => row.relname,
    )
  }

  /** How many rows each table of the target has, but for what every target has. */
  async counts(): Promise<Record<string, number>> {
    const names = (await this.tables()).filter((name) => !['migrations', 'meta'].includes(name))
    const counted = await Promise.all(names.map(async (name) => [name, Number((await this.rows(`SELECT count(*) FROM ${name}`))[0].count)]))
    return Object.fromEntries(counted.filter(([, rows]) => rows !== 0))
  }

  /** With the log, in which a change would be at first. */
  fingerprint(): string {
    const hash = createHash('sha256').update(readFileSync(this.source))
    return hash.update(existsSync(`${this.source}-wal`) ? readFileSync(`${this.source}-wal`) : '').digest('hex')
  }

  #kept<T extends { close(): Promise<void> }>(opened: T): T {
    this.#opened.push(opened)
    return opened
  }

  async end(): Promise<void> {
    for (const opened of this.#opened) await opened.close().catch(() => {})
    await dropDatabase(inject('postgres'), basename(this.folder))
    rmSync(this.folder, { recursive: true, force: true })
  }
}

const test = base.extend<{ move: Move }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  move: async ({}, use) => {
    const move = await Move.begin()
    await use(move)
    await move.end()
  },
})

const note = (app: TestApp, task: { id: string }) => app.owner.call('task_note', { task_id: task.id, body: 'x' })

/** A closed file with a task and some notes in it. */
async function fill(move: Move, notes = 3): Promise<{ secret: string; task: { id: string } }> {
  const app = await move.sqlite()
  const task = await app.task()
  for (let i = 0; i < notes; i++) await note(app, task)
  const secret = app.app.ownerToken
  await app.app.close()
  return { secret, task }
}

describe('every row', () => {
  const TEXTS = [
    '',
    ' ',
    "it's",
    '"quoted"',
    '\\',
    '{"a":[1,null]}',
    'NULL',
    '{}',
    '\n\r\t',
    'é',
    'e\u0301',
    '😀',
    '👩🏽‍🚀',
    '\ufffd',
    '\u0001',
    '\u200f',
    'Z',
    'a',
  ]

  test('[D30] each table of the file is there, and each text as it was', async ({ move }) => {
    await fill(move)
    const db = new DatabaseSync(move.source)
    const put = db.prepare('INSERT INTO refusals (source, reason, count, first_at, last_at) VALUES (?, ?, ?, ?, ?)')
    for (const text of TEXTS) put.run(text, `${text}|${text}`, Number.MAX_SAFE_INTEGER, -1, 0)
    const keep = db.prepare('INSERT INTO idempotency (principal, tool, key, input_hash, answer, at) VALUES (?, ?, ?, ?, ?, ?)')
    db.exec('BEGIN')
    for (let i = 0; i < 2_500; i++) keep.run(`p${i % 7}`, 't', String(i), '', i % 1_000 ? '' : 'ab😀'.repeat(1_000_000), i)
    db.exec('COMMIT')
    const copied = await move.copy()
    const names = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'migrations' ORDER BY name`).all()
    expect(copied.map(({ table }) => table)).toEqual(names.map(({ name }) => name))
    const expected = db.prepare('SELECT source, reason, count, first_at, last_at FROM refusals ORDER BY source').all()
    const found = await move.rows(`SELECT source, reason, count::text, first_at::int, last_at::int FROM refusals ORDER BY source`)
    expect(found.map((row) => ({ ...row, count: Number(row.count) }))).toEqual(expected)
    for (const { table, rows } of copied) expect(await move.rows(`SELECT count(*)::int FROM ${table}`)).toEqual([{ count: rows }])
    expect(await move.rows(`SELECT count(*)::int, sum(char_length(answer))::int AS long FROM idempotency`)).toEqual([
      { count: 2_500, long: 9_000_000 },
    ])
    db.close()
  })

  test('[D30] a capability that comes later is copied, whatever its tables are called and point to', async ({ move }) => {
    const later = defineCapability({
      name: 'later',
      tools: [],
      migrations: [
        {
          name: 'odd',
          up: ({ int, text, strict }) => [
            `CREATE TABLE "Odd ""one" (b ${text} NOT NULL, a ${int} NOT NULL, "up" ${text}, n ${int}, UNIQUE (b), PRIMARY KEY (a, b), FOREIGN KEY ("up") REFERENCES "Odd ""one" (b)) ${strict}`,
          ],
        },
      ],
    })
    const all = [...capabilities, later]
    await (await move.sqlite(all)).app.close()
    move.edit(`INSERT INTO "Odd ""one" VALUES ('z', 1, NULL, NULL), ('a', 2, 'z', 0)`, `UPDATE "Odd ""one" SET "up" = 'a' WHERE b = 'z'`)
    await move.copy(undefined, migrationsOf(all))
    expect(await move.rows('SELECT a::int, b, "up", n::int FROM "Odd ""one" ORDER BY a')).toEqual([
      { a: 1, b: 'z', up: 'a', n: null },
      { a: 2, b: 'a', up: 'z', n: 0 },
    ])
    await expect(move.rows(`INSERT INTO "Odd ""one" VALUES ('q', 3, 'nowhere', 0)`)).rejects.toThrow('foreign key')
  })

  test('[D30] a task may be the child of a younger one', async ({ move }) => {
    const app = await move.sqlite()
    const [child, parent] = [await app.task(), await app.task()]
    await app.app.close()
    move.edit(`UPDATE tasks SET parent_id = '${parent.id}' WHERE id = '${child.id}'`)
    await move.copy()
    expect(await move.rows(`SELECT parent_id FROM tasks WHERE id = '${child.id}'`)).toEqual([{ parent_id: parent.id }])
  })

  test.for([
    ['changes a text', 'NEW.reason := upper(NEW.reason); RETURN NEW;', /refusals did not arrive as it was: 1 rows .* 1 with/],
    ['drops a row', 'RETURN NULL;', /refusals did not arrive as it was: 1 rows .* 0 with/],
  ] as const)('[D31] a target that %s is found out, and nothing is copied', async ([, body, message], { move }) => {
    await fill(move)
    move.edit(`INSERT INTO refusals VALUES ('a', 'b', 1, 1, 1)`)
    await (await openPostgres({ url: move.target, migrations })).close()
    await move.rows(`CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`)
    await move.rows('CREATE TRIGGER spoiling BEFORE INSERT ON refusals FOR EACH ROW EXECUTE FUNCTION spoil()')
    await expect(move.copy()).rejects.toThrow(message)
    expect(await move.counts()).toEqual({})
    await move.rows('DROP TRIGGER spoiling ON refusals')
    await move.copy()
  })

  test('[D30] a limit on statements that the role or the database has does not end a long copy', async ({ move }) => {
    await fill(move)
    move.edit(`INSERT INTO refusals VALUES ('a', 'b', 1, 1, 1)`)
    await (await openPostgres({ url: move.target, migrations })).close()
    await move.rows(`CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END $$`)
    await move.rows('CREATE TRIGGER slowly BEFORE INSERT ON refusals FOR EACH ROW EXECUTE FUNCTION slow()')
    await move.rows(`ALTER DATABASE "${basename(move.folder)}" SET statement_timeout = '1s'`)
    await move.copy()
  })

  test('[D31] a number that cannot be held exactly is a refusal, not a rounding', async ({ move }) => {
    await fill(move)
    move.edit(`INSERT INTO refusals VALUES ('a', 'b', 9007199254740993, 1, 1)`)
    await expect(move.copy()).rejects.toThrow(/refusals: .*9007199254740993/)
    expect(await move.counts()).toEqual({})
  })
})

describe('all or nothing', () => {
  test('[D32] cut off behind any table, it leaves no row, and the next one is whole', async ({ move }) => {
    await fill(move)
    const tables = (await move.plan()).length
    const cut = `SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity WHERE application_name = 'signalbox-copy' AND datname = current_database()`
    // The soak has them all.
    const every = process.env.SIGNALBOX_SOAK ? 1 : 9
    for (let last = 1; last <= tables; last = last < tables ? Math.min(last + every, tables) : last + 1) {
      let seen = 0
      const attempt = move.copy(async () => {
        if (++seen === last) await administer(move.target, cut)
      })
      await expect(attempt).rejects.toThrow()
      expect(seen).toBe(last)
      expect(await move.counts()).toEqual({})
      expect(await move.rows(`SELECT value FROM meta WHERE name = 'generation'`)).toEqual([{ value: '1' }])
    }
    expect(await move.copy()).toHaveLength(tables)
  })

  test('[D32] of two at once one copies, and the other finds the target filled', async ({ move }) => {
    await fill(move)
    const outcomes = await Promise.allSettled([move.copy(), move.copy()])
    expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    for (const outcome of outcomes) if (outcome.status === 'rejected') expect(String(outcome.reason)).toContain('The target is not empty')
  })
})

describe('the target', () => {
  test('[D33] a dry run tells tables and rows and makes nothing, not even a table', async ({ move }) => {
    await fill(move, 5)
    const plan = await move.plan()
    expect(plan.find(({ table }) => table === 'task_notes')).toEqual({ table: 'task_notes', rows: 5 })
    expect(await move.tables()).toEqual([])
    const copied = await move.copy()
    expect(copied.map(({ table, rows }) => ({ table, rows }))).toEqual(plan)
  })

  test('[D33] a table that is not ours is named, and the target left as it is', async ({ move }) => {
    await fill(move)
    await move.rows('CREATE TABLE recipes (name TEXT)')
    for (const attempt of [() => move.plan(), () => move.copy()])
      await expect(attempt()).rejects.toThrow(/not empty: it has recipes.*createdb/)
    expect(await move.tables()).toEqual(['recipes'])
    await move.rows('ALTER TABLE recipes RENAME TO tasks')
    await expect(move.copy()).rejects.toThrow('not empty: it has tasks')
    await move.rows('CREATE TABLE migrations (id INT); INSERT INTO migrations VALUES (1)')
    await expect(move.copy()).rejects.toThrow('are those of another program')
    expect(await move.tables()).toEqual(['migrations', 'tasks'])
  })

  test('[D33] one that a daemon has used is refused, also after a copy', async ({ move }) => {
    const { secret } = await fill(move)
    await (await move.postgres(secret)).close()
    const before = await move.counts()
    for (const attempt of [() => move.plan(), () => move.copy()])
      await expect(attempt()).rejects.toThrow(/not empty: there are rows in people/)
    expect(await move.counts()).toEqual(before)
    await dropDatabase(inject('postgres'), basename(move.folder))
    move.target = await createDatabase(inject('postgres'), basename(move.folder), TEMPLATE)
    await move.copy()
    await expect(move.copy()).rejects.toThrow('The target is not empty')
  })

  test('[D33] one that cannot be reached, written or hold the text is refused with what to do', async ({ move }) => {
    await fill(move)
    const to = (target: string) => copyToPostgres({ source: move.source, target, migrations })
    await expect(to(move.target.replace(basename(move.folder), 'nowhere'))).rejects.toThrow(/"nowhere" does not exist.*createdb/)
    await expect(to('postgres://somebody@127.0.0.1:1/x')).rejects.toThrow(/cannot be reached: .*ECONNREFUSED.*Is the server running/)
    await expect(to('postgres://[not an address')).rejects.toThrow('cannot be reached')
    const guest = `guest_${basename(move.folder).replace(/\W/g, '').toLowerCase()}`
    await move.rows(`CREATE ROLE ${guest} LOGIN`)
    try {
      const asGuest = move.target.replace('signalbox@', `${guest}@`)
      await expect(to(asGuest)).rejects.toThrow(/not fit: this role may not make tables.*GRANT CREATE ON SCHEMA/)
      await move.rows(`GRANT CREATE ON SCHEMA public TO ${guest}`)
      await expect(to(asGuest)).rejects.toThrow(/schema graphile_worker.*GRANT CREATE ON DATABASE/)
      expect(await move.tables()).toEqual([])
    } finally {
      await move.rows(`DROP OWNED BY ${guest}; DROP ROLE ${guest}`)
    }
    const latin = `${basename(move.folder)}-latin`
    await move.rows(`CREATE DATABASE "${latin}" TEMPLATE template0 ENCODING 'LATIN1'`)
    await expect(to(move.target.replace(basename(move.folder), latin))).rejects.toThrow('its encoding is LATIN1')
    await dropDatabase(inject('postgres'), latin)
  })

  test('[D33] what an extension brought along is in nobody’s way', async ({ move }) => {
    await fill(move)
    await move.rows('CREATE VIEW brought AS SELECT 1 AS one; CREATE EXTENSION plpgsql').catch(() => {})
    await move.rows('CREATE VIEW brought AS SELECT 1 AS one').catch(() => {})
    await expect(move.plan()).rejects.toThrow('it has brought')
    await move.rows('ALTER EXTENSION plpgsql ADD VIEW brought')
    expect((await move.plan()).length).toBeGreaterThan(5)
  })

  test('[D37] the password of an address is in no message', async ({ move }) => {
    await fill(move)
    for (const url of [
      'postgres://me:s3cr%40t/x@127.0.0.1:1/db',
      'postgres://me@127.0.0.1:1/db?password=s3cr%40t/x&a=b',
      'postgresql://:s3cr%40t@/x',
    ]) {
      expect(withoutPassword(url)).toContain('***')
      expect(withoutPassword(url)).not.toContain('s3cr')
      expect(scrubbed(`bad ${decodeURIComponent('s3cr%40t/x')} of ${url}`, url)).not.toMatch(/s3cr(%40|@)t\/x/)
      const refused = copyToPostgres({ source: move.source, target: url, migrations })
      await expect(refused).rejects.toThrow('cannot be reached')
      await expect(refused).rejects.not.toThrow('s3cr')
    }
    expect(withoutPassword('postgres://me@host:5432/db?application_name=x')).toBe('postgres://me@host:5432/db?application_name=x')
  })
})

describe('the file', () => {
  test('[D34] it is the same before and after, byte for byte, and after a refusal', async ({ move }) => {
    await fill(move)
    const before = move.fingerprint()
    await move.plan()
    await move.copy()
    await expect(move.copy()).rejects.toThrow('not empty')
    expect(move.fingerprint()).toBe(before)
  })

  test('[D34] what a crash left in its log is copied too', async ({ move }) => {
    const app = await move.sqlite()
    const task = await app.task()
    await note(app, task)
    const copied = await move.copy()
    expect(copied.find(({ table }) => table === 'task_notes')?.rows).toBe(1)
  })

  test('[D34] one that is damaged, foreign, older or newer is refused before the target is touched', async ({ move }) => {
    await fill(move, 40)
    const sound = readFileSync(move.source)
    const from = (source: string) => copyToPostgres({ source, target: move.target, migrations })
    const damagedFile = join(move.folder, 'damaged.db')
    writeFileSync(damagedFile, Buffer.from(sound).fill(0xa5, 4_096 * 3, 4_096 * 5))
    await expect(from(damagedFile)).rejects.toThrow('is damaged')
    const foreign = join(move.folder, 'foreign.db')
    new DatabaseSync(foreign).exec('CREATE TABLE recipes (name TEXT)')
    await expect(from(foreign)).rejects.toThrow('not a Signalbox database')
    move.edit(`INSERT INTO migrations VALUES ('task/099-later', 1)`)
    await expect(move.copy()).rejects.toThrow(/newer Signalbox \(it has task\/099-later\)/)
    move.edit(`DELETE FROM migrations WHERE name IN ('task/099-later', 'core/003-effects')`)
    await expect(move.copy()).rejects.toThrow(/lacks core\/003-effects.*Start this version of Signalbox on it once/)
    expect(await move.tables()).toEqual([])
  })
})

describe('cursors', () => {
  type Step = 'note' | `keep ${string}` | `restore ${string}`

  /** Lives through the steps on SQLite and returns the app, open. */
  async function history(move: Move, steps: Step[]): Promise<TestApp> {
    const app = await move.sqlite()
    const task = await app.task()
    const at = (name: string) => join(move.folder, `${name}.db`)
    for (const step of steps) {
      const [verb, name = ''] = step.split(' ')
      if (verb === 'note') await note(app, task)
      else if (verb === 'keep') backupFile(move.source, at(name))
      else await app.reopen(() => void restoreFile(move.source, at(name), 'x', migrations))
    }
    return app
  }

  const read = async (app: App, cursor: string) =>
    (await app.engine.ledger.tail(app.engine.view, cursor, {}, 10_000)).map((event) => event.call_id)

  const notes = (count: number): Step[] => Array(count).fill('note')
  test.for([
    ['no restore', notes(6)],
    ['nothing but the start', []],
    ['a restore', ['note', 'keep a', ...notes(4), 'restore a', ...notes(2)]],
    ['a restore and nothing since', ['note', 'keep a', ...notes(4), 'restore a']],
    ['one after another', ['keep a', ...notes(2), 'restore a', ...notes(3), 'keep b', ...notes(3), 'restore b', ...notes(2)]],
    ['a branch that was given up', ['note', 'keep a', ...notes(4), 'keep b', 'restore a', ...notes(6), 'restore b', ...notes(2)]],
    [
      'back and forth',
      [
        'keep a',
        ...notes(3),
        'keep b',
        'restore a',
        ...notes(5),
        'keep c',
        'restore b',
        'note',
        'restore a',
        ...notes(2),
        'restore c',
        ...notes(3),
      ],
    ],
  ] as [string, Step[]][])('[D35] after %s every cursor finds what it found, then what is new', async ([, steps], { move }) => {
    const app = await history(move, steps)
    const { generation } = app.app.engine
    const head = decodeCursor(await app.app.engine.ledger.head(app.app.engine.view))?.seq as number
    const cursors: { cursor: string; before: string[] }[] = []
    for (let g = 1; g <= generation; g++) {
      for (let seq = 0; seq <= head + 8; seq++) {
        const cursor = encodeCursor(g, seq)
        // One that the daemon issued after the copy was taken has seen everything that was copied.
        const before = g === generation && seq > head ? [] : await read(app.app, cursor)
        cursors.push({ cursor, before })
      }
    }
    await app.app.close()
    await move.copy()
    const copy = await move.postgres(app.app.ownerToken)
    const { principal } = (await copy.identity.authenticate(copy.engine.view, copy.ownerToken)) as { principal: { id: string } }
    const owner = new Caller(copy, copy.ownerToken, principal.id, 'owner')
    expect(copy.engine.generation).toBe(generation + 1)
    for (const { cursor, before } of cursors) expect([cursor, await read(copy, cursor)]).toEqual([cursor, before])
    await owner.call('task_create', { title: 'new', project_id: (await owner.call('project_list')).projects[0].id })
    const [fresh] = (await read(copy, encodeCursor(generation, head + 8))).slice(-1)
    for (const { cursor, before } of cursors) expect([cursor, await read(copy, cursor)]).toEqual([cursor, [...before, fresh]])
    await expect(read(copy, encodeCursor(generation + 1, 1))).rejects.toThrow('future')
    await copy.close()
  })
})

test('[D36] tokens, handles, keys and row numbers go on', async ({ move }) => {
  const app = await move.sqlite()
  const task = await app.task({ idempotency_key: 'once' })
  await note(app, task)
  const agent = await app.agent('planner')
  const audit = await app.owner.call('audit_tail')
  const secret = app.app.ownerToken
  await app.app.close()
  await move.copy()
  const [before] = await move.rows('SELECT max(seq)::int AS seq FROM events')
  // Asked of the sequence itself: a daemon tries again when numbers collide, until they do not.
  for (const table of ['events', 'calls']) {
    const [{ next, last }] = await move.rows(
      `SELECT nextval(pg_get_serial_sequence('${table}', 'seq'))::int AS next, (SELECT max(seq) FROM ${table})::int AS last`,
    )
    expect([table, next]).toEqual([table, last + 1])
  }
  const copy = await move.postgres(secret)
  expect(copy.ownerToken).toBe(secret)
  const owner = new Caller(copy, secret, app.owner.id, 'owner')
  const project_id = (await owner.call('project_list')).projects[0].id
  expect((await owner.call('task_create', { project_id, title: 'Do it', idempotency_key: 'once' })).task_id).toBe(task.id)
  expect((await owner.call('task_create', { project_id, title: 'next' })).task.handle).toBe('T-2')
  expect(await new Caller(copy, agent.secret, agent.id, agent.handle).call('agent_me')).toMatchObject({ id: agent.id })
  expect((await owner.call('audit_tail')).calls.map((call: { id: string }) => call.id)).toEqual(
    expect.arrayContaining(audit.calls.map((call: { id: string }) => call.id)),
  )
  await copy.close()
  const fresh = await move.rows(`SELECT seq::int, generation::int, xid <> '0' AS stamped FROM events WHERE seq > ${before.seq}`)
  expect(fresh).toEqual([{ seq: before.seq + 2, generation: 2, stamped: true }])
})
