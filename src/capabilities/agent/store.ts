import type { Kysely } from 'kysely'
import { statement } from '../../db/statement.ts'
import { tables } from '../../db/tables.ts'
import type { Profile, Role } from '../../kernel/policy.ts'
import type { Tx } from '../../kernel/storage.ts'
import type { TokenKind } from './schema.ts'

export interface PersonRow {
  id: string
  handle: string
  name: string
  profile: Profile
  owner: number
  created_at: number
}

export interface AgentRow {
  id: string
  handle: string
  name: string
  role: Role
  profile: Profile
  project_id: string | null
  task_id: string | null
  epic_id: string | null
  /** What a person or supervisor wants of an agent that we run; whether it runs is another matter. */
  desired: 'running' | 'stopped'
  created_at: number
  updated_at: number
}

export interface TokenRow {
  id: string
  hash: string
  kind: TokenKind
  principal: string
  created_at: number
  created_by: string
  expires_at: number | null
  ended_at: number | null
  ended_why: string | null
}

/** A token with the one that it stands for. */
export interface HeldToken extends TokenRow {
  agent: Omit<AgentRow, 'created_at' | 'updated_at' | 'desired'> | undefined
  person: Omit<PersonRow, 'created_at'> | undefined
}

interface Tables {
  people: PersonRow
  agents: AgentRow
  tokens: TokenRow
  calls: { seq: number; principal: string; at: number }
}

type Db = Kysely<Tables>

type By = { value: string }

const FIND = {
  agent: {
    id: statement((db: Db, { value }: By) => db.selectFrom('agents').selectAll().where('id', '=', value)),
    handle: statement((db: Db, { value }: By) => db.selectFrom('agents').selectAll().where('handle', '=', value)),
  },
  person: {
    id: statement((db: Db, { value }: By) => db.selectFrom('people').selectAll().where('id', '=', value)),
    handle: statement((db: Db, { value }: By) => db.selectFrom('people').selectAll().where('handle', '=', value)),
  },
  token: {
    id: statement((db: Db, { value }: By) => db.selectFrom('tokens').selectAll().where('id', '=', value)),
    hash: statement((db: Db, { value }: By) => db.selectFrom('tokens').selectAll().where('hash', '=', value)),
  },
}

/** In one statement: where the server is another process, each is a message there and back. */
const HELD = {
  id: statement((db: Db, { value }: By) => heldIn(db).where('t.id', '=', value)),
  hash: statement((db: Db, { value }: By) => heldIn(db).where('t.hash', '=', value)),
}

function heldIn(db: Db) {
  return db
    .selectFrom('tokens as t')
    .leftJoin('agents as a', 'a.id', 't.principal')
    .leftJoin('people as p', 'p.id', 't.principal')
    .selectAll('t')
    .select(['a.id as a_id', 'a.handle as a_handle', 'a.name as a_name', 'a.role', 'a.profile as a_profile'])
    .select(['a.project_id', 'a.task_id', 'a.epic_id'])
    .select(['p.id as p_id', 'p.handle as p_handle', 'p.name as p_name', 'p.profile as p_profile', 'p.owner'])
}

type HeldRow = Awaited<ReturnType<typeof HELD.id.first>>

function held(row: HeldRow): HeldToken | undefined {
  if (!row) return undefined
  const { a_id, a_handle, a_name, a_profile, role, project_id, task_id, epic_id, p_id, p_handle, p_name, p_profile, owner, ...token } = row
  const agent =
    a_id === null ? undefined : { id: a_id, handle: a_handle, name: a_name, role, profile: a_profile, project_id, task_id, epic_id }
  const person = p_id === null ? undefined : { id: p_id, handle: p_handle, name: p_name, profile: p_profile, owner }
  return { ...token, agent, person } as HeldToken
}

export function agentStore(tx: Tx) {
  const db = tables<Tables>(tx)
  return {
    agent: (ref: string) => FIND.agent[byRef(ref)].first(tx, { value: ref }),
    person: (ref: string) => FIND.person[byRef(ref)].first(tx, { value: ref }),
    owner: () => db.selectFrom('people').selectAll().where('owner', '=', 1).executeTakeFirst(),
    people: () => db.selectFrom('people').selectAll().orderBy('id').execute(),
    agents: (project: string | undefined, after: string, limit: number) =>
      db
        .selectFrom('agents')
        .selectAll()
        .where('id', '>', after)
        .$if(project !== undefined, (rest) =>
          rest.where((is) => is.or([is('project_id', '=', project as string), is('project_id', 'is', null)])),
        )
        .orderBy('id')
        .limit(limit)
        .execute(),
    insertPerson: (row: PersonRow) => db.insertInto('people').values(row).execute(),
    insertAgent: (row: AgentRow) => db.insertInto('agents').values(row).execute(),

    /** Where the agent may write from now on. */
    bind: (id: string, to: { project_id: string | null; task_id: string | null; epic_id: string | null }, now: number) =>
      db
        .updateTable('agents')
        .set({ ...to, updated_at: now })
        .where('id', '=', id)
        .execute(),
    want: (id: string, desired: AgentRow['desired'], now: number) =>
      db.updateTable('agents').set({ desired, updated_at: now }).where('id', '=', id).execute(),
    /** Which epic it leads, or is at work in. */
    bindEpic: (id: string, to: { project_id: string | null; epic_id: string | null }, now: number) =>
      db
        .updateTable('agents')
        .set({ ...to, updated_at: now })
        .where('id', '=', id)
        .execute(),
    unbindTask: (taskId: string, now: number) =>
      db.updateTable('agents').set({ task_id: null, updated_at: now }).where('task_id', '=', taskId).execute(),

    token: (id: string) => FIND.token.id.first(tx, { value: id }),
    tokenByHash: (hash: string) => FIND.token.hash.first(tx, { value: hash }),
    heldToken: async (by: 'id' | 'hash', value: string) => held(await HELD[by].first(tx, { value })),
    tokens: (after: string, limit: number) =>
      db.selectFrom('tokens').selectAll().where('id', '>', after).orderBy('id').limit(limit).execute(),
    insertToken: (row: TokenRow) => db.insertInto('tokens').values(row).execute(),
    endToken: async (id: string, why: string, now: number) => {
      const result = await db
        .updateTable('tokens')
        .set({ ended_at: now, ended_why: why })
        .where('id', '=', id)
        .where('ended_at', 'is', null)
        .executeTakeFirst()
      return result.numUpdatedRows > 0n
    },
    /** Links that were used or never will be: each start and each `open` makes one. */
    dropDeadLinks: (now: number) =>
      db
        .deleteFrom('tokens')
        .where('kind', '=', 'link')
        .where((eb) => eb.or([eb('ended_at', 'is not', null), eb('expires_at', '<=', now)]))
        .execute(),
    livingTokens: (principal: string) =>
      db.selectFrom('tokens').selectAll().where('principal', '=', principal).where('ended_at', 'is', null).orderBy('id').execute(),

    /** Derived from the audit, so that reading costs nobody a write. */
    lastActive: async (principal: string) => {
      const row = await db
        .selectFrom('calls')
        .select('at')
        .where('principal', '=', principal)
        .orderBy('seq', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row?.at ?? null
    },
  }
}

function byRef(ref: string): 'id' | 'handle' {
  return ref.includes('_') ? 'id' : 'handle'
}
