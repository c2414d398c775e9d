import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import pg from 'pg'
import type { TestDaemon } from '../src/testing/daemon.ts'

const COLUMNS = 'at, type, subject, actor, project_id, task_id, audience, call_id, data'
/** Spread over as many tasks as a busy year has. */
const TASKS = 5_000

/** Puts events behind those that are there, as the database itself can make them fastest. The daemon must be down. */
export async function fill(daemon: TestDaemon, events: number, project: string): Promise<void> {
  const url = daemon.env.SIGNALBOX_DATABASE_URL
  if (url === undefined) fillSqlite(join(daemon.home, 'signalbox.db'), events, project)
  else await fillPostgres(url, events, project)
}

function fillSqlite(path: string, events: number, project: string): void {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA synchronous = OFF')
  database.exec(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${events})
    INSERT INTO events (${COLUMNS}) SELECT ${row(project, "printf('task_%036d', i % TASKS)")} FROM n`)
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  database.close()
}

async function fillPostgres(url: string, events: number, project: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`INSERT INTO events (${COLUMNS})
    SELECT ${row(project, "'task_' || lpad((i % TASKS)::text, 36, '0')")} FROM generate_series(1, ${events}) AS n (i)`)
  await client.query('VACUUM ANALYZE')
  await client.end()
}

function row(project: string, task: string): string {
  const of = task.replace('TASKS', String(TASKS))
  const data = `'{"handle":"T-1","version":2,"from":"BACKLOG","to":"IN_PROGRESS","reason":null}'`
  return `1700000000000 + i, 'task.moved', ${of}, 'agent_of_the_bench', '${project}', ${of}, 'everyone', 'call_of_the_bench', ${data}`
}
