import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { capabilities } from '../capabilities/index.ts'
import { isPostgres } from '../db/address.ts'
import { type CopiedTable, type CopyOptions, copyToPostgres, type PlannedTable, planCopy } from '../db/copy.ts'
import { scrubbed, withoutPassword } from '../db/copy-target.ts'
import { UsageError } from '../kernel/error.ts'
import { type Config, loadConfig } from './config.ts'
import { ensurePrivateFolder } from './home.ts'
import { type Lock, lockDatabase, lockHome } from './lock.ts'

const FLAGS = {
  'dry-run': { type: 'boolean' },
  from: { type: 'string' },
  quiet: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const

export async function copyCommand(args: string[], help: string): Promise<void> {
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options: FLAGS })
  if (values.help) return void process.stdout.write(`${help}\n`)
  const config = loadConfig(process.env)
  const target = targetOf(positionals, config)
  const options = { source: sourceOf(values.from, config), target, migrations: capabilities.map(migrationsOf) }
  await whileStopped(config.home, options.source, async () => {
    if (values['dry-run']) return sayPlan(options, await planCopy(options))
    const onTable = values.quiet || !process.stderr.isTTY ? undefined : sayProgress
    sayCopied(options, await copyToPostgres({ ...options, onTable }), config)
  }).catch((error) => Promise.reject(speaking(error, target)))
}

function targetOf([url, ...more]: string[], { database }: Config): string {
  const target = url ?? (isPostgres(database) ? database : undefined)
  if (!target || more.length || !isPostgres(target))
    throw new UsageError('Copy to which database? signalbox db copy postgres://user@host/name [--dry-run]')
  return target
}

function sourceOf(from: string | undefined, { database, home }: Config): string {
  if (!from && isPostgres(database))
    throw new UsageError(
      `SIGNALBOX_DATABASE_URL names PostgreSQL already, so say which SQLite file to copy, perhaps: --from ${join(home, 'signalbox.db')}`,
    )
  const source = from ? resolve(from) : database
  if (!existsSync(source)) throw new UsageError(`There is no database at ${source}. Name the file with --from.`)
  return source
}

function migrationsOf({ name, migrations = [] }: (typeof capabilities)[number]) {
  return { owner: name, migrations }
}

/** What a daemon wrote after the copy was taken would be missing from it. */
async function whileStopped(home: string, path: string, work: () => Promise<void>): Promise<void> {
  ensurePrivateFolder(home)
  const lock = lockHome(home, 'copy its database')
  let databaseLock: Lock | undefined
  try {
    databaseLock = lockDatabase(path)
    await work()
  } finally {
    databaseLock?.release()
    lock.release()
  }
}

function sayPlan({ source, target }: CopyOptions, tables: PlannedTable[]): void {
  const lines = tables.map(({ table, rows }) => [table, String(rows)])
  process.stdout.write(
    `${inTable(['table', 'rows'], lines)}\n${source} can be copied: ${withoutPassword(target)} is reachable, empty and fit. Nothing was written.\n`,
  )
}

function sayProgress({ table, rows }: PlannedTable): void {
  process.stderr.write(`${table}: ${rows} rows\n`)
}

function sayCopied({ source, target }: CopyOptions, tables: CopiedTable[], { home }: Config): void {
  const lines = tables.map(({ table, rows, hash }) => [table, String(rows), hash.slice(0, 12), 'yes'])
  process.stdout.write(`${inTable(['table', 'rows', 'hash', 'equal'], lines)}
Copied ${source} to ${withoutPassword(target)}. Start the daemon there with:

  SIGNALBOX_HOME=${home} SIGNALBOX_DATABASE_URL='${withoutPassword(target)}' signalbox serve

Tokens, cursors and MCP sessions go on working. ${source} was left as it is, as a backup. It refuses from now on: a start
or a backup that forgets the variable says where the data went. To go back to it, remove ${source}.moved.
`)
}

function inTable(head: string[], lines: string[][]): string {
  const widths = head.map((title, i) => Math.max(title.length, ...lines.map((line) => line[i]?.length ?? 0)))
  const shown = (line: string[]) =>
    line.map((cell, i) => (head[i] === 'rows' ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
  return [head, ...lines].map((line) => `${shown(line).join('  ').trimEnd()}\n`).join('')
}

function speaking(error: unknown, target: string): Error {
  const { message } = error as Error
  return new UsageError(scrubbed(error instanceof UsageError ? message : `Nothing was copied: ${message}`, target))
}
