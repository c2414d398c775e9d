import type { Migration } from '../../kernel/capability.ts'
import { KEPT, SETUP_STATES } from './schema.ts'

export const migrations: Migration[] = [
  {
    name: 'setups',
    up: ({ text, int, strict, known }) => [
      `CREATE TABLE setups (
        id ${text} PRIMARY KEY NOT NULL, work_id ${text} NOT NULL REFERENCES works (id), repo_id ${text} NOT NULL, project_id ${text} NOT NULL,
        task_id ${text} NOT NULL, path ${text} NOT NULL, checkout ${text} NOT NULL, head ${text} NOT NULL, kept ${text} NOT NULL, host ${text} NOT NULL, asked_by ${text} NOT NULL,
        command ${text}, state ${text} NOT NULL, how ${text}, waiting ${text} NOT NULL, reason ${text}, log ${text}, created_at ${int} NOT NULL, ended_at ${int}
      ) ${strict}`,
      'CREATE INDEX setups_by_work ON setups (work_id, id)',
      // Somebody may have worked in each worktree that is there.
      `INSERT INTO setups (id, work_id, repo_id, project_id, task_id, path, checkout, head, kept, host, asked_by, command, state, how, waiting, created_at)
        SELECT 'setup_' || id, id, repo_id, project_id, task_id, path, '*', '', 'none', coalesce(host, ''), '', NULL, 'ready', NULL, '[]', updated_at
        FROM works WHERE state = 'made' AND path IS NOT NULL`,
      `CREATE TABLE port_leases (
        machine ${text} NOT NULL, port ${int} NOT NULL, ports ${int} NOT NULL, holder ${text} NOT NULL, name ${text} NOT NULL,
        PRIMARY KEY (machine, port), UNIQUE (machine, holder)
      ) ${strict}`,
      ...known('setups', 'state', [...SETUP_STATES]),
      ...known('setups', 'kept', [...KEPT]),
    ],
  },
  {
    // They named the folder of the line, from which nobody could tell its branch. Leased anew when checks run.
    name: 'leases of lines by branch',
    up: () => ["DELETE FROM port_leases WHERE holder LIKE 'line %'"],
  },
]
