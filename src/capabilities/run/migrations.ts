import type { Migration } from '../../kernel/capability.ts'

const COLUMNS = (int: string, text: string) => `
  owner_kind ${text} NOT NULL, owner_id ${text} NOT NULL, task_id ${text}, project_id ${text} NOT NULL,
  agent_id ${text}, token_id ${text}, kind ${text} NOT NULL, harness ${text} NOT NULL, options ${text} NOT NULL,
  model ${text}, approvals ${text} NOT NULL, session ${text}, host ${text}, state ${text} NOT NULL, life ${int} NOT NULL, pid ${int},
  process_started ${text}, boot ${text}, spool_offset ${int} NOT NULL, step ${int} NOT NULL, harness_state ${text} NOT NULL, inputs ${int} NOT NULL,
  limits ${text} NOT NULL, turns ${int} NOT NULL, input_tokens ${int} NOT NULL, output_tokens ${int} NOT NULL, cached_tokens ${int} NOT NULL,
  cost_micros ${int} NOT NULL, estimated ${int} NOT NULL, open_calls ${int} NOT NULL, paused ${int} NOT NULL, heard_at ${int} NOT NULL,
  stop_asked ${text}, reported ${int} NOT NULL, failure ${text}, resets_at ${int}, ok ${int}, exit_reason ${text}, exit_code ${int},
  exit_signal ${text}, exit_detail ${text}, fingerprint ${text}, created_at ${int} NOT NULL, started_at ${int}, ended_at ${int}`

const KEPT = `project_id, agent_id, token_id, kind, harness, options, model, approvals, session, host, state, life, pid, process_started, boot,
  spool_offset, step, harness_state, inputs, limits, turns, input_tokens, output_tokens, cached_tokens, cost_micros, estimated, open_calls,
  paused, heard_at, stop_asked, reported, failure, resets_at, ok, exit_reason, exit_code, exit_signal, exit_detail, fingerprint, created_at,
  started_at, ended_at`

/** The tables themselves were made by `job`. */
export const migrations: Migration[] = [
  {
    // SQLite changes no column, and drops no table that others refer to: the three are made anew, those that refer first to go.
    name: 'owners',
    up: ({ int, text, strict, commitOrder, known }) =>
      commitOrder
        ? [
            `ALTER TABLE runs ADD COLUMN owner_kind ${text} NOT NULL DEFAULT 'job', ADD COLUMN owner_id ${text}`,
            'UPDATE runs SET owner_id = job_id',
            'ALTER TABLE runs ALTER COLUMN owner_kind DROP DEFAULT, ALTER COLUMN owner_id SET NOT NULL, ALTER COLUMN task_id DROP NOT NULL, DROP COLUMN job_id',
            'ALTER TABLE run_inputs RENAME COLUMN job_id TO message_id',
            'CREATE INDEX runs_by_owner ON runs (owner_kind, owner_id, id)',
          ]
        : [
            `CREATE TABLE runs_anew (id ${text} PRIMARY KEY NOT NULL, ${COLUMNS(int, text)}) ${strict}`,
            `INSERT INTO runs_anew (id, owner_kind, owner_id, task_id, ${KEPT}) SELECT id, 'job', job_id, task_id, ${KEPT} FROM runs`,
            `CREATE TABLE run_inputs_anew (
              run_id ${text} NOT NULL REFERENCES runs_anew (id), seq ${int} NOT NULL, data ${text}, close ${int} NOT NULL, signal ${text},
              message_id ${text}, sent ${int} NOT NULL, approval_id ${text}, PRIMARY KEY (run_id, seq)
            ) ${strict}`,
            `INSERT INTO run_inputs_anew (run_id, seq, data, close, signal, message_id, sent, approval_id)
              SELECT run_id, seq, data, close, signal, job_id, sent, approval_id FROM run_inputs`,
            `CREATE TABLE turn_usage_anew (
              run_id ${text} NOT NULL REFERENCES runs_anew (id), turn ${int} NOT NULL, input_tokens ${int} NOT NULL, output_tokens ${int} NOT NULL,
              cached_tokens ${int} NOT NULL, cost_micros ${int} NOT NULL, estimated ${int} NOT NULL, PRIMARY KEY (run_id, turn)
            ) ${strict}`,
            'INSERT INTO turn_usage_anew SELECT run_id, turn, input_tokens, output_tokens, cached_tokens, cost_micros, estimated FROM turn_usage',
            ...['run_inputs', 'turn_usage', 'runs'].map((table) => `DROP TABLE ${table}`),
            ...['runs', 'run_inputs', 'turn_usage'].map((table) => `ALTER TABLE ${table}_anew RENAME TO ${table}`),
            'CREATE INDEX runs_by_state ON runs (state, project_id)',
            'CREATE INDEX runs_by_task ON runs (task_id, id)',
            'CREATE INDEX runs_by_project ON runs (project_id, id)',
            'CREATE INDEX runs_by_agent ON runs (agent_id, id)',
            'CREATE INDEX runs_by_owner ON runs (owner_kind, owner_id, id)',
            ...known('runs', 'state', ['starting', 'running', 'ended']),
            ...known('runs', 'kind', ['agent', 'checks']),
            ...known('runs', 'approvals', ['allow', 'ask', 'deny']),
          ],
  },
]
