import type { Migration } from '../kernel/capability.ts'

/** The tables that the kernel itself stands on. */
export interface CoreTables {
  meta: { name: string; value: string }
  counters: { name: string; value: number }
  events: {
    seq: number
    at: number
    type: string
    subject: string
    actor: string
    project_id: string | null
    task_id: string | null
    audience: string
    call_id: string
    data: string
  }
  calls: {
    seq: number
    id: string
    at: number
    principal: string
    principal_kind: string
    token: string | null
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
  idempotency: { principal: string; tool: string; key: string; input_hash: string; answer: string; at: number }
  refusals: { source: string; reason: string; count: number; first_at: number; last_at: number }
  mcp_sessions: {
    id: string
    token: string
    dialect: string | null
    lane: string
    initialize: string
    subscriptions: string
    at: number
    seen_at: number
  }
}

export const coreMigrations: Migration[] = [
  {
    name: 'log',
    up: ({ int, text, identity, strict, commitOrder }) => [
      `CREATE TABLE events (
        seq ${identity}, ${commitOrder} at ${int} NOT NULL, type ${text} NOT NULL, subject ${text} NOT NULL, actor ${text} NOT NULL,
        project_id ${text}, task_id ${text}, audience ${text} NOT NULL, call_id ${text} NOT NULL, data ${text} NOT NULL
      ) ${strict}`,
      'CREATE INDEX events_by_subject ON events (subject, seq)',
      'CREATE INDEX events_by_task ON events (task_id, seq)',
      ...(commitOrder ? ['CREATE INDEX events_by_commit ON events (generation, xid, seq)'] : []),
      `CREATE TABLE calls (
        seq ${identity}, ${commitOrder} id ${text} NOT NULL UNIQUE, at ${int} NOT NULL, principal ${text} NOT NULL, principal_kind ${text} NOT NULL,
        token ${text}, acting_person ${text}, lane ${text} NOT NULL, surface ${text} NOT NULL, dialect ${text},
        tool ${text} NOT NULL, outcome ${text} NOT NULL, code ${text}, input ${text} NOT NULL, output ${text} NOT NULL, duration_ms ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX calls_by_principal ON calls (principal, seq)',
      'CREATE INDEX calls_by_tool ON calls (tool, seq)',
      ...(commitOrder ? ['CREATE INDEX calls_by_commit ON calls (generation, xid, seq)'] : []),
      `CREATE TABLE counters (name ${text} PRIMARY KEY NOT NULL, value ${int} NOT NULL) ${strict}`,
      `CREATE TABLE idempotency (
        principal ${text} NOT NULL, tool ${text} NOT NULL, key ${text} NOT NULL, input_hash ${text} NOT NULL, answer ${text} NOT NULL,
        at ${int} NOT NULL, PRIMARY KEY (principal, tool, key)
      ) ${strict}`,
      'CREATE INDEX idempotency_by_age ON idempotency (at)',
      `CREATE TABLE refusals (
        source ${text} NOT NULL, reason ${text} NOT NULL, count ${int} NOT NULL, first_at ${int} NOT NULL, last_at ${int} NOT NULL,
        PRIMARY KEY (source, reason)
      ) ${strict}`,
      `CREATE TABLE mcp_sessions (
        id ${text} PRIMARY KEY NOT NULL, token ${text} NOT NULL, dialect ${text}, lane ${text} NOT NULL, initialize ${text} NOT NULL,
        at ${int} NOT NULL, seen_at ${int} NOT NULL
      ) ${strict}`,
    ],
  },
  {
    name: 'mcp-subscriptions',
    up: ({ text }) => [`ALTER TABLE mcp_sessions ADD COLUMN subscriptions ${text} NOT NULL DEFAULT '[]'`],
  },
  {
    name: 'effects',
    up: ({ int, text, strict }) => [
      `CREATE TABLE effects (
        id ${text} PRIMARY KEY NOT NULL, type ${text} NOT NULL, payload ${text} NOT NULL, queue ${text}, state ${text} NOT NULL,
        attempts ${int} NOT NULL, max_attempts ${int} NOT NULL, run_at ${int} NOT NULL, owner ${text}, epoch ${int} NOT NULL,
        lease_until ${int} NOT NULL, cut_off ${int} NOT NULL, error ${text}, call_id ${text} NOT NULL, created_at ${int} NOT NULL,
        finished_at ${int}
      ) ${strict}`,
      'CREATE INDEX effects_by_time ON effects (state, run_at)',
      'CREATE INDEX effects_in_line ON effects (queue, state, created_at, id)',
      `CREATE TABLE daemons (id ${text} PRIMARY KEY NOT NULL, workers ${text} NOT NULL, seen_at ${int} NOT NULL) ${strict}`,
    ],
  },
  {
    name: 'seals',
    up: ({ int, text, strict }) => [
      `CREATE TABLE seals (
        number ${int} PRIMARY KEY NOT NULL, at ${int} NOT NULL, previous ${text} NOT NULL, events ${text} NOT NULL, calls ${text} NOT NULL,
        rows ${text} NOT NULL, hash ${text} NOT NULL
      ) ${strict}`,
    ],
  },
  {
    // Without the order of commits in it, a long log is searched from the cursor to its end for the events of one task.
    name: 'events-in-order',
    up: ({ commitOrder }) =>
      commitOrder
        ? ['subject', 'task_id'].flatMap((column) => {
            const index = `events_by_${column.replace('_id', '')}`
            return [`DROP INDEX ${index}`, `CREATE INDEX ${index} ON events (${column}, generation, xid, seq)`]
          })
        : [],
  },
  {
    name: 'effects-of-one-host',
    up: ({ text }) => [`ALTER TABLE effects ADD COLUMN refused_by ${text}`],
  },
  { name: 'hosts-of-daemons', up: ({ text }) => [`ALTER TABLE daemons ADD COLUMN host ${text}`] },
]
