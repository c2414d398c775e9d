import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openMarkApp, rowsOf, settled } from '../chaos/effects/app.ts'
import { buildProgram, Child } from '../chaos/effects/child.ts'
import { placesHere } from '../chaos/effects/databases.ts'
import type { Orders } from '../chaos/effects/program.ts'
import { World } from '../chaos/effects/world.ts'
import { fakeClock } from './fake-clock.ts'
import { leftOut, until } from './support.ts'

const HOUR = 3_600_000
const TIMES = { leaseMs: 1_500, beatMs: 100, deadAfterMs: 500, backOffMs: 20, lookMs: 100, graceMs: 100 }

describe.skipIf(leftOut('faketime', '[F22] [X16] clock jumps under effects'))('[F22] the clock jumps while effects run', () => {
  let program: Awaited<ReturnType<typeof buildProgram>>
  beforeAll(async () => {
    program = await buildProgram()
  })
  afterAll(() => program.remove())

  test('[F22] [X16] an hour forth and back takes no lease away, and a dead daemon is followed at once', async () => {
    const { engine, open } = placesHere()
    // On SQLite the leases go by the clock of the process, which jumps ahead and never back.
    const databaseJumps = engine === 'sqlite'
    const places = await open()
    const place = await places.fresh()
    const orders: Orders = { database: place.database, world: place.world, times: TIMES }
    const world = new World(place.world)
    const clock = fakeClock()
    const daemon = new Child(program.path, orders, clock.env)
    onTestFinished(async () => {
      await daemon.end('SIGKILL')
      clock.remove()
      await places.close()
    })
    await daemon.ready()
    await daemon.ask({
      marks: [
        { kind: 'blind', name: 'long', queue: 'q', until: 'gate' },
        { kind: 'known', name: 'next', queue: 'q' },
      ],
    })
    await until(async () => world.lines().some((line) => line.what === 'begin'), 'it has begun')

    const jumpBy = async (hours: number) => {
      clock.set(`${hours > 0 ? '+' : '-'}3600`)
      const now = await daemon.ask({ clock: true })
      const jump = (time: unknown) => Math.round((Number(time) - Date.now()) / HOUR) || 0
      expect([jump(now?.process), jump(now?.database)]).toEqual([hours, databaseJumps ? 1 : 0])
    }
    // Something else is enqueued and done meanwhile, so the daemon has looked at what is due, and longer than a lease has passed.
    const meanwhile = async (name: string) => {
      await daemon.ask({ marks: [{ kind: 'known', name, ms: TIMES.leaseMs + 500 }] })
      await until(async () => world.has(name), 'the other one is done')
      expect(world.lines().filter((line) => line.what === 'begin' && line.queue === 'q')).toHaveLength(1)
    }
    await jumpBy(1)
    await meanwhile('an hour ahead')
    await jumpBy(-1)
    await meanwhile('an hour behind')
    // Enqueued an hour before those that stand in front of it, as this clock has it.
    await daemon.ask({ marks: [{ kind: 'known', name: 'last', queue: 'q' }] })
    // On SQLite its leases then last an hour longer than it does: who follows it does not wait for them.
    await jumpBy(1)
    await meanwhile('an hour ahead again')
    await daemon.end('SIGKILL')
    const killed = performance.now()
    const follower = await openMarkApp(orders)
    onTestFinished(() => follower.close())
    await until(async () => (await rowsOf(follower)).some((row) => row.state === 'unknown'), 'it is shown as unknown')
    expect(performance.now() - killed).toBeLessThan(TIMES.leaseMs + 60_000)
    writeFileSync(join(place.world, 'gate'), '')
    const rows = await settled(follower, 60_000)
    expect(rows.map((row) => row.state).sort()).toEqual(['done', 'done', 'done', 'done', 'done', 'unknown'])
    expect(world.lines().flatMap((line) => (line.what === 'begin' && line.queue === 'q' ? [line.name] : []))).toEqual([
      'long',
      'next',
      'last',
    ])
    expect(world.lines().filter((line) => line.what === 'twice')).toEqual([])
  })
})
