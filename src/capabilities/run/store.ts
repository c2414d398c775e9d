import { type Kysely, sql } from 'kysely'
import type { EffectTables } from '../../db/effect-store.ts'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Approvals, Meter } from '../../ports/harness.ts'
import { LIVING_STATES, type RunState } from './schema.ts'

export interface RunRow {
  id: string
  /** Whose matter it is: who is asked where it runs, what it is told, and what comes next. */
  owner_kind: string
  owner_id: string
  task_id: string | null
  project_id: string
  agent_id: string | null
  token_id: string | null
  kind: 'agent' | 'checks'
  harness: string
  options: string
  model: string | null
  approvals: Approvals
  /** What the program itself resumes by. */
  session: string | null
  /** The daemon on whose machine it runs. */
  host: string | null
  state: RunState
  life: number
  pid: number | null
  process_started: string | null
  boot: string | null
  spool_offset: number
  /** Grows with every change of the harness's state: of two who follow one run, one is refused. */
  step: number
  harness_state: string
  /** How many inputs it was given. */
  inputs: number
  limits: string
  turns: number
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  cost_micros: number
  estimated: number
  /** Tools that it called and that have not answered. */
  open_calls: number
  /** Its turn was interrupted: it waits to be told how to go on. */
  paused: number
  heard_at: number
  stop_asked: string | null
  /** The round that it asked for; 1 of one that only reviews or leads, and has done so. It gets a moment to end by itself. 0: none. */
  reported: number
  failure: string | null
  resets_at: number | null
  ok: number | null
  exit_reason: string | null
  exit_code: number | null
  exit_signal: string | null
  exit_detail: string | null
  fingerprint: string | null
  created_at: number
  started_at: number | null
  ended_at: number | null
}

export interface InputRow {
  run_id: string
  seq: number
  data: string | null
  /** Nothing comes after it. */
  close: number
  signal: 'SIGINT' | 'SIGTERM' | null
  /** What its owner wanted said, and is told of when it has arrived. */
  message_id: string | null
  /** The answer that it is. */
  approval_id: string | null
  sent: number
}

export interface TurnUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens: number
  cost_micros: number
  /** 1 when any of it is a guess. */
  estimated: number
}

export interface TurnUsageRow extends TurnUsage {
  run_id: string
  turn: number
}

interface Tables {
  runs: RunRow
  daemons: EffectTables['daemons']
  run_inputs: InputRow
  turn_usage: TurnUsageRow
  budgets: { subject: string; meter: Meter; amount: number }
}

type Db = Kysely<Tables>

export interface Spent {
  wall_clock: number
  turns: number
  tokens: number
  cost: number
}

const LAST_OF_AGENT = statement((db: Db, { agent }: { agent: string }) =>
  db.selectFrom('runs').selectAll().where('agent_id', '=', agent).orderBy('id', 'desc').limit(1),
)

export function runStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => db.selectFrom('runs').selectAll().where('id', '=', id).executeTakeFirst(),
    insert: (row: RunRow) => db.insertInto('runs').values(row).execute(),
    update: (id: string, changes: Partial<RunRow>) => db.updateTable('runs').set(changes).where('id', '=', id).execute(),

    /**
     * False when another writer has taken that step. Writes only the columns that differ: on PostgreSQL a whole row would undo
     * a stop or a request for review that was written since `run` was read.
     */
    advance: async (run: RunRow, next: RunRow) => {
      const changed = Object.entries(next).filter(([column, value]) => value !== run[column as keyof RunRow])
      const result = await db
        .updateTable('runs')
        .set({ ...Object.fromEntries(changed), step: run.step + 1 })
        .where('id', '=', run.id)
        .where('step', '=', run.step)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    ofTask: (task: string, before: string | undefined, limit: number) =>
      db
        .selectFrom('runs')
        .selectAll()
        .where('task_id', '=', task)
        .$if(before !== undefined, (rest) => rest.where('id', '<', before as string))
        .orderBy('id', 'desc')
        .limit(limit)
        .execute(),

    lastOfAgent: (agent: string) => LAST_OF_AGENT.first(tx, { agent }),

    ofOwner: (kind: string, id: string) =>
      db.selectFrom('runs').selectAll().where('owner_kind', '=', kind).where('owner_id', '=', id).orderBy('id').execute(),

    /** Those that live on a host, to be followed. */
    livingOn: (host: string) =>
      db.selectFrom('runs').selectAll().where('state', '=', 'running').where('host', '=', host).orderBy('id').execute(),

    livingOf: (task: string) =>
      db.selectFrom('runs').selectAll().where('task_id', '=', task).where('state', 'in', LIVING_STATES).executeTakeFirst(),

    /** How many have a place, by project. */
    living: async () => {
      const rows = await db
        .selectFrom('runs')
        .select(['project_id', (eb) => eb.fn.countAll().as('n')])
        .where('state', 'in', LIVING_STATES)
        .groupBy('project_id')
        .execute()
      return new Map(rows.map((row) => [row.project_id, Number(row.n)]))
    },

    livingThere: async (host: string) => {
      const counted = db
        .selectFrom('runs')
        .select((eb) => eb.fn.countAll().as('n'))
        .where('state', 'in', LIVING_STATES)
        .where('host', '=', host)
      return Number((await counted.executeTakeFirstOrThrow()).n)
    },

    /** On how many machines there are daemons of this database: one, where it belongs to one. */
    hosts: async () => {
      const counted = db.selectFrom('daemons').select((eb) => eb.fn.count('host').distinct().as('n'))
      return Math.max(1, Number((await counted.executeTakeFirstOrThrow()).n))
    },

    /** What the runs of a task or project have used. Of those that live it is what they have used so far. */
    spent: async (where: 'task_id' | 'project_id', id: string, now: number): Promise<Spent> => {
      const row = await db
        .selectFrom('runs')
        .select([
          sql<number>`COALESCE(SUM(COALESCE(ended_at, ${now}) - started_at), 0)`.as('ms'),
          sql<number>`COALESCE(SUM(turns), 0)`.as('turns'),
          sql<number>`COALESCE(SUM(input_tokens + output_tokens), 0)`.as('tokens'),
          sql<number>`COALESCE(SUM(cost_micros), 0)`.as('micros'),
        ])
        .where(where, '=', id)
        .where('kind', '=', 'agent')
        .executeTakeFirst()
      const { ms = 0, turns = 0, tokens = 0, micros = 0 } = row ?? {}
      return { wall_clock: Number(ms), turns: Number(turns), tokens: Number(tokens), cost: Number(micros) }
    },

    livingIn: (where: 'task_id' | 'project_id', id: string) =>
      db.selectFrom('runs').selectAll().where(where, '=', id).where('state', 'in', LIVING_STATES).where('kind', '=', 'agent').execute(),

    addInput: (row: InputRow) => db.insertInto('run_inputs').values(row).execute(),
    unsent: (run: string) =>
      db.selectFrom('run_inputs').selectAll().where('run_id', '=', run).where('sent', '=', 0).orderBy('seq').execute(),
    sent: (run: string, seq: number) =>
      db.updateTable('run_inputs').set({ sent: 1 }).where('run_id', '=', run).where('seq', '=', seq).execute(),
    input: (run: string, seq: number) =>
      db.selectFrom('run_inputs').selectAll().where('run_id', '=', run).where('seq', '=', seq).executeTakeFirst(),
  }
}

export interface UsageFilter {
  task?: string
  project?: string
  run?: string
}

const agentRuns = (db: Db, { task, project, run }: UsageFilter) =>
  db
    .selectFrom('runs')
    .where('kind', '=', 'agent')
    .$if(task !== undefined, (rest) => rest.where('task_id', '=', task as string))
    .$if(project !== undefined, (rest) => rest.where('project_id', '=', project as string))
    .$if(run !== undefined, (rest) => rest.where('id', '=', run as string))

/** A server gives its sums as text. */
function numbersOf<T extends Record<string, unknown>>(sums: T): Record<keyof T, number> {
  return Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, Number(sum)])) as Record<keyof T, number>
}

export function usageStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    /** Added to what a turn had used before. */
    add: async (run_id: string, byTurn: Map<number, TurnUsage>) => {
      for (const [turn, used] of byTurn)
        await db
          .insertInto('turn_usage')
          .values({ run_id, turn, ...used })
          .onConflict((oc) =>
            oc.columns(['run_id', 'turn']).doUpdateSet({
              input_tokens: sql`turn_usage.input_tokens + excluded.input_tokens`,
              output_tokens: sql`turn_usage.output_tokens + excluded.output_tokens`,
              cached_tokens: sql`turn_usage.cached_tokens + excluded.cached_tokens`,
              cost_micros: sql`turn_usage.cost_micros + excluded.cost_micros`,
              estimated: sql`CASE WHEN excluded.estimated = 1 THEN 1 ELSE turn_usage.estimated END`,
            }),
          )
          .execute()
    },

    /** What the agents of a task, of a project or of all have used, by program. */
    byProgram: async (where: UsageFilter) => {
      const rows = await agentRuns(db, where)
        .select(['harness', 'model'])
        .select([
          sql<number>`COUNT(*)`.as('runs'),
          sql<number>`COALESCE(SUM(turns), 0)`.as('turns'),
          sql<number>`COALESCE(SUM(input_tokens), 0)`.as('input_tokens'),
          sql<number>`COALESCE(SUM(output_tokens), 0)`.as('output_tokens'),
          sql<number>`COALESCE(SUM(cached_tokens), 0)`.as('cached_tokens'),
          sql<number>`COALESCE(SUM(cost_micros), 0)`.as('cost_micros'),
          sql<number>`COALESCE(MAX(estimated), 0)`.as('estimated'),
        ])
        .groupBy(['harness', 'model'])
        .orderBy('harness')
        .orderBy('model')
        .execute()
      return rows.map(({ harness, model, ...sums }) => ({ harness, model, ...numbersOf(sums) }))
    },

    runs: (where: UsageFilter, before: string | undefined, limit: number) =>
      agentRuns(db, where)
        .selectAll()
        .$if(before !== undefined, (rest) => rest.where('id', '<', before as string))
        .orderBy('id', 'desc')
        .limit(limit)
        .execute(),

    ofRun: (run: string, limit: number) =>
      db.selectFrom('turn_usage').selectAll().where('run_id', '=', run).orderBy('turn', 'desc').limit(limit).execute(),
  }
}

export function budgetStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    of: async (subject: string): Promise<Partial<Record<Meter, number>>> => {
      const rows = await db.selectFrom('budgets').selectAll().where('subject', '=', subject).execute()
      return Object.fromEntries(rows.map((row) => [row.meter, row.amount]))
    },
    set: async (subject: string, meter: Meter, amount: number | null) => {
      await db.deleteFrom('budgets').where('subject', '=', subject).where('meter', '=', meter).execute()
      if (amount !== null) await db.insertInto('budgets').values({ subject, meter, amount }).execute()
    },
  }
}
