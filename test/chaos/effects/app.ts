import { type App, createApp } from '../../../src/daemon/app.ts'
import type { EffectRow, EffectTables } from '../../../src/db/effect-store.ts'
import { tables } from '../../../src/db/tables.ts'
import type { EffectTimes } from '../../../src/kernel/effect.ts'
import { testSurroundings } from '../../../src/testing/ports.ts'
import { markCapabilities, type Wanted, World } from './world.ts'

export interface Setup {
  database: string
  world: string
  times: EffectTimes
}

export interface MarkApp extends App {
  outside: World
}

export async function openMarkApp({ database, world, times }: Setup): Promise<MarkApp> {
  const outside = new World(world)
  const app = await createApp({
    database,
    ...testSurroundings(world),
    ownerSecrets: [],
    onDefect: (error) => outside.append({ what: 'defect', text: String(error) }),
    capabilities: markCapabilities(outside),
    effectTimes: times,
  })
  const write = app.engine.write.bind(app.engine)
  app.engine.write = (job) => write(job).finally(() => outside.committed())
  return { ...app, outside }
}

/** Throws when it was not answered as done. */
export async function want(app: App, marks: Wanted[]): Promise<void> {
  const answer = await app.kernel.invoke({ tool: 'mark_want', input: { marks }, credential: 'system', surface: 'daemon' })
  if (!answer.ok) throw new Error(answer.error.message)
}

export function rowsOf(app: App): Promise<EffectRow[]> {
  return tables<EffectTables>(app.engine.view).selectFrom('effects').selectAll().orderBy('created_at').orderBy('id').execute()
}

/** Nothing is left to be done. */
export async function settled(app: MarkApp, patienceMs: number): Promise<EffectRow[]> {
  const isOpen = (row: EffectRow) => row.state === 'waiting' || row.state === 'running'
  await app.outside.untilCommitted(async () => !(await rowsOf(app)).some(isOpen), AbortSignal.timeout(patienceMs))
  const rows = await rowsOf(app)
  const open = rows.filter(isOpen)
  if (open.length) throw new Error(`still open: ${JSON.stringify(open)}`)
  return rows
}
