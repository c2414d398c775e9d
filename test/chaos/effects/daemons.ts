import { expect } from 'vitest'
import type { EffectTimes } from '../../../src/kernel/effect.ts'
import { Random } from '../random.ts'
import { pause } from '../stop.ts'
import { openMarkApp, settled } from './app.ts'
import { buildProgram, Child } from './child.ts'
import { type Places, postgresPlaces } from './databases.ts'
import type { Orders } from './program.ts'
import { type Line, type Wanted, World } from './world.ts'

/** One that lives must not be taken for dead on a busy machine: what it does would be done beside it, as it has to be. */
const TIMES: EffectTimes = { leaseMs: 6_000, beatMs: 200, deadAfterMs: 3_000, backOffMs: 20, lookMs: 200, graceMs: 200 }
const QUEUES = ['red', 'green', 'blue', 'grey']

/** A queue may stand for a lease, plus what it takes to notice and to begin on a machine that has other things to do. */
const LONGEST_STAND_MS = TIMES.leaseMs + 30_000
const LEAST_KILLS = 2
const LEAST_ASKED = 25

interface DaemonsReport {
  seed: number
  seconds: number
  kills: number
  acked: number
  done: number
  unknown: number
  longestStandMs: number
  wrong: string[]
}

/** Nothing lost, nothing done twice, no queue at a stand. */
export async function endureKills(seed: number, seconds: number): Promise<DaemonsReport> {
  const program = await buildProgram()
  const places = await postgresPlaces()
  try {
    const report = await killDaemons(program.path, places, seed, seconds)
    console.info(summary(report))
    expect(report.wrong).toEqual([])
    expect(report.longestStandMs).toBeLessThan(LONGEST_STAND_MS)
    return report
  } finally {
    await places.close()
    program.remove()
  }
}

/** Three daemons on one database, under a steady flow of work; every now and then one is killed and another one started. */
async function killDaemons(program: string, places: Places, seed: number, seconds: number): Promise<DaemonsReport> {
  const place = await places.fresh()
  const random = new Random(seed)
  const world = new World(place.world)
  const orders: Orders = { database: place.database, world: place.world, times: TIMES }
  const daemons = new Set<Child>()
  const bear = async () => {
    const child = new Child(program, orders)
    await child.ready()
    daemons.add(child)
  }
  await Promise.all([bear(), bear(), bear()])
  const until = performance.now() + seconds * 1_000
  const flow = keepAsking(daemons, random.fork(), () => performance.now() < until)
  const births: Promise<void>[] = []
  let kills = 0
  for (; performance.now() < until || kills < LEAST_KILLS; kills++) {
    await pause(1_000 + random.below(1_500))
    const victim = random.pick([...daemons])
    daemons.delete(victim)
    await victim.end('SIGKILL')
    world.append({ what: 'killed', victim: victim.pid })
    births.push(bear())
    if (daemons.size < 2) await births.at(-1)
  }
  await flow
  await Promise.all(births)
  const app = await openMarkApp(orders)
  try {
    const rows = await settled(app, 60_000)
    const states = new Map(rows.map((row) => [(JSON.parse(row.payload) as Wanted).name, row]))
    const lines = world.lines()
    const acked = lines.flatMap((line) => (line.what === 'acked' ? line.names : []))
    const wrong = [
      ...acked.filter((name) => !states.has(name)).map((name) => `${name} is lost`),
      ...rows.flatMap((row) => checkState(JSON.parse(row.payload) as Wanted, row.state, world)),
      ...lines.flatMap((line) => (line.what === 'twice' ? [`${line.name} was done twice`] : line.what === 'defect' ? [line.text] : [])),
      ...QUEUES.flatMap((queue) => checkLine(queue, lines)),
    ]
    const count = (state: string) => rows.filter((row) => row.state === state).length
    const longestStandMs = Math.round(Math.max(...QUEUES.map((queue) => longestStand(queue, lines))))
    return { seed, seconds, kills, acked: acked.length, done: count('done'), unknown: count('unknown'), longestStandMs, wrong }
  } finally {
    await Promise.all([...daemons].map((daemon) => daemon.end('SIGKILL')))
    await app.close()
    await place.remove()
  }
}

/** A few marks at a time, to whichever daemon lives; one that dies before it answers may or may not have taken them. */
async function keepAsking(daemons: Set<Child>, random: Random, goOn: () => boolean): Promise<void> {
  for (let n = 0; goOn() || n < LEAST_ASKED; n++) {
    const marks = Array.from({ length: 4 }, (_, i): Wanted => {
      const queue = random.chance(0.7) ? random.pick(QUEUES) : undefined
      return {
        kind: random.chance(0.8) ? 'known' : 'blind',
        name: `n${n}-${i}`,
        queue,
        ms: random.below(40),
        fails: random.chance(0.1) ? 1 : 0,
      }
    })
    await random.pick([...daemons]).ask({ marks })
    await pause(40)
  }
}

function checkState({ name, kind }: Wanted, state: string, world: World): string[] {
  if (kind === 'known') return state === 'done' && world.has(name) ? [] : [`${name} is ${state}, file: ${world.has(name)}`]
  return state === 'done' || state === 'unknown' ? [] : [`${name} is ${state}`]
}

type Of = Line & { what: 'begin' | 'end' | 'did' | 'twice' | 'stopped'; name: string }

function isOf(queue: string) {
  return (line: Line): line is Of => (line.what === 'begin' || line.what === 'end' || line.what === 'stopped') && line.queue === queue
}

/** Never two of one queue at a time: who has begun and not ended must be dead before another begins. */
function checkLine(queue: string, lines: Line[]): string[] {
  const wrong: string[] = []
  const dead = new Set<number>()
  let open: Of | undefined
  for (const line of lines) {
    if (line.what === 'killed') dead.add(line.victim)
    if (!isOf(queue)(line)) continue
    if (line.what !== 'begin') open = open?.pid === line.pid && open.name === line.name ? undefined : open
    else if (open && !dead.has(open.pid)) wrong.push(`${line.name} of ${queue} began at ${line.pid} while ${open.name} ran at ${open.pid}`)
    if (line.what === 'begin') open = line
  }
  return wrong
}

/** The longest time in which a queue with work in it neither began nor ended anything. */
function longestStand(queue: string, lines: Line[]): number {
  const moves = lines.filter(isOf(queue))
  const began = new Map(moves.map((line) => [line.name, line.at]))
  const enqueued = new Map(lines.flatMap((line) => (line.what === 'acked' ? line.names.map((name) => [name, line.at] as const) : [])))
  return Math.max(
    0,
    ...moves.slice(1).map((line, i) => {
      const before = (moves[i] as Of).at
      // Only from when the one that moved next, or any other that still waited, was there.
      const since = Math.max(
        before,
        Math.min(
          ...[...began.keys()].filter((name) => (began.get(name) as number) >= line.at).map((name) => enqueued.get(name) ?? line.at),
          enqueued.get(line.name) ?? line.at,
        ),
      )
      return line.at - since
    }),
  )
}

function summary({ seed, seconds, kills, acked, done, unknown, longestStandMs, wrong }: DaemonsReport): string {
  return `SIGNALBOX_SEED=${seed}: ${seconds} s, ${kills} kills; ${acked} effects acknowledged, ${done} done, ${unknown} unknown; longest a queue stood ${longestStandMs} ms (lease ${TIMES.leaseMs} ms); wrong ${wrong.length}`
}
