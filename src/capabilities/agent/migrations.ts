import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'identity',
    up: ({ int, text, strict }) => [
      `CREATE TABLE people (
        id ${text} PRIMARY KEY NOT NULL, handle ${text} NOT NULL UNIQUE, name ${text} NOT NULL, profile ${text} NOT NULL,
        owner ${int} NOT NULL, created_at ${int} NOT NULL
      ) ${strict}`,
      `CREATE TABLE agents (
        id ${text} PRIMARY KEY NOT NULL, handle ${text} NOT NULL UNIQUE, name ${text} NOT NULL, role ${text} NOT NULL, profile ${text} NOT NULL,
        project_id ${text}, task_id ${text}, epic_id ${text}, created_at ${int} NOT NULL, updated_at ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX agents_by_task ON agents (task_id)',
      `CREATE TABLE tokens (
        id ${text} PRIMARY KEY NOT NULL, hash ${text} NOT NULL UNIQUE, kind ${text} NOT NULL, principal ${text} NOT NULL,
        created_at ${int} NOT NULL, created_by ${text} NOT NULL, expires_at ${int}, ended_at ${int}, ended_why ${text}
      ) ${strict}`,
      'CREATE INDEX tokens_by_principal ON tokens (principal)',
    ],
  },
  { name: 'agent-desired', up: ({ text }) => [`ALTER TABLE agents ADD COLUMN desired ${text} NOT NULL DEFAULT 'running'`] },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('people', 'profile', ['viewer', 'planner', 'pair_worker', 'operator', 'maintainer']),
      ...known('agents', 'role', ['supervisor', 'orchestrator', 'worker', 'reviewer', 'planner']),
      ...known('agents', 'profile', ['viewer', 'planner', 'pair_worker', 'operator', 'maintainer']),
      ...known('agents', 'desired', ['running', 'stopped']),
      ...known('tokens', 'kind', ['person', 'agent', 'link']),
    ],
  },
]
