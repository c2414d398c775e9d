import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../../src/testing/signals.ts'

/** For TestDaemon's `env`: the program is the real one, with a way to ask for its heap. */
export const WITH_HEAP_PROBE = { NODE_OPTIONS: `--require ${join(import.meta.dirname, 'heap-probe.cjs')}` }

export interface Footprint {
  /** What survives a full collection, and what the process holds after it. */
  heapMb: number
  rssMb: number
  files: number
  /** How long its event loop stood still at the most since it was last asked. */
  stallMs: number
}

const megabytes = (bytes: number) => Math.round(bytes / 104_857.6) / 10

export async function footprint(daemon: TestDaemon): Promise<Footprint> {
  const from = daemon.log.length
  const printed = () => /heap-probe (\{.*\})\n/.exec(daemon.log.slice(from))?.[1]
  process.kill(daemon.pid, 'SIGUSR2')
  await until(() => printed() !== undefined)
  const { heapUsed, rss, stallMs } = JSON.parse(printed() as string) as { heapUsed: number; rss: number; stallMs: number }
  return { heapMb: megabytes(heapUsed), rssMb: megabytes(rss), files: openFiles(daemon), stallMs: Math.round(stallMs) }
}

/** Only Linux tells; elsewhere it is not compared. */
export function openFiles(daemon: TestDaemon): number {
  const folder = `/proc/${daemon.pid}/fd`
  return existsSync(folder) ? readdirSync(folder).length : 0
}

/** The gauges of GET /metrics. */
export async function gauges(daemon: TestDaemon): Promise<Record<string, number>> {
  // Else whoever stands still for seconds writes into a connection that the daemon has closed meanwhile.
  const headers = { authorization: `Bearer ${daemon.token}`, connection: 'close' }
  const text = await (await fetch(`${daemon.url}/metrics`, { headers })).text()
  return Object.fromEntries([...text.matchAll(/^signalbox_(\w+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]))
}
