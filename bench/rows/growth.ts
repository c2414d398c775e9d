import { processorMs } from '../child.ts'
import { fill } from '../fill.ts'
import { type Ground, inOrder, NEW_TASK, prepare, type World } from '../ground.ts'
import { alternate, percentile, type Row, row, type Side } from '../harness.ts'
import { Load } from './load.ts'
import { onDaemon, Waiters } from './wait.ts'

const AIM = { text: '≤ 1.3 ×', met: ({ ratio = 0 }) => ratio <= 1.3 }
const FEW = 1_000
const CLIENTS = 16

type Agent = Ground['agents'][number]

const CALLS: { what: string; tool: string; input(agent: Agent, ground: Ground): object }[] = [
  { what: 'read (task_get)', tool: 'task_get', input: ({ task }) => ({ task_id: task }) },
  { what: 'durable write (task_create)', tool: 'task_create', input: (_, { project }) => ({ ...NEW_TASK, project_id: project }) },
  {
    what: 'event read (event_wait behind a cursor)',
    tool: 'event_wait',
    input: ({ task }, { cursor }) => ({ cursor, task_id: task, limit: 50 }),
  },
]

/** The same calls on a small log and on a large one: how many times as long does each take? */
export async function growthRows(world: World): Promise<Row[]> {
  const rows = await inOrder(world.options.engines, async (engine) => {
    const small = await filled(world, engine, FEW)
    const large = await filled(world, engine, world.options.manyEvents)
    const found = await inOrder(CALLS, (call) => compare(world, small, large, call))
    return [...found, await compareWaits(world, small, large)]
  })
  return rows.flat()
}

/** Filled while the daemon is down; then it is given the time to seal what it finds. */
async function filled(world: World, engine: Ground['engine'], events: number): Promise<Ground> {
  const daemon = await world.daemon(engine)
  const ground = await prepare(engine, daemon)
  await daemon.end()
  await fill(daemon, events, ground.project)
  await daemon.start()
  await settled(daemon.pid)
  const { cursor } = await daemon.call('task_list', { limit: 1 })
  for (const { task } of ground.agents) await daemon.call('task_note', { task_id: task, body: 'behind the cursor' })
  return { ...ground, cursor }
}

/** It has sealed everything when it uses no more of the processor. */
async function settled(pid: number): Promise<void> {
  for (let used = Number.POSITIVE_INFINITY, before = processorMs(pid); used > 50; ) {
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const now = processorMs(pid)
    used = now - before
    before = now
  }
}

async function compare(world: World, small: Ground, large: Ground, call: (typeof CALLS)[number]): Promise<Row> {
  const start = (ground: Ground) => Load.start(ground.daemon, ground, CLIENTS, call.tool, (agent) => call.input(agent, ground))
  const loads = { small: start(small), large: start(large) }
  const side =
    (load: Load): Side =>
    async (ms, calls) =>
      1_000 / (await load.run(ms, calls))
  const found = await alternate({ small: side(loads.small), large: side(loads.large) }, world.options)
  for (const load of Object.values(loads)) load.close()
  return growthRow(world, small, call.what, found, CLIENTS)
}

async function compareWaits(world: World, small: Ground, large: Ground): Promise<Row> {
  const sides = { small: await Waiters.start(onDaemon(small), CLIENTS), large: await Waiters.start(onDaemon(large), CLIENTS) }
  for (let round = 0; round < world.options.rounds; round++)
    for (const side of Object.values(sides)) await side.wakeSome(world.options.quick ? 20 : 60, round > 0)
  for (const side of Object.values(sides)) side.close()
  const p50 = { small: percentile(sides.small.took, 0.5), large: percentile(sides.large.took, 0.5) }
  return growthRow(world, small, 'wait wake-up (event_wait), p50', p50, CLIENTS)
}

function growthRow(world: World, { engine }: Ground, what: string, found: { small: number; large: number }, clients: number): Row {
  return row({
    family: 'growth',
    what: `growth: ${what}`,
    engine,
    clients,
    unit: 'ms/call',
    measured: found.large,
    limit: found.small,
    limitOf: `the same with ${FEW.toLocaleString('en-US')} events`,
    aim: AIM,
    note: `with ${world.options.manyEvents.toLocaleString('en-US')} events`,
  })
}
