import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  {
    name: 'letters',
    up: ({ int, text, strict }) => [
      `CREATE TABLE letters (
        id ${text} PRIMARY KEY NOT NULL, thread_id ${text} NOT NULL, in_reply_to ${text}, from_id ${text} NOT NULL, to_id ${text} NOT NULL,
        project_id ${text}, epic_id ${text}, task_id ${text}, subject ${text} NOT NULL, body ${text} NOT NULL, importance ${text} NOT NULL,
        needs_ack ${int} NOT NULL, fingerprint ${text} NOT NULL, created_at ${int} NOT NULL, read_at ${int}, read_by ${text},
        acked_at ${int}, acked_by ${text}
      ) ${strict}`,
      'CREATE INDEX letters_by_receiver ON letters (to_id, id)',
      'CREATE INDEX letters_unread ON letters (to_id, id) WHERE read_at IS NULL',
      'CREATE INDEX letters_by_thread ON letters (thread_id, id)',
      'CREATE INDEX letters_alike ON letters (fingerprint, created_at)',
      `CREATE TABLE mail_rates (
        sender ${text} PRIMARY KEY NOT NULL, paid_until ${int} NOT NULL
      ) ${strict}`,
    ],
  },
  {
    name: 'notices',
    up: ({ int, text, strict }) => [
      `ALTER TABLE letters ADD COLUMN noticed_in ${text}`,
      `ALTER TABLE letters ADD COLUMN notices ${int} NOT NULL DEFAULT 0`,
      `CREATE TABLE mail_notices (
        agent_id ${text} PRIMARY KEY NOT NULL, due_at ${int}, given_at ${int} NOT NULL
      ) ${strict}`,
    ],
  },
  {
    name: 'known-values',
    up: ({ known }) => [...known('letters', 'importance', ['low', 'normal', 'high', 'urgent'])],
  },
]
