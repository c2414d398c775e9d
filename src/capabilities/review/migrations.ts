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
  {
    name: 'review-decisions',
    up: ({ int, text, strict }) => [
      ...['decision', 'decided_by', 'feedback', 'head_commit', 'outcome', 'merge_commit', 'reason'].map(
        (column) => `ALTER TABLE reviews ADD COLUMN ${column} ${text}`,
      ),
      `ALTER TABLE reviews ADD COLUMN decided_at ${int}`,
      `CREATE TABLE pull_requests (
        id ${text} PRIMARY KEY NOT NULL, repo_id ${text} NOT NULL REFERENCES repos (id), number ${int} NOT NULL, project_id ${text} NOT NULL,
        task_id ${text} UNIQUE, epic_id ${text}, head ${text} NOT NULL, base ${text} NOT NULL, title ${text} NOT NULL, description ${text} NOT NULL,
        state ${text} NOT NULL, merge_commit ${text}, created_by ${text} NOT NULL, created_at ${int} NOT NULL, updated_at ${int} NOT NULL,
        merged_at ${int}, UNIQUE (repo_id, number)
      ) ${strict}`,
      'CREATE INDEX pull_requests_by_epic ON pull_requests (epic_id, task_id)',
    ],
  },
  {
    name: 'review-loop',
    up: ({ int, text, strict }) => [
      ...['handed_in', 'reviewer_task_id'].map((column) => `ALTER TABLE reviews ADD COLUMN ${column} ${text}`),
      ...['abandoned_at', 'cleaned_at'].map((column) => `ALTER TABLE reviews ADD COLUMN ${column} ${int}`),
      `ALTER TABLE reviews ADD COLUMN refused ${int} NOT NULL DEFAULT 0`,
      'CREATE INDEX reviews_by_reviewer ON reviews (reviewer_task_id)',
      `CREATE TABLE feedbacks (
        id ${text} PRIMARY KEY NOT NULL, review_id ${text} NOT NULL REFERENCES reviews (id), task_id ${text} NOT NULL, project_id ${text} NOT NULL,
        round ${int} NOT NULL, from_id ${text} NOT NULL, to_id ${text}, feedback ${text} NOT NULL, feedback_type ${text} NOT NULL, priority ${text},
        actionable_items ${text} NOT NULL, state ${text} NOT NULL, commit_hash ${text}, reason ${text}, created_at ${int} NOT NULL, sent_at ${int}
      ) ${strict}`,
      'CREATE INDEX feedbacks_by_task ON feedbacks (task_id, id)',
    ],
  },
  { name: 'review-readers', up: ({ text }) => [`ALTER TABLE reviews ADD COLUMN reader ${text}`] },
  {
    name: 'known-values',
    up: ({ known }) => [
      ...known('reviews', 'decision', ['approve', 'request_changes', 'timed_out', 'abandoned']),
      ...known('reviews', 'outcome', ['merged', 'conflict', 'red', 'failed']),
      ...known('reviews', 'reader', ['agent', 'human']),
      ...known('pull_requests', 'state', ['OPEN', 'MERGED', 'CLOSED']),
      ...known('feedbacks', 'feedback_type', ['needs_work', 'suggestions', 'clarification']),
      ...known('feedbacks', 'priority', ['low', 'medium', 'high', 'critical']),
      ...known('feedbacks', 'state', ['sending', 'sent', 'failed']),
    ],
  },
]
