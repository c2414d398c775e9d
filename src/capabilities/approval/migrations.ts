import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'approvals',
    up: ({ int, text, strict }) => [
      `CREATE TABLE approvals (
        id ${text} PRIMARY KEY NOT NULL, number ${int} NOT NULL UNIQUE, project_id ${text} NOT NULL, task_id ${text} NOT NULL REFERENCES tasks (id),
        run_id ${text} NOT NULL, agent_id ${text}, kind ${text} NOT NULL, request ${text} NOT NULL, name ${text} NOT NULL, input ${text} NOT NULL,
        input_hash ${text} NOT NULL, state ${text} NOT NULL, message ${text}, delivered ${int} NOT NULL, asked_at ${int} NOT NULL,
        expires_at ${int} NOT NULL, decided_by ${text}, decided_at ${int}
      ) ${strict}`,
      'CREATE INDEX approvals_by_state ON approvals (state, task_id)',
      'CREATE INDEX approvals_by_run ON approvals (run_id, delivered)',
      'CREATE INDEX approvals_by_task ON approvals (task_id, number)',
    ],
  },
  {
    name: 'known-values',
    up: ({ known }) => [...known('approvals', 'state', ['pending', 'allowed', 'denied', 'expired', 'withdrawn'])],
  },
]
