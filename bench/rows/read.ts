import { type Ground, inOrder, type World } from '../ground.ts'
import { alternate, CLIENTS, type Row, row, type Side } from '../harness.ts'
import { costNote, Load } from './load.ts'

const AIM = { text: '≥ 85 % of the SDK echo', met: ({ ratio = 0 }) => ratio >= 0.85 }
const input = ({ task }: Ground['agents'][number]) => ({ task_id: task })

/** task_get over MCP: the token is checked, the id resolved, the rows read, the answer checked, the call audited. */
export async function readRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const echo = await world.echo()
  return (await inOrder(CLIENTS, (clients) => measure(clients))).flat()

  async function measure(clients: number): Promise<Row[]> {
    const limit = Load.start(echo, grounds[0] as Ground, clients, 'task_get', input)
    const loads = grounds.map((ground) => ({
      engine: ground.engine,
      load: Load.start(ground.daemon, ground, clients, 'task_get', input),
    }))
    const sides: Record<string, Side> = { limit: (ms, calls) => limit.run(ms, calls) }
    for (const { engine, load } of loads) sides[engine] = (ms, calls) => load.run(ms, calls)
    const found = await alternate(sides, world.options)
    for (const load of [limit, ...loads.map(({ load }) => load)]) load.close()
    return loads.map(({ engine, load }) =>
      row({
        family: 'read',
        what: 'read tool call (task_get)',
        engine,
        clients,
        unit: 'calls/s',
        measured: found[engine] as number,
        limit: found.limit as number,
        limitOf: 'SDK echo',
        aim: AIM,
        note: costNote(load, limit),
      }),
    )
  }
}
