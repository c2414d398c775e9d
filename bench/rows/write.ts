import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ground, inOrder, NEW_TASK, type World } from '../ground.ts'
import { alternate, CLIENTS, median, type Row, row, type Side } from '../harness.ts'
import { costNote, Load } from './load.ts'

const AIM = { text: '≥ 60 % of the SDK echo', met: ({ ratio = 0 }) => ratio >= 0.6 }
const PAGE = Buffer.alloc(4_096, 1)

/** task_create over MCP, answered when it is on the disk; and how many of them share one commit. */
export async function writeRows(world: World): Promise<Row[]> {
  const grounds = await world.grounds()
  const echo = await world.echo()
  const disk = new SyncedFile()
  const rows = await inOrder(CLIENTS, (clients) => measure(clients))
  disk.remove()
  return rows.flat()

  async function measure(clients: number): Promise<Row[]> {
    const start = (server: { url: string; pid: number }, ground: Ground) =>
      Load.start(server, ground, clients, 'task_create', () => ({ ...NEW_TASK, project_id: ground.project }))
    const limit = start(echo, grounds[0] as Ground)
    const loads = grounds.map((ground) => ({ ground, commits: [] as number[], load: start(ground.daemon, ground) }))
    const sides: Record<string, Side> = { limit: (ms, calls) => limit.run(ms, calls), disk: (ms) => disk.syncsPerSecond(ms) }
    for (const { ground, commits, load } of loads)
      sides[ground.engine] = (ms, calls) => countingCommits(ground, commits, () => load.run(ms, calls))
    const found = await alternate(sides, world.options)
    for (const load of [limit, ...loads.map(({ load }) => load)]) load.close()
    return loads.flatMap(({ ground: { engine }, commits, load }) => {
      const measured = found[engine] as number
      const common = { family: 'write', engine, clients }
      return [
        row({
          ...common,
          what: 'durable write (task_create)',
          unit: 'calls/s',
          measured,
          limit: found.limit as number,
          limitOf: 'SDK echo',
          aim: engine === 'sqlite' && clients === 16 ? AIM : undefined,
          note: costNote(load, limit),
        }),
        row({
          ...common,
          what: 'its commits',
          unit: 'commits/s',
          measured: median(commits),
          limit: found.disk as number,
          limitOf: 'bare fsync loop',
          note: `${(measured / median(commits)).toFixed(1)} calls to a commit`,
        }),
      ]
    })
  }
}

/** Notes down how many commits a second it made meanwhile. */
async function countingCommits({ daemon }: Ground, commits: number[], run: () => Promise<number>): Promise<number> {
  const made = async () => (await daemon.call('system_health')).database.commits as number
  const before = await made()
  const began = performance.now()
  const rate = await run()
  const seconds = (performance.now() - began) / 1_000
  commits.push(((await made()) - before) / seconds)
  return rate
}

/** A page written and forced to the disk, again and again, where the database lies too. */
class SyncedFile {
  readonly #folder = mkdtempSync(join(tmpdir(), 'signalbox-bench-'))
  readonly #file = openSync(join(this.#folder, 'synced'), 'w')

  async syncsPerSecond(ms: number): Promise<number> {
    const began = performance.now()
    let done = 0
    for (; performance.now() - began < ms; done++) {
      writeSync(this.#file, PAGE, 0, PAGE.length, (done % 1_000) * PAGE.length)
      fdatasyncSync(this.#file)
    }
    return done / ((performance.now() - began) / 1_000)
  }

  remove(): void {
    closeSync(this.#file)
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
