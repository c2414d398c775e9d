import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'projects-and-repos',
    up: ({ int, text, strict }) => [
      `CREATE TABLE projects (
        id ${text} PRIMARY KEY NOT NULL, handle ${text} NOT NULL UNIQUE, name ${text} NOT NULL, description ${text} NOT NULL,
        created_at ${int} NOT NULL, updated_at ${int} NOT NULL
      ) ${strict}`,
      `CREATE TABLE repos (
        id ${text} PRIMARY KEY NOT NULL, handle ${text} NOT NULL UNIQUE, project_id ${text} NOT NULL REFERENCES projects (id),
        path ${text} NOT NULL UNIQUE, base_branch ${text} NOT NULL, remote ${text}, checks ${text}, head ${text}, synced_at ${int} NOT NULL, created_at ${int} NOT NULL
      ) ${strict}`,
      'CREATE INDEX repos_by_project ON repos (project_id, id)',
      `CREATE TABLE open_projects (token ${text} PRIMARY KEY NOT NULL, project_id ${text} NOT NULL REFERENCES projects (id)) ${strict}`,
    ],
  },
  {
    name: 'removal',
    up: ({ int, text }) => [
      `ALTER TABLE projects ADD COLUMN deleted_at ${int}`,
      `ALTER TABLE repos ADD COLUMN removed_from ${text}`,
      'CREATE INDEX repos_removed ON repos (removed_from)',
    ],
  },
  {
    name: 'setup',
    up: ({ text }) => [
      `ALTER TABLE repos ADD COLUMN setup ${text}`,
      `ALTER TABLE repos ADD COLUMN files ${text} NOT NULL DEFAULT '[]'`,
      `ALTER TABLE repos ADD COLUMN check_files ${text} NOT NULL DEFAULT '[]'`,
    ],
  },
  {
    name: 'cleanup-and-dev',
    up: ({ text }) => [`ALTER TABLE repos ADD COLUMN cleanup ${text}`, `ALTER TABLE repos ADD COLUMN dev ${text}`],
  },
]
