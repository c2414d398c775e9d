import { expect, test } from 'vitest'
import { Changes, writtenBy } from './changes.ts'

test('[K16] what was read of a table is good until a transaction that wrote to it has ended, and not while one does', () => {
  const changes = new Changes()
  const version = () => changes.versionOf(['tokens', 'agents'])
  const before = version()
  changes.wrote('tasks')
  changes.ended()
  expect(version()).toBe(before)
  changes.wrote('agents')
  expect(version()).toBeUndefined()
  changes.ended()
  expect(version()).not.toBe(before)
})

test('[K16] a statement that cannot be read may have changed any table', () => {
  const changes = new Changes()
  const before = changes.versionOf(['tokens'])
  changes.wrote(writtenBy('WITH gone AS (SELECT 1) UPDATE tokens SET ended_at = 1') as string)
  expect(changes.versionOf(['tokens'])).toBeUndefined()
  changes.ended()
  expect(changes.versionOf(['tokens'])).not.toBe(before)
})

test.each([
  ['select * from "tokens" where "id" = ?', undefined],
  ['insert into "tokens" ("id") values (?) on conflict do nothing', 'tokens'],
  ['update "agents" set "task_id" = ?', 'agents'],
  ['DELETE FROM idempotency WHERE at < ?', 'idempotency'],
  ['replace into tokens values (1)', '*'],
])('[K16] %s', (sql, table) => {
  expect(writtenBy(sql)).toBe(table)
})
