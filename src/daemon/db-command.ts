import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { isPostgres } from '../db/address.ts'
import { backupFile, checkFile, restoreFile, strangeValuesIn } from '../db/maintenance.ts'
import { refuseMoved } from '../db/moved.ts'
import { UsageError } from '../kernel/error.ts'
import { loadConfig } from './config.ts'
import { ensurePrivateFolder } from './home.ts'
import { type Lock, lockDatabase, lockHome } from './lock.ts'

const HELP = `signalbox db: look after the database.

  signalbox db backup [FILE]    a consistent copy, also while the daemon runs (default: $SIGNALBOX_HOME/backups/<time>.db)
  signalbox db restore FILE     put a backup in place; what was there is kept beside it. The daemon must be stopped.
  signalbox db check [FILE]     read every page and value; says what is damaged or unknown, changes nothing
  signalbox db copy URL         move to PostgreSQL: everything in the SQLite file into the empty database postgres://user@host/name.
                                Counts and hashes are compared; the file is kept as it is, and refuses from then on. The daemon must be stopped.
      --dry-run                 say what would be copied and whether the target is fit; write nothing
      --from FILE               another SQLite file, such as a backup (default: the configured one)
      --quiet                   no progress

With PostgreSQL, back up and restore with pg_dump and pg_restore: see docs/postgresql.md.`

export async function dbCommand(args: string[]): Promise<void> {
  const [verb, ...rest] = args
  if (verb === 'copy') return (await import('./copy-command.ts')).copyCommand(rest, HELP)
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options: { help: { type: 'boolean', short: 'h' } } })
  const file = positionals[1]
  const config = loadConfig(process.env)
  if (values.help || !verb) return void process.stdout.write(`${HELP}\n`)
  const { database } = config
  if (isPostgres(database)) refuseForPostgres(verb, file)
  // A file that is named can be looked at wherever its data went.
  else if (verb !== 'check' || !file) refuseMoved(database)
  switch (verb) {
    case 'backup':
      return backup(database, file ? resolve(file) : undefined, config.home)
    case 'restore':
      if (!file) throw new UsageError(`Which backup? ${known(config.home)}`)
      return restore(database, resolve(file), config.home)
    case 'check':
      return check(file ? resolve(file) : database, config.home)
    default:
      throw new UsageError(`There is no "signalbox db ${verb}".\n\n${HELP}`)
  }
}

/** What these verbs do to a file PostgreSQL's own tools do to a server. A file can still be looked at by its name. */
function refuseForPostgres(verb: string, file: string | undefined): void {
  const instead: Record<string, string> = {
    backup: 'back it up with: pg_dump --format=custom --file=FILE "$SIGNALBOX_DATABASE_URL"',
    restore: 'stop every daemon and bring a dump back into an empty database with: pg_restore --no-owner --dbname=URL FILE',
    check: 'ask the running daemon with: signalbox system health --deep',
  }
  if (!Object.hasOwn(instead, verb) || (verb === 'check' && file)) return
  throw new UsageError(`SIGNALBOX_DATABASE_URL names PostgreSQL: ${instead[verb]}`)
}

function backup(path: string, target: string | undefined, home: string): void {
  const folder = join(home, 'backups')
  if (!target) for (const path of [home, folder]) ensurePrivateFolder(path)
  const file = target ?? join(folder, `${stamp()}.db`)
  try {
    timed(`Copying ${path}`, () => backupFile(path, file))
  } catch (error) {
    throw new UsageError(`No backup was made: ${(error as Error).message}`)
  }
  process.stdout.write(`Backed up to ${file}\nBring it back with: signalbox db restore ${file}\n`)
}

async function restore(path: string, source: string, home: string): Promise<void> {
  const { capabilities } = await import('../capabilities/index.ts')
  const migrations = capabilities.map(({ name, migrations = [] }) => ({ owner: name, migrations }))
  if (!existsSync(source)) throw new UsageError(`There is no file ${source}. ${known(home)}`)
  ensurePrivateFolder(home)
  const lock = lockHome(home, 'restore a backup')
  let databaseLock: Lock | undefined
  try {
    databaseLock = lockDatabase(path)
    const aside = timed(`Restoring ${source}`, () => restoreFile(path, source, stamp(), migrations))
    process.stdout.write(
      `Restored ${source}.\n${aside ? `What was there before is kept at ${aside}\n` : ''}Start the daemon again with: signalbox serve\n`,
    )
  } catch (error) {
    throw new UsageError(`Nothing was changed: ${(error as Error).message}`)
  } finally {
    databaseLock?.release()
    lock.release()
  }
}

async function check(path: string, home: string): Promise<void> {
  if (!existsSync(path)) throw new UsageError(`There is no database at ${path}.`)
  const { capabilities } = await import('../capabilities/index.ts')
  const values = Object.assign({}, ...capabilities.map((capability) => capability.values ?? {}))
  const { damage, strange } = timed(`Reading every page of ${path}`, () => {
    const damage = checkFile(path).problems
    return { damage, strange: damage.length ? [] : strangeValuesIn(path, values) }
  })
  if (!damage.length && !strange.length) return void process.stdout.write(`${path} is sound.\n`)
  process.stdout.write(damage.length ? sayDamaged(path, damage, home) : sayStrange(path, strange))
  process.exitCode = 1
}

function sayDamaged(path: string, problems: string[], home: string): string {
  return `${path} is damaged:\n${indented(problems)}The file was left as it is. ${known(home)}\n`
}

/** They are no damage: nothing is lost, and a backup may have them too. */
function sayStrange(path: string, problems: string[]): string {
  return `${path} is whole, but has values that nobody knows:
${indented(problems)}The file was left as it is. Lists name such rows as unreadable. If a newer Signalbox wrote them, update this one. Otherwise stop the
daemon, make a backup and put them right, as with: sqlite3 ${path} "UPDATE jobs SET state = 'failed' WHERE state = 'weird'"
`
}

function indented(lines: string[]): string {
  return lines.map((line) => `  ${line}\n`).join('')
}

/** Nothing else runs meanwhile, so a person is told before it begins, and how long it took. */
function timed<T>(what: string, work: () => T): T {
  if (!process.stderr.isTTY) return work()
  const began = performance.now()
  process.stderr.write(`${what}…`)
  try {
    return work()
  } finally {
    process.stderr.write(` ${((performance.now() - began) / 1_000).toFixed(1)} s\n`)
  }
}

function known(home: string): string {
  const folder = join(home, 'backups')
  const files = existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith('.db'))
        .sort()
        .slice(-3)
    : []
  return files.length
    ? `Newest backups: ${files.map((name) => join(folder, name)).join(', ')}`
    : 'There are no backups yet; make one with: signalbox db backup'
}

function stamp(): string {
  return new Date().toISOString().replace(/[:.]/g, '-')
}
