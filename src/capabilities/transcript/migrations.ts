import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'entries',
    up: ({ int, text, strict }) => [
      `CREATE TABLE transcript_entries (
        run_id ${text} NOT NULL, number ${int} NOT NULL, task_id ${text} NOT NULL, turn ${int} NOT NULL, kind ${text} NOT NULL,
        name ${text}, body ${text} NOT NULL, at ${int} NOT NULL, PRIMARY KEY (run_id, number)
      ) ${strict}`,
      'CREATE INDEX transcript_entries_by_task ON transcript_entries (task_id, run_id, number)',
    ],
  },
  {
    name: 'known-values',
    up: ({ known }) =>
      known('transcript_entries', 'kind', ['agent', 'thought', 'person', 'program', 'error', 'tool_call', 'tool_result', 'signalbox']),
  },
]
