import { join } from 'node:path'
import { describe } from 'vitest'
import { OldDatabase } from '../old-database/lay-out.ts'
import { keepsWorking } from '../old-database/old-database.contract.ts'

describe('a SQLite file of an older Signalbox', () => {
  keepsWorking(OldDatabase.onSqlite, async ({ root }) => join(root, 'new.db'))
})
