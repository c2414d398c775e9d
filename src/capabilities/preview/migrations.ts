import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'previews',
    up: ({ int, text, strict, known }) => [
      `CREATE TABLE previews (
        id ${text} PRIMARY KEY NOT NULL, work_id ${text} NOT NULL REFERENCES works (id), repo_id ${text} NOT NULL, project_id ${text} NOT NULL,
        task_id ${text} NOT NULL REFERENCES tasks (id), command ${text} NOT NULL, state ${text} NOT NULL, host ${text}, first_port ${int},
        last_port ${int}, silent_at ${int}, port ${int}, reason ${text}, log ${text}, started_by ${text} NOT NULL, stop_asked_at ${int}, started_at ${int} NOT NULL,
        ended_at ${int}
      ) ${strict}`,
      'CREATE INDEX previews_by_task ON previews (task_id, id)',
      'CREATE INDEX previews_by_state ON previews (state, host)',
      ...known('previews', 'state', ['starting', 'ready', 'ended', 'failed']),
    ],
  },
]
