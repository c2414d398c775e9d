import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { insertion, statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Role } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { Importance } from '../agent/index.ts'

export interface LetterRow {
  id: string
  thread_id: string
  in_reply_to: string | null
  /** An agent, a person, or `system`. */
  from_id: string
  /** An agent, a person, or `human`: whoever of the people reads it first. */
  to_id: string
  project_id: string | null
  epic_id: string | null
  task_id: string | null
  subject: string
  body: string
  importance: Importance
  needs_ack: number
  /** Of sender, receiver and text: the same again is recognised by it. */
  fingerprint: string
  created_at: number
  read_at: number | null
  read_by: string | null
  acked_at: number | null
  acked_by: string | null
  /** The run, or the end of the run, that its receiver was last told of it in. */
  noticed_in: string | null
  notices: number
}

/** When an agent will be told of its letters (null: nothing is under way), and when it was last. */
export interface NoticeRow {
  agent_id: string
  due_at: number | null
  given_at: number
}

interface Tables {
  letters: LetterRow
  mail_notices: NoticeRow
  mail_rates: { sender: string; paid_until: number }
  agents: { id: string; role: Role; project_id: string | null; epic_id: string | null; task_id: string | null }
  tokens: { principal: string; ended_at: number | null }
}

type Db = Kysely<Tables>

const FIND = statement((db: Db, { id }: { id: string }) => db.selectFrom('letters').selectAll().where('id', '=', id))

const insertLetters = insertion<LetterRow>('letters')

const ALIKE = statement((db: Db, { fingerprint, since }: { fingerprint: string; since: number }) =>
  db
    .selectFrom('letters')
    .select(['id', 'created_at'])
    .where('fingerprint', '=', fingerprint)
    .where('created_at', '>', since)
    .orderBy('created_at')
    .limit(1),
)

/** In one statement: of two that read first and then write, one would send for nothing. */
const PAY = statement(
  (db: Db, { sender, now, latest, cost, first }: { sender: string; now: number; latest: number; cost: number; first: number }) =>
    db
      .insertInto('mail_rates')
      .values({ sender, paid_until: first })
      .onConflict((oc) =>
        oc.column('sender').doUpdateSet({
          paid_until: sql`CASE WHEN mail_rates.paid_until < ${now} THEN ${now} WHEN mail_rates.paid_until > ${latest} THEN ${latest} ELSE mail_rates.paid_until END + ${cost}`,
        }),
      )
      .returning('paid_until'),
)

const HOLD_NOTICE = statement((db: Db, row: { agent_id: string; given_at: number }) =>
  db
    .insertInto('mail_notices')
    .values({ agent_id: row.agent_id, given_at: row.given_at })
    .onConflict((oc) => oc.column('agent_id').doUpdateSet((eb) => ({ given_at: eb.ref('mail_notices.given_at') })))
    .returningAll(),
)

type Page = { address: string; before: string; limit: number }

const page = (db: Db, { address, before, limit }: Page) =>
  db.selectFrom('letters').selectAll().where('to_id', '=', address).where('id', '<', before).orderBy('id', 'desc').limit(limit)

const PAGES = {
  all: statement((db: Db, values: Page) => page(db, values)),
  unread: statement((db: Db, values: Page) => page(db, values).where('read_at', 'is', null)),
}

const UNREAD = statement((db: Db, { address }: { address: string }) =>
  db
    .selectFrom('letters')
    .select((eb) => eb.fn.countAll().as('n'))
    .where('to_id', '=', address)
    .where('read_at', 'is', null),
)

/** It has a task, in which it is started again, or is connected. */
const hasSomethingToDo = (eb: ExpressionBuilder<Tables & { a: Tables['agents'] }, 'a'>) =>
  eb.or([
    eb('a.task_id', 'is not', null),
    eb.exists(eb.selectFrom('tokens as t').select('t.principal').whereRef('t.principal', '=', 'a.id').where('t.ended_at', 'is', null)),
  ])

/** Unread letters that the agent was not told of in this run, and not too often altogether. */
const isNews = (agent: string, run: string, most: number) => (eb: ExpressionBuilder<Tables, 'letters'>) =>
  eb.and([
    eb('to_id', '=', agent),
    eb('read_at', 'is', null),
    eb('notices', '<', most),
    eb.or([eb('noticed_in', 'is', null), eb('noticed_in', '!=', run)]),
  ])

const READS = statement((db: Db, { id }: { id: string }) =>
  db.selectFrom('agents as a').select('a.id').where('a.id', '=', id).where(hasSomethingToDo),
)

const unreadOf = (addresses: string[], project: string | undefined) => (eb: ExpressionBuilder<Tables, 'letters'>) =>
  eb.and([eb('to_id', 'in', addresses), eb('read_at', 'is', null), ...(project ? [eb('project_id', '=', project)] : [])])

/** Sorts behind every id. */
const END = '~'

export function mailStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    find: (id: string) => FIND.first(tx, { id }),
    insert: (rows: LetterRow[]) => insertLetters(tx, rows),
    /** Whether an agent will ever look into its inbox. */
    reads: async (id: string) => (await READS.first(tx, { id })) !== undefined,
    alike: (fingerprint: string, since: number) => ALIKE.first(tx, { fingerprint, since }),

    /** Newest first. Each address is a walk along an index of its own: sorted together they would be read to the end. */
    inbox: async (addresses: string[], which: 'all' | 'unread', before: string | undefined, limit: number) => {
      const found: LetterRow[] = []
      for (const address of addresses) found.push(...(await PAGES[which].all(tx, { address, before: before ?? END, limit })))
      return found.sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit)
    },

    /** Oldest first. */
    unreadFrom: (addresses: string[], project: string | undefined, { since, id }: { since: number; id: string }, limit: number) =>
      addresses.length
        ? db
            .selectFrom('letters')
            .selectAll()
            .where(unreadOf(addresses, project))
            .where((eb) => eb.or([eb('created_at', '>', since), eb.and([eb('created_at', '=', since), eb('id', '>', id)])]))
            .orderBy('created_at')
            .orderBy('id')
            .limit(limit)
            .execute()
        : Promise.resolve([]),
    countUnread: async (addresses: string[], project: string | undefined) => {
      if (!addresses.length) return 0
      const counted = db
        .selectFrom('letters')
        .select((eb) => eb.fn.countAll().as('n'))
        .where(unreadOf(addresses, project))
      return Number((await counted.executeTakeFirstOrThrow()).n)
    },

    unread: async (addresses: string[]) => {
      let count = 0
      for (const address of addresses) count += Number((await UNREAD.first(tx, { address }))?.n ?? 0)
      return count
    },

    /** False when it was already. */
    markRead: async (id: string, by: string, now: number) => {
      const result = await db
        .updateTable('letters')
        .set({ read_at: now, read_by: by })
        .where('id', '=', id)
        .where('read_at', 'is', null)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },
    markAcked: async (id: string, by: string, now: number) => {
      const result = await db
        .updateTable('letters')
        .set({ acked_at: now, acked_by: by })
        .where('id', '=', id)
        .where('acked_at', 'is', null)
        .executeTakeFirst()
      return result.numUpdatedRows === 1n
    },

    thread: (thread: string) => db.selectFrom('letters').select('id').where('thread_id', '=', thread).limit(1).executeTakeFirst(),

    /** What one of these sent or received, oldest first. */
    partOf: (thread: string, addresses: string[], after: string, limit: number) =>
      db
        .selectFrom('letters')
        .selectAll()
        .where('thread_id', '=', thread)
        .where('id', '>', after)
        .where((eb) => eb.or([eb('to_id', 'in', addresses), eb('from_id', 'in', addresses)]))
        .orderBy('id')
        .limit(limit)
        .execute(),

    /** Up to when the letters of this sender are paid for, with these. Never believed to be later than `latest` before. */
    pay: async (sender: string, now: number, latest: number, cost: number) =>
      (await PAY.first(tx, { sender, now, latest, cost, first: now + cost }))?.paid_until ?? 0,

    /** Held until the end of the transaction: a notice that is given meanwhile would not see the letter that counts on it. */
    holdNotice: async (agent_id: string): Promise<NoticeRow> => {
      const row = await HOLD_NOTICE.first(tx, { agent_id, given_at: 0 })
      if (!row) throw new Error(`the notice of ${agent_id} is not there`)
      return row
    },
    putNotice: ({ agent_id, ...row }: NoticeRow) => db.updateTable('mail_notices').set(row).where('agent_id', '=', agent_id).execute(),

    /** Whether there are unread letters that the agent was not told of in this run, and not too often altogether. */
    hasNews: async (agent: string, run: string, most: number) =>
      (
        await db
          .selectFrom('letters')
          .select('id')
          .where(isNews(agent, run, most))
          .limit(1)
          .execute()
      ).length > 0,
    markNoticed: (agent: string, run: string, most: number) =>
      db
        .updateTable('letters')
        .set((eb) => ({ noticed_in: run, notices: eb('notices', '+', 1) }))
        .where(isNews(agent, run, most))
        .execute(),

    /** Those of a role that have something to do, or are connected. */
    ofRole: (role: Role, where: { epic_id?: string; project_id?: string }, limit: number) =>
      db
        .selectFrom('agents as a')
        .select('a.id')
        .where('a.role', '=', role)
        .$if(where.epic_id !== undefined, (rest) => rest.where('a.epic_id', '=', where.epic_id as string))
        .$if(where.project_id !== undefined, (rest) => rest.where('a.project_id', '=', where.project_id as string))
        .where(hasSomethingToDo)
        .orderBy('a.id')
        .limit(limit)
        .execute(),
  }
}
