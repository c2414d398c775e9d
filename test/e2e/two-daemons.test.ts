import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { Line, socketOf } from './support.ts'

let first: TestDaemon

beforeAll(async () => {
  first = await TestDaemon.start()
  await first.call('project_create', { name: 'Web' })
})
afterAll(() => first.remove())

async function unharmed(): Promise<void> {
  await first.call('task_create', { title: 'still here' })
  const line = await Line.begin(first, socketOf(first))
  expect((await line.rpc('tools/call', { name: 'agent_me', arguments: {} })).result.isError).toBeUndefined()
  line.socket.destroy()
}

test('[F16] a second daemon on the same state folder ends with a clear message, and the first is unharmed', async () => {
  const { token } = first
  const { code, stderr, stdout } = await first.cli(['serve', '--quiet'], '', { SIGNALBOX_PORT: '0' })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(`Another Signalbox (pid ${first.pid}, ${first.url}) already uses ${first.home}`)
  expect(stderr).not.toContain('    at ')
  expect(first.token).toBe(token)
  await unharmed()
})

test('[F16] two state folders cannot share one database', async () => {
  const other = new TestDaemon({ env: { SIGNALBOX_DATABASE_URL: `sqlite:${join(first.home, 'signalbox.db')}` } })
  await expect(other.start()).rejects.toThrow(/ended with 2: .*with another state folder, already uses the database/s)
  await other.remove()
  await unharmed()
})

test('[F16] of six that start at once on one folder one serves, and five say why not', async () => {
  await first.end()
  rmSync(join(first.home, 'daemon.json'))
  const all = Array.from({ length: 6 }, () => new TestDaemon({ home: first.home }))
  const outcomes = await Promise.allSettled(all.map((daemon) => daemon.start()))
  const serving = all.filter((_, i) => outcomes[i]?.status === 'fulfilled')
  expect(serving).toHaveLength(1)
  for (const outcome of outcomes) if (outcome.status === 'rejected') expect(String(outcome.reason)).toMatch(/ended with 2: .*already uses/s)
  const [winner] = serving as [TestDaemon]
  expect(JSON.parse(readFileSync(join(first.home, 'daemon.json'), 'utf8'))).toMatchObject({ pid: winner.pid, url: winner.url })
  expect((await winner.call('project_list')).projects).toHaveLength(1)
  await winner.end()
  await first.start()
})

test('[F16] a second daemon on the same port ends with a clear message, and neither folder is harmed', async () => {
  const second = new TestDaemon()
  const { port } = new URL(first.url)
  const { code, stderr } = await second.cli(['serve', '--quiet'], '', { SIGNALBOX_PORT: port })
  expect(code).toBe(2)
  expect(stderr).toContain(`Port ${port} on 127.0.0.1 is taken`)
  expect(stderr).toContain(`SIGNALBOX_PORT=${Number(port) + 1}`)
  await unharmed()
  await second.start()
  expect((await second.call('system_health')).notices).toEqual([])
  await second.remove()
})

test('[F16] two folders are two daemons', async () => {
  const second = await TestDaemon.start()
  expect((await second.call('project_list')).projects).toEqual([])
  expect((await second.post('project_list', {}, first.token)).status).toBe(401)
  const { welcome } = await Line.open(first, socketOf(second))
  expect(welcome).toMatchObject({ ok: false, code: 'CONFLICT' })
  await second.remove()
  await unharmed()
})

test('[F16] a SIGKILLed daemon leaves nothing that blocks the next start', async () => {
  const before = (await first.call('task_list')).tasks.length
  for (let i = 0; i < 2; i++) {
    await first.call('task_create', { title: `${i}` })
    await first.end('SIGKILL')
    expect(existsSync(socketOf(first))).toBe(true)
    await first.start()
  }
  expect((await first.call('task_list')).tasks).toHaveLength(before + 2)
  await unharmed()
})

test("[F16] a pid file that names a stranger's living process blocks nobody and harms nobody", async () => {
  await first.end('SIGKILL')
  writeFileSync(join(first.home, 'daemon.json'), JSON.stringify({ pid: process.pid, url: 'http://127.0.0.1:1' }))
  await first.start()
  await unharmed()
})
