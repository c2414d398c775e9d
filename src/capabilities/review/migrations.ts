import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'reviews',
    up: ({ int, text, strict }) => [
      `CREATE TABLE reviews (
        id ${text} PRIMARY KEY NOT NULL, task_id ${text} NOT NULL REFERENCES tasks (id), project_id ${text} NOT NULL, round ${int} NOT NULL,
        summary ${text} NOT NULL, reviewer_prompt ${text}, requested_by ${text} NOT NULL, requested_at ${int} NOT NULL, UNIQUE (task_id, round)
      ) ${strict}`,
    ],
  },
]
