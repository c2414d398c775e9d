import { sql } from 'kysely'
import { heldInLine } from '../../db/effect-store.ts'
import type { EngineFacts } from '../../db/engine.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

export const TASK = 'signalbox_effect'

/**
 * A job for each of these effects, due when the effect is, or when its lease ends. An effect has one job that counts: a job that
 * is under way loses its key to the new one and is left alone, one that still waits is moved. Its flags are the daemons that leave
 * it alone, as long as there is one that has not refused it.
 */
export async function addJobs(tx: Tx, ids: string[]): Promise<void> {
  await sql`
    SELECT graphile_worker.add_job(${sql.lit(TASK)}, json_build_object('id', id), job_key := id,
      run_at := CASE WHEN state = 'running' THEN to_timestamp((lease_until + 1) / 1000.0) WHEN run_at > 0 THEN to_timestamp(run_at / 1000.0)
        ELSE least(to_timestamp(created_at / 1000.0), clock_timestamp()) END,
      flags := CASE WHEN EXISTS (SELECT 1 FROM daemons AS d WHERE NOT refused_by::jsonb ? d.id)
        THEN ARRAY(SELECT jsonb_array_elements_text(refused_by::jsonb)) END)
    FROM effects WHERE id = ANY(${ids}::text[]) AND state IN ('waiting', 'running') ORDER BY created_at, id`.execute(tables(tx))
}

/**
 * Jobs that nobody will ever end: those of dead pools, those of pools that nobody knows (a new one may not have said its name yet,
 * so they have to be of some age), and those that are used up.
 */
export async function removeOrphans(tx: Tx, pools: { dead: string[]; living: string[] }, ageMs: number): Promise<void> {
  const found = await sql<{ id: number; locked_by: string | null }>`
    SELECT id, locked_by FROM graphile_worker.jobs WHERE task_identifier = ${TASK} AND (locked_by = ANY(${pools.dead}::text[])
      OR (locked_by <> ALL(${pools.living}::text[]) AND locked_at < clock_timestamp() - ${ageMs}::bigint * interval '1 millisecond')
      OR (locked_at IS NULL AND attempts >= max_attempts))`.execute(tables(tx))
  if (!found.rows.length) return
  const locking = [...new Set(found.rows.flatMap((job) => job.locked_by ?? []))]
  await sql`SELECT graphile_worker.force_unlock_workers(${locking}::text[])`.execute(tables(tx))
  await sql`SELECT graphile_worker.complete_jobs(${found.rows.map((job) => job.id)}::bigint[])`.execute(tables(tx))
}

/** Every effect that is to be done and has no job: it was copied from elsewhere, or its job was lost with a daemon. */
export async function withoutJob(tx: Tx, facts: EngineFacts): Promise<string[]> {
  const found = await sql<{ id: string }>`
    SELECT e.id FROM effects AS e WHERE e.state IN ('waiting', 'running')
      AND NOT EXISTS (SELECT 1 FROM graphile_worker.jobs AS j WHERE j.key = e.id AND j.attempts < j.max_attempts)
      AND NOT ${heldInLine(facts)} LIMIT 1000`.execute(tables(tx))
  return found.rows.map((row) => row.id)
}
