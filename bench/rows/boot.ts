import { join } from 'node:path'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { Child, residentMb } from '../child.ts'
import { inOrder, prepare, type World } from '../ground.ts'
import { median, type Row, row } from '../harness.ts'

const BOOT = { text: '≤ 500 ms', met: ({ measured }: { measured: number }) => measured <= 500 }
const IDLE = { text: '≤ 120 MB', met: ({ measured }: { measured: number }) => measured <= 120 }
const SETTLING_MS = 3_000

/** From the start of the process to its first answer to a tool call, on a database that is in use; and what it weighs then. */
export async function bootRows(world: World): Promise<Row[]> {
  const { rounds, engines, quick } = world.options
  const daemons = await inOrder(engines, async (engine) => ({ engine, daemon: (await prepare(engine, await world.daemon(engine))).daemon }))
  const took = { limit: [] as number[], ...Object.fromEntries(engines.map((engine) => [engine, [] as number[]])) }
  const weighs = { limit: [] as number[], ...Object.fromEntries(engines.map((engine) => [engine, [] as number[]])) }
  for (let round = 0; round < rounds; round++) {
    const bare = await bootBare()
    took.limit.push(bare.ms)
    for (const { engine, daemon } of daemons) (took as Record<string, number[]>)[engine]?.push(await boot(daemon))
    // What has been idle for a while has given back what it needed to start.
    await new Promise((resolve) => setTimeout(resolve, quick ? 100 : SETTLING_MS))
    weighs.limit.push(residentMb(bare.child.pid))
    for (const { engine, daemon } of daemons) (weighs as Record<string, number[]>)[engine]?.push(residentMb(daemon.pid))
    await bare.child.end()
  }
  for (const { daemon } of daemons) await daemon.end()
  const rowsOf = (what: string, unit: string, found: Record<string, number[]>, aim: Row['aim']) =>
    engines.map((engine) =>
      row({
        family: 'boot',
        what,
        engine,
        clients: undefined,
        unit,
        measured: median(found[engine] as number[]),
        limit: median(found.limit as number[]),
        limitOf: 'bare node:http',
        aim,
      }),
    )
  return [...rowsOf('boot to first answer', 'ms', took, BOOT), ...rowsOf('idle RSS', 'MB', weighs, IDLE)]
}

async function boot(daemon: TestDaemon): Promise<number> {
  await daemon.end()
  const began = performance.now()
  await daemon.start()
  await daemon.call('agent_me')
  return performance.now() - began
}

async function bootBare(): Promise<{ child: Child; ms: number }> {
  const began = performance.now()
  const child = new Child([join(import.meta.dirname, 'bare-http.js')])
  await child.ready()
  await (await fetch(child.url)).text()
  return { child, ms: performance.now() - began }
}
