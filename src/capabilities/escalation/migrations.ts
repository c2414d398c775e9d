import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'escalations',
    up: ({ int, text, strict }) => [
      `CREATE TABLE escalations (
        call_id ${text} PRIMARY KEY NOT NULL, agent_id ${text} NOT NULL, tool ${text} NOT NULL, code ${text} NOT NULL, at ${int} NOT NULL, told ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX escalations_alike ON escalations (agent_id, tool, code, at)',
    ],
  },
]
