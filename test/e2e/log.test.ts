import { expect, onTestFinished, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the fields of a line by name
type Line = any

/** What a daemon of this level logs from its start to its end, with one call that is done and one that is refused. */
async function logged(env: Record<string, string>): Promise<Line[]> {
  const daemon = await TestDaemon.start({ env })
  onTestFinished(() => daemon.remove())
  await daemon.call('project_create', { name: 'A secret plan' })
  await daemon.post('task_get', { task_id: 'T-404' })
  await daemon.end()
  expect(daemon.log).not.toContain('A secret plan')
  return daemon.log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
}

const named = (lines: Line[]) => [...new Set(lines.map(({ msg }) => msg))]
const LIFECYCLE = ['listening', 'stopping', 'stopped']

test('[E10] at info, the default, it says when it starts and ends, and nothing of calls', async () => {
  const lines = await logged({})
  expect(named(lines)).toEqual(LIFECYCLE)
  expect(lines).toMatchObject([
    {
      level: 30,
      version: expect.any(String),
      url: expect.stringMatching(/^http:\/\/127.0.0.1:\d+$/),
      database: expect.stringContaining('signalbox.db'),
    },
    { level: 30 },
    { level: 30 },
  ])
})

test('[E10] at debug it has every call and every event too, without what was said in them', async () => {
  const lines = await logged({ MCP_LOG_LEVEL: 'DEBUG' })
  expect(named(lines)).toEqual(expect.arrayContaining([...LIFECYCLE, 'call', 'event']))
  const calls = lines.filter(({ msg }) => msg === 'call')
  expect(calls.find(({ tool }) => tool === 'project_create')).toEqual({
    level: 20,
    time: expect.any(Number),
    msg: 'call',
    call: expect.stringMatching(/^call_/),
    tool: 'project_create',
    principal: expect.stringMatching(/^person_/),
    surface: 'http',
    outcome: 'ok',
    code: null,
    ms: expect.any(Number),
  })
  expect(calls.find(({ tool }) => tool === 'task_get')).toMatchObject({ outcome: 'refused', code: 'RESOURCE_NOT_FOUND' })
  expect(lines.find(({ type }) => type === 'project.created')).toMatchObject({ level: 20, msg: 'event', subject: expect.any(String) })
})

test('[E10] at warn there is nothing of that; our own variable beats the documented one', async () => {
  expect(await logged({ MCP_LOG_LEVEL: 'warn' })).toEqual([])
  expect(await logged({ MCP_LOG_LEVEL: 'debug', SIGNALBOX_LOG_LEVEL: 'error' })).toEqual([])
})

test('[E10] a level that is none is refused in words', async () => {
  await expect(TestDaemon.start({ env: { MCP_LOG_LEVEL: 'loud' } })).rejects.toThrow(
    'signalbox: MCP_LOG_LEVEL=loud is not a level; use trace, debug, info, warn, error, fatal or silent.',
  )
})
