import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import { BIN } from '../src/testing/daemon.ts'
import type { World } from './ground.ts'

export const ROOT = join(dirname(BIN), '..')

/** What the figures were measured on: without it they say nothing. */
export async function describeMachine(world: World, loadBefore: number[]): Promise<Record<string, string>> {
  const load = (values: number[]) => values.map((value) => value.toFixed(2)).join(' ')
  return {
    processor: `${cpus()[0]?.model.trim() ?? 'unknown'}, ${cpus().length} cores`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${process.platform} ${release()}, ${process.arch}`,
    node: process.version,
    SQLite: sqliteVersion(),
    ...(world.options.engines.includes('postgres') ? { PostgreSQL: await postgresVersion(world) } : {}),
    'MCP SDK': sdkVersion(),
    commit: git('rev-parse', '--short', 'HEAD'),
    'load before': `${load(loadBefore)} (1, 5, 15 minutes)`,
    'load after': load(loadavg()),
  }
}

function sqliteVersion(): string {
  const database = new DatabaseSync(':memory:')
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as { version: string }
  database.close()
  return `${version}, WAL, synchronous = FULL`
}

async function postgresVersion(world: World): Promise<string> {
  const client = new pg.Client({ connectionString: (await world.cluster()).url('postgres') })
  await client.connect()
  const { rows } = await client.query('SHOW server_version').finally(() => client.end())
  return `${rows[0].server_version}, on this machine too, fsync and synchronous_commit on`
}

/** Pinned exactly, so the manifest tells. */
function sdkVersion(): string {
  const manifest = readFileSync(join(ROOT, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { dependencies: Record<string, string> }).dependencies['@modelcontextprotocol/server'] as string
}

function git(...args: string[]): string {
  try {
    return execFileSync('git', args, { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}
