import { tables } from '../../db/tables.ts'
import type { Tx } from '../../kernel/storage.ts'

export interface EscalationRow {
  call_id: string
  agent_id: string
  /** The name that was called. */
  tool: string
  code: string
  at: number
  /** 0: one like it was told a moment before. 2: a later letter has counted it. */
  told: number
}

type Alike = Pick<EscalationRow, 'agent_id' | 'tool' | 'code'>

interface Tables {
  escalations: EscalationRow
  calls: { id: string; at: number; principal: string; dialect: string | null; tool: string; code: string | null; output: string }
  agents: { id: string; role: string; epic_id: string | null }
}

export function escalationStore(tx: Tx) {
  const db = tables<Tables>(tx)
  const alike = ({ agent_id, tool, code }: Alike) =>
    db.selectFrom('escalations').where('agent_id', '=', agent_id).where('tool', '=', tool).where('code', '=', code)
  return {
    call: (id: string) =>
      db.selectFrom('calls').select(['id', 'at', 'principal', 'dialect', 'tool', 'code', 'output']).where('id', '=', id).executeTakeFirst(),

    /** False when this call is known already. */
    insert: async (row: EscalationRow) => {
      const result = await db
        .insertInto('escalations')
        .values(row)
        .onConflict((oc) => oc.column('call_id').doNothing())
        .executeTakeFirst()
      return (result.numInsertedOrUpdatedRows ?? 0n) > 0n
    },
    lastTold: async (like: Alike) =>
      (await alike(like).select('at').where('told', '=', 1).orderBy('at', 'desc').limit(1).executeTakeFirst())?.at ?? null,
    /** How many were not told yet, whatever order they came in; from now on they are. */
    takeUntold: async ({ agent_id, tool, code }: Alike) => {
      const result = await db
        .updateTable('escalations')
        .set({ told: 2 })
        .where('agent_id', '=', agent_id)
        .where('tool', '=', tool)
        .where('code', '=', code)
        .where('told', '=', 0)
        .executeTakeFirst()
      return Number(result.numUpdatedRows)
    },

    /** The one that leads this epic now: the last that was made for it. */
    supervisorOf: async (epic: string) =>
      (
        await db
          .selectFrom('agents')
          .select('id')
          .where('epic_id', '=', epic)
          .where('role', '=', 'supervisor')
          .orderBy('id', 'desc')
          .limit(1)
          .executeTakeFirst()
      )?.id,
  }
}
