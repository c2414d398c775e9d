import { basename } from 'node:path'
import { describe, inject, onTestFinished } from 'vitest'
import { createDatabase, dropDatabase } from '../../src/testing/databases.ts'
import { OldDatabase } from '../old-database/lay-out.ts'
import { keepsWorking } from '../old-database/old-database.contract.ts'

describe('a PostgreSQL database of an older Signalbox', () => {
  const server = inject('postgres')
  keepsWorking(
    () => OldDatabase.onPostgres(server),
    async ({ root }) => {
      const name = `${basename(root)}-new`
      onTestFinished(() => dropDatabase(server, name))
      return createDatabase(server, name)
    },
  )
})
