import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EffectTimes } from '../../../src/kernel/effect.ts'
import type { LoggedEvent } from '../../../src/kernel/event.ts'
import { SYSTEM } from '../../../src/kernel/policy.ts'
import { Random } from '../random.ts'
import { openMarkApp, settled } from './app.ts'
import { Child } from './child.ts'
import type { Place, Places } from './databases.ts'
import type { Orders } from './program.ts'
import { type Wanted, World } from './world.ts'

const TIMES: EffectTimes = { leaseMs: 2_000, beatMs: 60, deadAfterMs: 200, backOffMs: 10, lookMs: 60, graceMs: 100 }

/** Three calls of two effects each: with and without a queue, recognisable or not, one that fails at first. */
const SCRIPT: Wanted[][] = [
  [
    { kind: 'known', name: 'a' },
    { kind: 'blind', name: 'b' },
  ],
  [
    { kind: 'known', name: 'c', queue: 'q' },
    { kind: 'known', name: 'd', queue: 'q', fails: 1 },
  ],
  [
    { kind: 'blind', name: 'e', queue: 'q' },
    { kind: 'known', name: 'f', queue: 'q' },
  ],
]
const ALL = SCRIPT.flat()
const QUEUED = ALL.filter((mark) => mark.queue).map((mark) => mark.name)

export interface Fate {
  seed: number
  /** What it was about to do, or had just done, when it died. */
  lastWords: string[]
  acked: number
  unknown: number
  wrong: string[]
}

/** How many statements the script takes when nobody dies. */
export async function countStatements(program: string, places: Places): Promise<number> {
  const place = await places.fresh()
  const child = new Child(program, { ...orders(place), script: SCRIPT })
  const reply = await child.reply()
  await child.exited
  await place.remove()
  if (!reply) throw new Error(`the program failed: ${child.errors}`)
  return Number(reply.statements)
}

/** One life that ends at a statement, sometimes a second one, and then a daemon that finishes the work. */
export async function killAtStatement(program: string, places: Places, statements: number, seed: number): Promise<Fate> {
  const random = new Random(seed)
  const place = await places.fresh()
  try {
    const lastWords = [await live(program, place, random, statements, SCRIPT)]
    if (random.chance(0.3)) lastWords.push(await live(program, place, random, Math.ceil(statements / 3), []))
    return { seed, lastWords, ...(await finish(place)) }
  } finally {
    await place.remove()
  }
}

const orders = ({ database, world }: Place): Orders => ({ database, world, times: TIMES })

async function live(program: string, place: Place, random: Random, statements: number, script: Wanted[][]): Promise<string> {
  const death = { at: 1 + random.below(statements), when: random.pick(['before', 'sent', 'after'] as const) }
  const child = new Child(program, { ...orders(place), script, death })
  const { code, signal } = await child.exited
  if (code === 0) return 'it was done before'
  if (signal !== 'SIGKILL') throw new Error(`the program failed: ${child.errors}`)
  const file = join(place.world, 'last-words')
  return `${death.when} ${existsSync(file) ? readFileSync(file, 'utf8') : '?'}`
}

async function finish(place: Place): Promise<Omit<Fate, 'seed' | 'lastWords'>> {
  const app = await openMarkApp(orders(place))
  try {
    const rows = await settled(app, 60_000)
    const states = new Map(rows.map((row) => [(JSON.parse(row.payload) as Wanted).name, row.state]))
    const events = await app.feed.read(SYSTEM, undefined, { types: ['mark.made', 'effect.stuck'] }, 1_000)
    const world = new World(place.world)
    const acked = world.lines().flatMap((line) => (line.what === 'acked' ? line.names : []))
    const wrong = [...SCRIPT.flatMap((call) => checkWhole(call, states)), ...ALL.flatMap((mark) => checkOne(mark, world, states, events))]
    for (const name of acked) if (!states.has(name)) wrong.push(`${name} was acknowledged and is lost`)
    wrong.push(...checkWorld(world))
    const unknown = [...states.values()].filter((state) => state === 'unknown').length
    const shown = events.filter((event) => event.type === 'effect.stuck').length
    if (shown !== unknown) wrong.push(`${unknown} unknown, ${shown} shown`)
    return { acked: acked.length, unknown, wrong }
  } finally {
    await app.close()
  }
}

function checkWhole(call: Wanted[], states: Map<string, string>): string[] {
  const there = call.filter((mark) => states.has(mark.name)).length
  return there === 0 || there === call.length ? [] : [`half a call: ${call.map((mark) => mark.name)}`]
}

function checkOne({ name, kind }: Wanted, world: World, states: Map<string, string>, events: LoggedEvent[]): string[] {
  const state = states.get(name)
  const times =
    kind === 'known' ? Number(world.has(name)) : world.lines().filter((line) => line.what === 'did' && line.name === name).length
  const told = events.filter((event) => event.type === 'mark.made' && event.subject === name).length
  const expected =
    state === undefined
      ? times === 0 && told === 0
      : state === 'done'
        ? times === 1 && told === 1
        : kind === 'blind' && state === 'unknown' && times <= 1
  return expected ? [] : [`${kind} ${name} is ${state}, was done ${times} times and told ${told} times`]
}

function checkWorld(world: World): string[] {
  const lines = world.lines()
  const wrong = lines.flatMap((line) =>
    line.what === 'twice' ? [`${line.name} was done twice`] : line.what === 'defect' ? [line.text] : [],
  )
  const begun = lines.flatMap((line) => (line.what === 'begin' && QUEUED.includes(line.name) ? [line.name] : []))
  if (begun.join() !== [...begun].sort().join()) wrong.push(`out of line: ${begun}`)
  return wrong
}

export function summary(fates: Fate[]): string {
  const words = fates.flatMap((fate) => fate.lastWords)
  const deaths = words.filter((word) => word !== 'it was done before')
  const sum = (of: (fate: Fate) => number) => fates.reduce((total, fate) => total + of(fate), 0)
  return [
    `${fates.length} seeds, ${deaths.length} deaths at ${new Set(deaths).size} different places`,
    `${sum((fate) => fate.acked)} effects acknowledged, ${sum((fate) => fate.unknown)} unknown`,
    `wrong ${sum((fate) => fate.wrong.length)}`,
  ].join('; ')
}

/** So many at a time: most of a life is spent starting. */
export async function eachOf<A, B>(items: A[], atOnce: number, step: (item: A) => Promise<B>): Promise<B[]> {
  const results: B[] = []
  const rest = [...items]
  const hand = async () => {
    for (let item = rest.shift(); item !== undefined; item = rest.shift()) results.push(await step(item))
  }
  await Promise.all(Array.from({ length: atOnce }, hand))
  return results
}
