import { patiently } from '../kernel/patience.ts'
import type { Storage, Tx } from '../kernel/storage.ts'
import type { CoreTables } from './core.ts'
import { tables } from './tables.ts'

/** A 2025-era MCP session as it must be known to be taken up again after a restart. */
export interface StoredSession {
  id: string
  /** The id of the token that opened it; with any other it does not exist. */
  token: string
  dialect: string | null
  lane: string
  /** The client's initialize request, to be replayed into a new transport. */
  initialize: string
  /** The URIs it wants to hear of, as JSON. */
  subscriptions: string
}

export interface SessionStore {
  find(id: string): Promise<StoredSession | undefined>
  add(session: StoredSession): Promise<void>
  remove(id: string): Promise<void>
  subscribe(id: string, uris: string[]): Promise<void>
  /** Says that these are alive, and forgets what nobody has used for a week. */
  keep(ids: string[]): Promise<void>
}

/** Clients seldom say goodbye: without a limit one that begins anew for each call would fill the disk. */
const MOST_PER_TOKEN = 1_000
const WEEK_MS = 7 * 86_400_000

export function createSessionStore(storage: Storage, now: () => number): SessionStore {
  const write = (job: (tx: Tx) => Promise<unknown>) => patiently(() => storage.write(job))
  return {
    find: (id) =>
      patiently(() => tables<CoreTables>(storage.view).selectFrom('mcp_sessions').selectAll().where('id', '=', id).executeTakeFirst()),
    async add(session) {
      await write(async (tx) => {
        const db = tables<CoreTables>(tx)
        await db
          .insertInto('mcp_sessions')
          .values({ ...session, at: now(), seen_at: now() })
          // A fault that struck after the commit: it is there already.
          .onConflict((oc) => oc.column('id').doNothing())
          .execute()
        const ofToken = db.selectFrom('mcp_sessions').select('id').where('token', '=', session.token)
        const newestFirst = await ofToken.orderBy('seen_at', 'desc').orderBy('id', 'desc').execute()
        for (const { id } of newestFirst.slice(MOST_PER_TOKEN)) await db.deleteFrom('mcp_sessions').where('id', '=', id).execute()
      })
    },
    async remove(id) {
      await write((tx) => tables<CoreTables>(tx).deleteFrom('mcp_sessions').where('id', '=', id).execute())
    },
    async subscribe(id, uris) {
      const subscriptions = JSON.stringify(uris)
      await write((tx) => tables<CoreTables>(tx).updateTable('mcp_sessions').set({ subscriptions }).where('id', '=', id).execute())
    },
    async keep(ids) {
      await write(async (tx) => {
        const db = tables<CoreTables>(tx)
        for (let i = 0; i < ids.length; i += 100)
          await db
            .updateTable('mcp_sessions')
            .set({ seen_at: now() })
            .where('id', 'in', ids.slice(i, i + 100))
            .execute()
        await db
          .deleteFrom('mcp_sessions')
          .where('seen_at', '<', now() - WEEK_MS)
          .execute()
      })
    },
  }
}
