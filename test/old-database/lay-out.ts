import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { createDatabase, dropDatabase, loadDatabase } from '../../src/testing/databases.ts'

type Row = Record<string, string | number | null>

interface Begun {
  task_id: string
  job_id: string
}

export interface Description {
  commit: string
  /** Where everything was, and on which machine: a database that is laid out says where it is now instead. */
  root: string
  host: string
  ids: Record<'done' | 'checked' | 'reviewed' | 'atWork' | 'asking', Begun> & { queued: Begun[] } & Record<
      'project_id' | 'repo_id' | 'worker' | 'letter' | 'epic_id' | 'paired' | 'plan_id',
      string
    >
  counts: Record<string, number>
  there: Record<'tasks' | 'jobs' | 'reviews' | 'merges' | 'letters' | 'agents', Row[]>
}

export const description = JSON.parse(kept('description.json').toString()) as Description

/** Their rows are hashed in a chain, and nobody acts on the paths in them: they keep the old ones. */
const SEALED = ['events', 'calls', 'seals']

/** What a Signalbox of `description.commit` had on disk when it was killed: see make.mjs. In a folder of its own, ready to be started. */
export class OldDatabase {
  readonly root: string
  /** A SQLite file, or the address of a PostgreSQL database. */
  readonly location: string
  readonly #server: string | undefined
  #copies = 0

  private constructor(root: string, location: string, server?: string) {
    this.root = root
    this.location = location
    this.#server = server
  }

  static async onSqlite(): Promise<OldDatabase> {
    const root = layFiles()
    const location = join(root, 'home/signalbox.db')
    writeFileSync(location, unpacked('signalbox.db.br'), { mode: 0o600 })
    const db = new DatabaseSync(location)
    try {
      const text = db.prepare(`
        SELECT t.name AS "table", c.name AS "column" FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table' AND c.type = 'TEXT'`)
      for (const { table, column } of text.all() as Column[])
        if (!SEALED.includes(table)) db.prepare(MOVE(table, column, ['?', '?', '?', '?', '?'])).run(...moves(root))
    } finally {
      db.close()
    }
    return new OldDatabase(root, location)
  }

  /** @param server The folder of the socket of a server of ours. */
  static async onPostgres(server: string): Promise<OldDatabase> {
    const root = layFiles()
    const location = await createDatabase(server, nameOf(root))
    loadDatabase(server, nameOf(root), unpacked('postgres.sql.br').toString())
    const client = new pg.Client({ connectionString: location })
    await client.connect()
    try {
      const { rows } = await client.query<Column>(
        `SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text'`,
      )
      for (const { table, column } of rows)
        if (!SEALED.includes(table)) await client.query(MOVE(table, column, ['$1', '$2', '$3', '$4', '$5']), moves(root))
    } finally {
      await client.end()
    }
    return new OldDatabase(root, location, server)
  }

  get home(): string {
    return join(this.root, 'home')
  }

  get repo(): string {
    return join(this.root, 'repo')
  }

  /** Of the daemon: agents find the program that stands for Claude Code, and nothing of the user who runs the tests. */
  get env(): Record<string, string> {
    const env = { HOME: this.root, SHELL: '/bin/sh', PATH: `${join(this.root, 'bin')}:${process.env.PATH}` }
    return this.location.startsWith('postgres') ? { ...env, SIGNALBOX_DATABASE_URL: this.location } : env
  }

  /** Whoever waits at one of these goes on, and nobody waits there any more. */
  open(...gates: string[]): void {
    for (const gate of gates) writeFileSync(join(this.root, 'gates', gate), '')
  }

  /** Somebody is at this gate, or has passed it. */
  isReached(gate: string): boolean {
    return existsSync(join(this.root, 'gates', `${gate}.reached`))
  }

  /** Of the database alone, as it is now. Nobody may be using it. */
  async copy(): Promise<string> {
    const name = `copy-${++this.#copies}`
    if (this.#server) return createDatabase(this.#server, `${nameOf(this.root)}-${name}`, nameOf(this.root))
    const path = join(this.root, `${name}.db`)
    copyFileSync(this.location, path)
    return path
  }

  async remove(): Promise<void> {
    const names = Array.from({ length: this.#copies }, (_, n) => `${nameOf(this.root)}-copy-${n + 1}`)
    if (this.#server) for (const name of [nameOf(this.root), ...names]) await dropDatabase(this.#server, name)
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 })
  }
}

interface Column {
  table: string
  column: string
}

/** From, to, from, to, and what the rows are like that have any of it. The name of a host has the home in it. */
function moves(root: string): string[] {
  return [`${description.host}:${description.root}`, `${hostname()}:${root}`, description.root, root, `%${description.root}%`]
}

const MOVE = (table: string, column: string, [a, b, c, d, like]: string[]) =>
  `UPDATE "${table}" SET "${column}" = replace(replace("${column}", ${a}, ${b}), ${c}, ${d}) WHERE "${column}" LIKE ${like}`

const nameOf = (root: string) => basename(root).toLowerCase()

function layFiles(): string {
  const root = mkdtempSync(join(tmpdir(), 'sbold-'))
  const files = JSON.parse(unpacked('files.json.br').toString()) as Record<string, { text?: string; base64?: string; executable?: true }>
  for (const [name, { text, base64 = '', executable }] of Object.entries(files)) {
    const path = join(root, name)
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    // A spool says of each of its pieces how long it is.
    const moved = name.endsWith('/spool') ? text : text?.replaceAll(description.root, root)
    writeFileSync(path, moved ?? Buffer.from(base64, 'base64'))
    if (executable) chmodSync(path, 0o755)
  }
  for (const folder of ['gates', 'bin']) mkdirSync(join(root, folder))
  const program = join(import.meta.dirname, 'claude.mjs')
  writeFileSync(join(root, 'bin/claude'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 })
  return root
}

function kept(name: string): Buffer {
  return readFileSync(join(import.meta.dirname, name))
}

function unpacked(name: string): Buffer {
  return brotliDecompressSync(kept(name))
}
