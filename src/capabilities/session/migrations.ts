import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'sessions',
    up: ({ int, text, strict }) => [
      `CREATE TABLE sessions (
        id ${text} PRIMARY KEY NOT NULL, task_id ${text} NOT NULL REFERENCES tasks (id), project_id ${text} NOT NULL, agent_id ${text} NOT NULL,
        token_id ${text}, program ${text} NOT NULL, name ${text} NOT NULL, host ${text}, state ${text} NOT NULL, reason ${text},
        prompt ${text} NOT NULL, prompt_detail ${text}, message ${text}, attach ${text}, last_screen ${text}, opened_by ${text} NOT NULL,
        close_asked_at ${int}, opened_at ${int} NOT NULL, closed_at ${int}
      ) ${strict}`,
      'CREATE INDEX sessions_by_task ON sessions (task_id, id)',
      'CREATE INDEX sessions_by_state ON sessions (state, host)',
    ],
  },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('sessions', 'state', ['opening', 'open', 'closed', 'lost']),
      ...known('sessions', 'prompt', ['none', 'waiting', 'needs_input', 'sent', 'not_verified', 'failed']),
    ],
  },
]
