import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'works',
    up: ({ int, text, strict }) => [
      `CREATE TABLE works (
        id ${text} PRIMARY KEY NOT NULL, task_id ${text} NOT NULL UNIQUE REFERENCES tasks (id), repo_id ${text} NOT NULL REFERENCES repos (id),
        project_id ${text} NOT NULL REFERENCES projects (id), name ${text} NOT NULL UNIQUE, path ${text}, branch ${text} NOT NULL,
        base_branch ${text} NOT NULL, base_commit ${text}, strategy ${text} NOT NULL, state ${text} NOT NULL,
        created_at ${int} NOT NULL, updated_at ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX works_by_project ON works (project_id, id)',
    ],
  },
  { name: 'work-base-from', up: ({ text }) => [`ALTER TABLE works ADD COLUMN base_from ${text}`] },
  { name: 'work-host', up: ({ text }) => [`ALTER TABLE works ADD COLUMN host ${text}`] },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('works', 'state', ['planned', 'made', 'removed']),
      ...known('works', 'strategy', ['remote', 'local_if_ahead', 'local']),
    ],
  },
]
