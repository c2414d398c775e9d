import { effectsContract } from '../../ports/effects.contract.ts'

// On the engine of the project that runs it: the table on SQLite, graphile-worker on PostgreSQL.
effectsContract()
