import { tables } from '../../db/tables.ts'
import { answerOf } from '../../kernel/audit.ts'
import type { Tx } from '../../kernel/storage.ts'

export interface CallRow {
  seq: number
  id: string
  at: number
  principal: string
  principal_kind: string
  acting_person: string | null
  lane: string
  surface: string
  dialect: string | null
  tool: string
  outcome: string
  code: string | null
  input: string
  output: string
  duration_ms: number
}

export interface DecisionRow {
  id: string
  author: string
  task_id: string | null
  title: string
  body: string
  at: number
}

interface Tables {
  settings: { key: string; value: string; changed_at: number; changed_by: string }
  decisions: DecisionRow
  calls: CallRow
}

export interface CallFilter {
  principal?: string
  tool?: string
  outcomes?: string[]
  exceptKind?: string
}

export function systemStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    settings: () => db.selectFrom('settings').selectAll().orderBy('key').execute(),
    putSetting: (key: string, value: unknown, changed_by: string, changed_at: number) => {
      const row = { value: JSON.stringify(value), changed_by, changed_at }
      return db
        .insertInto('settings')
        .values({ key, ...row })
        .onConflict((oc) => oc.column('key').doUpdateSet(row))
        .execute()
    },
    dropSetting: (key: string) => db.deleteFrom('settings').where('key', '=', key).execute(),

    insertDecision: (row: DecisionRow) => db.insertInto('decisions').values(row).execute(),
    decisions: async (ids: string[]) => (ids.length ? db.selectFrom('decisions').selectAll().where('id', 'in', ids).execute() : []),

    /** What a call said after it had waited stands in the place of what it had begun. */
    calls: async (filter: CallFilter, before: number, limit: number): Promise<CallRow[]> => {
      let query = db
        .selectFrom('calls')
        .selectAll()
        .where('seq', '<', before)
        .where('outcome', '!=', 'answered')
        .orderBy('seq', 'desc')
        .limit(limit)
      if (filter.principal) query = query.where('principal', '=', filter.principal)
      if (filter.tool) query = query.where('tool', '=', filter.tool)
      if (filter.outcomes) query = query.where('outcome', 'in', filter.outcomes)
      if (filter.exceptKind) query = query.where('principal_kind', '!=', filter.exceptKind)
      const rows = await query.execute()
      if (!rows.length) return rows
      const answers = await db
        .selectFrom('calls')
        .select(['id', 'output', 'duration_ms'])
        .where(
          'id',
          'in',
          rows.map(({ id }) => answerOf(id)),
        )
        .execute()
      const answered = new Map(answers.map(({ id, ...answer }) => [id, answer]))
      return rows.map((row) => ({ ...row, ...answered.get(answerOf(row.id)) }))
    },
  }
}

/** What the kernel's settings are loaded from. */
export async function storedSettings(view: Tx): Promise<Record<string, unknown>> {
  const rows = await systemStore(view).settings()
  return Object.fromEntries(rows.map((row) => [row.key, JSON.parse(row.value)]))
}
