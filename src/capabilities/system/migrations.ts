import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'settings-and-decisions',
    up: ({ int, text, strict }) => [
      `CREATE TABLE settings (key ${text} PRIMARY KEY NOT NULL, value ${text} NOT NULL, changed_at ${int} NOT NULL, changed_by ${text} NOT NULL) ${strict}`,
      `CREATE TABLE decisions (
        id ${text} PRIMARY KEY NOT NULL, author ${text} NOT NULL, task_id ${text}, title ${text} NOT NULL, body ${text} NOT NULL, at ${int} NOT NULL
      ) ${strict}`,
    ],
  },
]
