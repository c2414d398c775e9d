import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'jobs-and-runs',
    up: ({ int, text, strict }) => [
      `CREATE TABLE jobs (
        id ${text} PRIMARY KEY NOT NULL, number ${int} NOT NULL UNIQUE, task_id ${text} NOT NULL REFERENCES tasks (id), project_id ${text} NOT NULL,
        action ${text} NOT NULL, arguments ${text} NOT NULL, state ${text} NOT NULL, code ${text}, reason ${text}, priority ${int} NOT NULL,
        submitted_by ${text} NOT NULL, lives ${int} NOT NULL, run_id ${text}, not_before ${int} NOT NULL, cancel_asked_at ${int},
        created_at ${int} NOT NULL, started_at ${int}, ended_at ${int}
      ) ${strict}`,
      'CREATE INDEX jobs_in_line ON jobs (state, priority, number)',
      'CREATE INDEX jobs_by_task ON jobs (task_id, number)',
      `CREATE TABLE runs (
        id ${text} PRIMARY KEY NOT NULL, job_id ${text} NOT NULL REFERENCES jobs (id), task_id ${text} NOT NULL, project_id ${text} NOT NULL,
        agent_id ${text}, token_id ${text}, kind ${text} NOT NULL, harness ${text} NOT NULL, options ${text} NOT NULL,
        model ${text}, approvals ${text} NOT NULL, session ${text}, host ${text}, state ${text} NOT NULL, life ${int} NOT NULL, pid ${int}, process_started ${text}, boot ${text},
        spool_offset ${int} NOT NULL, step ${int} NOT NULL, harness_state ${text} NOT NULL, inputs ${int} NOT NULL,
        limits ${text} NOT NULL, turns ${int} NOT NULL, input_tokens ${int} NOT NULL, output_tokens ${int} NOT NULL, cached_tokens ${int} NOT NULL,
        cost_micros ${int} NOT NULL, estimated ${int} NOT NULL, open_calls ${int} NOT NULL, paused ${int} NOT NULL, heard_at ${int} NOT NULL,
        stop_asked ${text}, reported ${int} NOT NULL, failure ${text}, resets_at ${int}, ok ${int}, exit_reason ${text}, exit_code ${int},
        exit_signal ${text}, exit_detail ${text}, fingerprint ${text}, created_at ${int} NOT NULL, started_at ${int}, ended_at ${int}
      ) ${strict}`,
      'CREATE INDEX runs_by_state ON runs (state, project_id)',
      'CREATE INDEX runs_by_task ON runs (task_id, id)',
      'CREATE INDEX runs_by_project ON runs (project_id, id)',
      `CREATE TABLE run_inputs (
        run_id ${text} NOT NULL REFERENCES runs (id), seq ${int} NOT NULL, data ${text}, close ${int} NOT NULL, signal ${text}, job_id ${text}, sent ${int} NOT NULL,
        PRIMARY KEY (run_id, seq)
      ) ${strict}`,
      `CREATE TABLE budgets (
        subject ${text} NOT NULL, meter ${text} NOT NULL, amount ${int} NOT NULL, PRIMARY KEY (subject, meter)
      ) ${strict}`,
    ],
  },
  {
    name: 'turn-usage',
    up: ({ int, text, strict }) => [
      `CREATE TABLE turn_usage (
        run_id ${text} NOT NULL REFERENCES runs (id), turn ${int} NOT NULL, input_tokens ${int} NOT NULL, output_tokens ${int} NOT NULL,
        cached_tokens ${int} NOT NULL, cost_micros ${int} NOT NULL, estimated ${int} NOT NULL, PRIMARY KEY (run_id, turn)
      ) ${strict}`,
    ],
  },
  { name: 'answers-that-arrive', up: ({ text }) => [`ALTER TABLE run_inputs ADD COLUMN approval_id ${text}`] },
  { name: 'runs-by-agent', up: () => ['CREATE INDEX runs_by_agent ON runs (agent_id, id)'] },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('jobs', 'state', ['queued', 'running', 'succeeded', 'failed', 'cancelled']),
      ...known('jobs', 'action', ['start_agent', 'stop_agent', 'message_agent', 'interrupt_agent', 'resume_agent', 'run_checks']),
      ...known('runs', 'state', ['starting', 'running', 'ended']),
      ...known('runs', 'kind', ['agent', 'checks']),
      ...known('runs', 'approvals', ['allow', 'ask', 'deny']),
    ],
  },
]
