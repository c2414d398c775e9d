import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'epics',
    up: ({ int, text, strict }) => [
      `CREATE TABLE epics (
        id ${text} PRIMARY KEY NOT NULL, number ${int} NOT NULL UNIQUE, project_id ${text} NOT NULL REFERENCES projects (id),
        repo_id ${text} REFERENCES repos (id), title ${text} NOT NULL, description ${text} NOT NULL, state ${text} NOT NULL,
        branch ${text} NOT NULL UNIQUE, base_branch ${text} NOT NULL, supervisor_id ${text}, lead_task_id ${text} REFERENCES tasks (id),
        supervisor_launch ${text} NOT NULL, worker_launch ${text} NOT NULL, max_workers ${int} NOT NULL, version ${int} NOT NULL,
        created_by ${text} NOT NULL, created_at ${int} NOT NULL, updated_at ${int} NOT NULL, completed_at ${int}
      ) ${strict}`,
      'CREATE INDEX epics_by_project ON epics (project_id, number)',
      'CREATE INDEX epics_by_state ON epics (state, number)',
    ],
  },
  {
    name: 'epic-notices',
    up: ({ int, text, strict }) => [
      `CREATE TABLE epic_notices (epic_id ${text} NOT NULL, what ${text} NOT NULL, at ${int} NOT NULL, PRIMARY KEY (epic_id, what)) ${strict}`,
    ],
  },
  {
    name: 'known-values',
    up: ({ known }) => [...known('epics', 'state', ['PLANNING', 'IN_PROGRESS', 'REVIEW', 'COMPLETED', 'CANCELLED'])],
  },
]
