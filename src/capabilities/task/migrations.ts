import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'tasks',
    up: ({ int, text, strict }) => [
      `CREATE TABLE tasks (
        id ${text} PRIMARY KEY NOT NULL, number ${int} NOT NULL UNIQUE, project_id ${text} NOT NULL REFERENCES projects (id),
        title ${text} NOT NULL, description ${text} NOT NULL, status ${text} NOT NULL, task_type ${text} NOT NULL, priority ${int} NOT NULL,
        acceptance_criteria ${text} NOT NULL, base_branch ${text}, parent_id ${text} REFERENCES tasks (id), assignee_id ${text},
        closed_reason ${text}, version ${int} NOT NULL, created_by ${text} NOT NULL, created_at ${int} NOT NULL, updated_at ${int} NOT NULL,
        status_changed_at ${int} NOT NULL, deleted_at ${int}
      ) ${strict}`,
      'CREATE INDEX tasks_by_project ON tasks (project_id, number)',
      'CREATE INDEX tasks_by_parent ON tasks (parent_id)',
      `CREATE TABLE task_dependencies (
        task_id ${text} NOT NULL REFERENCES tasks (id), blocked_by ${text} NOT NULL REFERENCES tasks (id), PRIMARY KEY (task_id, blocked_by)
      ) ${strict}`,
      'CREATE INDEX task_dependencies_by_blocker ON task_dependencies (blocked_by)',
      `CREATE TABLE task_notes (
        id ${text} PRIMARY KEY NOT NULL, task_id ${text} NOT NULL REFERENCES tasks (id), author ${text} NOT NULL, body ${text} NOT NULL, at ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX task_notes_by_task ON task_notes (task_id, id)',
      `CREATE TABLE plans (
        id ${text} PRIMARY KEY NOT NULL, project_id ${text} NOT NULL REFERENCES projects (id), proposed_by ${text} NOT NULL, proposal ${text} NOT NULL,
        status ${text} NOT NULL, task_ids ${text} NOT NULL, created_at ${int} NOT NULL, decided_at ${int}, decided_by ${text}
      ) ${strict}`,
    ],
  },
  {
    name: 'task-epics',
    up: ({ int, text }) => [
      `ALTER TABLE tasks ADD COLUMN epic_id ${text}`,
      `ALTER TABLE tasks ADD COLUMN lead ${int} NOT NULL DEFAULT 0`,
      'CREATE INDEX tasks_by_epic ON tasks (epic_id, number)',
    ],
  },
  {
    name: 'task-reviews',
    up: ({ text }) => [`ALTER TABLE tasks ADD COLUMN reviews_task_id ${text}`, 'CREATE INDEX tasks_by_reviewed ON tasks (reviews_task_id)'],
  },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('tasks', 'status', ['BACKLOG', 'IN_PROGRESS', 'REVIEW', 'DONE']),
      ...known('tasks', 'task_type', ['AUTO', 'PAIR']),
      ...known('plans', 'status', ['proposed', 'accepted', 'rejected']),
    ],
  },
]
