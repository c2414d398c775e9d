import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'merge-line',
    up: ({ int, text, strict }) => [
      `CREATE TABLE merges (
        id ${text} PRIMARY KEY NOT NULL, number ${int} NOT NULL UNIQUE, repo_id ${text} NOT NULL REFERENCES repos (id), target ${text} NOT NULL,
        made_from ${text}, strategy ${text} NOT NULL, project_id ${text} NOT NULL, task_id ${text} NOT NULL REFERENCES tasks (id),
        review_id ${text} NOT NULL REFERENCES reviews (id), head_commit ${text} NOT NULL, priority ${int} NOT NULL, passed_over ${int} NOT NULL,
        state ${text} NOT NULL, built_on ${text}, built ${text}, reason ${text}, files ${text} NOT NULL, log ${text},
        submitted_by ${text} NOT NULL, submitted_at ${int} NOT NULL, began_at ${int}, ended_at ${int}
      ) ${strict}`,
      'CREATE INDEX merges_in_line ON merges (repo_id, target, state)',
      'CREATE INDEX merges_by_task ON merges (task_id, number)',
      `CREATE TABLE lines (
        repo_id ${text} NOT NULL REFERENCES repos (id), target ${text} NOT NULL, project_id ${text} NOT NULL, made_from ${text}, strategy ${text} NOT NULL, head ${text}, green ${text}, green_by ${text},
        held ${text}, behind ${int} NOT NULL, behind_reason ${text}, updated_at ${int} NOT NULL, PRIMARY KEY (repo_id, target)
      ) ${strict}`,
    ],
  },
  { name: 'merge-landing', up: ({ text }) => [`ALTER TABLE lines ADD COLUMN landing ${text}`] },
  {
    name: 'known-values',
    up: ({ known }) => [...known('merges', 'state', ['waiting', 'checking', 'landed', 'conflict', 'red', 'stuck', 'withdrawn'])],
  },
  {
    name: 'known-strategies',
    up: ({ known }) => ['merges', 'lines'].flatMap((table) => known(table, 'strategy', ['remote', 'local_if_ahead', 'local'])),
  },
  {
    name: 'merge-summary',
    up: ({ text }) => [
      `ALTER TABLE merges ADD COLUMN summary ${text}`,
      // What is in a line goes on with what its worker said of it.
      'UPDATE merges SET summary = (SELECT reviews.summary FROM reviews WHERE reviews.id = merges.review_id)',
    ],
  },
]
