import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command } from '../../src/daemon/cli-command.ts'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { fakeTerminal } from '../../src/testing/terminal.ts'
import { databaseOf, rows, until } from './support.ts'

let daemon: TestDaemon

beforeAll(async () => {
  // Waits are cut every 300 ms, so that one from the command line has to go on by itself.
  daemon = await TestDaemon.start({ env: { MCP_TOOL_TIMEOUT: '300' } })
  await daemon.call('project_create', { name: 'Web' })
})
afterAll(() => daemon.remove())

/** What a process of its own does, without the half second that it takes to start; where that is the point there is `daemon.cli`. */
async function cli(args: string[], env: Record<string, string> = {}): Promise<{ code: number; stdout: string; stderr: string }> {
  const { SIGNALBOX_PORT: _, ...base } = daemon.env
  const terminal = fakeTerminal()
  const code = await command(args, { ...base, ...env }, terminal)
  return { code, stdout: terminal.stdout, stderr: terminal.stderr }
}

/** Runs a command and reads its answer as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
async function json(...args: string[]): Promise<any> {
  const { code, stdout, stderr } = await cli([...args, '--json'])
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stdout}${stderr}`)
  return JSON.parse(stdout)
}

describe('signalbox <noun> <verb>', () => {
  test('[E5] arguments stand by name or in order, once or many times, as text, number, list or JSON', async () => {
    const one = await json('task', 'create', 'First task')
    const two = await json(
      'task',
      'create',
      '--title',
      'Second',
      '--blocked-by',
      one.handle,
      '--priority',
      'high',
      '--acceptance-criteria',
      'a',
      '--acceptance-criteria',
      'b',
    )
    expect(two.task).toMatchObject({ title: 'Second', priority: 'high', blocked_by: [one.handle], acceptance_criteria: ['a', 'b'] })
    const three = await json('task', 'create', '--acceptance-criteria', '["x, y","z"]', 'Third')
    expect(three.task).toMatchObject({ title: 'Third', acceptance_criteria: ['x, y', 'z'] })
    expect((await json('task', 'list', '--limit', '1')).tasks).toHaveLength(1)
    expect((await json('setting', 'update', 'limits.agent_burst', '450')).value).toBe(450)
    const plan = await json('plan', 'propose', '--tasks', '[{"title":"planned"}]')
    expect((await json('plan', 'accept', plan.plan_id, '--no-accept')).status).toBe('rejected')
  })

  test('[E5] the exit code says what kind of refusal it was; --json puts it on stdout, else it is on stderr', async () => {
    const { token } = await daemon.call('agent_invite', { role: 'worker' })
    const asAgent = { SIGNALBOX_TOKEN: token }
    const cases: [string[], number, string, Record<string, string>?][] = [
      [['task', 'create', ''], 2, 'INVALID_INPUT'],
      [['event', 'wait', '--cursor', 'nonsense'], 2, 'INVALID_CURSOR'],
      [['agent', 'me'], 3, 'UNAUTHENTICATED', { SIGNALBOX_TOKEN: 'sbx_person_nobody' }],
      [['task', 'create', 'x'], 3, 'PERMISSION_DENIED', asAgent],
      [['task', 'get', 'T-999'], 4, 'RESOURCE_NOT_FOUND'],
      [['task', 'move', 'T-1', 'DONE'], 5, 'INVALID_TRANSITION'],
    ]
    for (const [args, exit, code, env] of cases) {
      const plain = await cli(args, env)
      expect([args, plain.code, plain.stdout]).toEqual([args, exit, ''])
      expect(plain.stderr).toMatch(new RegExp(`^${code}: .{10}`))
    }
    const plain = await daemon.cli(['task', 'get', 'T-999'])
    expect([plain.code, plain.stdout, plain.stderr]).toEqual([4, '', expect.stringMatching(/^RESOURCE_NOT_FOUND: .{10}/)])
    const asJson = await daemon.cli(['task', 'get', 'T-999', '--json'])
    expect([asJson.code, JSON.parse(asJson.stdout).error.code, asJson.stderr]).toEqual([4, 'RESOURCE_NOT_FOUND', ''])
  })

  test('[E5] what is misspelt ends with 2 and says what was perhaps meant', async () => {
    for (const [args, says] of [
      [['task', 'creat', 'x'], /no "signalbox task creat".*create/],
      [['tsk', 'list'], /Did you mean: signalbox task list/],
      [['task', 'create', 'x', 'y'], /"y" is one argument too many/],
      [['plan', 'propose', '--tasks', '[{'], /--tasks must be JSON/],
    ] as const) {
      const { code, stderr, stdout } = await daemon.cli([...args])
      expect([args, code, stdout]).toEqual([args, 2, ''])
      expect(stderr).toMatch(says)
      expect(stderr).not.toContain('    at ')
    }
  })

  test('[E5] help, version and the list of tools need no daemon', async () => {
    const nowhere = { SIGNALBOX_HOME: join(daemon.home, 'nowhere'), SIGNALBOX_PORT: '1' }
    for (const [args, says] of [
      [['--help'], /signalbox serve/],
      [['--version'], /^\d+\.\d+\.\d+\n$/],
      [['tools'], /^task create +Create a task/m],
      [['task', 'create', '--help'], /--title .*required/],
      [['db', '--help'], /signalbox db restore FILE/],
    ] as const) {
      const { code, stdout } = await daemon.cli([...args], '', nowhere)
      expect([args, code]).toEqual([args, 0])
      expect(stdout).toMatch(says)
    }
    expect(existsSync(nowhere.SIGNALBOX_HOME)).toBe(false)
  })

  test('[E5] without a daemon it ends with 7 and says how to start one; without a token with 2', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
    const env = { SIGNALBOX_HOME: folder, SIGNALBOX_PORT: '1' }
    expect(await daemon.cli(['task', 'list'], '', env)).toMatchObject({ code: 2, stderr: expect.stringContaining('signalbox serve') })
    writeFileSync(join(folder, 'owner.token'), 'sbx_person_x\n')
    const gone = await daemon.cli(['task', 'list'], '', env)
    expect([gone.code, gone.stderr]).toEqual([
      7,
      expect.stringMatching(/DISCONNECTED: No Signalbox answers at http:\/\/127.0.0.1:1.*signalbox serve/s),
    ])
    expect((await daemon.cli(['events'], '', env)).code).toBe(7)
    rmSync(folder, { recursive: true })
  })

  test('[E5] a person acts for an agent with --as, and that is recorded', async () => {
    const agent = await daemon.call('agent_invite', { role: 'orchestrator', name: 'Otto' })
    expect((await json('agent', 'me', '--as', 'otto')).id).toBe(agent.agent_id)
    await json('task', 'create', 'for Otto', '--as', 'otto')
    const [row] = rows(databaseOf(daemon), `SELECT * FROM calls WHERE tool = 'task_create' AND principal = ?`, agent.agent_id)
    expect([row.acting_person?.slice(0, 7), row.surface]).toEqual(['person_', 'cli'])
    expect((await cli(['agent', 'me', '--as', 'nobody'])).code).toBe(4)
  })
})

describe('waits and streams', () => {
  const callsOf = (tool: string) => rows(databaseOf(daemon), 'SELECT count(*) AS n FROM calls WHERE tool = ?', tool)[0].n

  test('[E6] a wait that the server cuts short goes on until what it waits for is there', async () => {
    const { handle } = await json('task', 'create', 'waited for')
    const before = callsOf('task_wait')
    const waits = daemon.cli(['task', 'wait', handle, '--timeout-seconds', '60', '--json'])
    await until(() => callsOf('task_wait') >= before + 3, 'it was cut three times')
    await daemon.call('task_move', { task_id: handle, status: 'IN_PROGRESS' })
    const { code, stdout } = await waits
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { code: 'TASK_CHANGED', current_status: 'IN_PROGRESS' }])
  })

  test('[E6] it ends when its own time is over, not when the first cut comes', async () => {
    const { handle } = await json('task', 'create', 'never moved')
    const began = performance.now()
    const { code, stdout } = await cli(['task', 'wait', handle, '--timeout-seconds', '1.2', '--json'])
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { code: 'WAIT_TIMEOUT' }])
    // Timers may fire a little early; the first cut comes after 300 ms.
    expect(performance.now() - began).toBeGreaterThan(1_100)
  })

  test('[E6] events are followed over a restart: each line once, none missing', async () => {
    const { SIGNALBOX_PORT: _, ...env } = daemon.env
    const child = spawn(process.execPath, [BIN, 'events'], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const over = once(child, 'exit')
    onTestFinished(async () => {
      child.kill('SIGINT')
      await over
    })
    const titles: string[] = []
    createInterface({ input: child.stdout }).on('line', (line) => titles.push(JSON.parse(line).data.title))
    await until(async () => /^signalbox_event_streams 1$/m.test(await metrics()), 'it listens')
    await daemon.call('task_create', { title: 'before' })
    await until(() => titles.length === 1, 'the first is heard')
    let said = ''
    child.stderr.on('data', (chunk) => {
      said += chunk
    })
    await daemon.end('SIGKILL')
    await until(() => said.split('connecting again').length > 2, 'it has tried in vain')
    await daemon.start()
    await daemon.call('task_create', { title: 'between' })
    await until(() => titles.length === 2, 'the second is heard')
    await daemon.call('task_create', { title: 'after' })
    await until(() => titles.length === 3, 'the third is heard')
    expect(titles).toEqual(['before', 'between', 'after'])
  })

  async function metrics(): Promise<string> {
    return (await fetch(`${daemon.url}/metrics`, { headers: { authorization: `Bearer ${daemon.token}`, connection: 'close' } })).text()
  }
})

describe('signalbox db', () => {
  /** This daemon cuts every wait short: whoever waits goes on from there. */
  async function firstAfter(from: string): Promise<unknown[]> {
    for (let cursor = from; ; ) {
      const answer = await daemon.call('event_wait', { cursor, types: ['task.created'] })
      if (answer.events.length) return answer.events
      cursor = answer.cursor
    }
  }

  test('[D22] `db check` names values that nobody knows, and ends with 1', async () => {
    const file = join(daemon.home, 'strange.db')
    await daemon.call('task_create', { title: 'strange' })
    expect(await daemon.cli(['db', 'backup', file])).toMatchObject({ code: 0 })
    const strange = new DatabaseSync(file)
    strange.exec(`DROP TRIGGER IF EXISTS tasks_status_known_update; UPDATE tasks SET status = 'weird'`)
    strange.close()
    const { code, stdout } = await daemon.cli(['db', 'check', file])
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/is whole.*\n {2}tasks\.status: .* "weird", which this Signalbox does not know/),
    ])
  })

  test('[E7] backup while it runs, check, restore: what came later is gone, is kept aside, and old cursors still work', async () => {
    const kept = await daemon.call('task_create', { title: 'kept' })
    const backup = await daemon.cli(['db', 'backup'])
    const file = /Backed up to (\S+)/.exec(backup.stdout)?.[1] as string
    expect([backup.code, backup.stdout]).toEqual([0, expect.stringContaining(`signalbox db restore ${file}`)])
    expect(await daemon.cli(['db', 'check', file])).toMatchObject({ code: 0, stdout: `${file} is sound.\n` })
    expect(await daemon.cli(['db', 'check'])).toMatchObject({ code: 0 })
    expect((await daemon.cli(['db', 'check', join(daemon.home, 'nothing.db')])).code).toBe(2)
    expect(await daemon.cli(['db', 'restore'])).toMatchObject({ code: 2, stderr: expect.stringContaining(file) })

    const lost = await daemon.call('task_create', { title: 'lost' })
    const { cursor } = await daemon.call('task_list')
    expect(await daemon.cli(['db', 'restore', file])).toMatchObject({ code: 2, stderr: expect.stringContaining('already uses') })
    await daemon.end()
    const restored = await daemon.cli(['db', 'restore', file])
    expect(restored.code).toBe(0)
    const aside = /kept at (\S+)/.exec(restored.stdout)?.[1] as string
    expect(rows(aside, 'SELECT count(*) AS n FROM tasks WHERE id = ?', lost.task_id)).toEqual([{ n: 1 }])
    await daemon.start()
    expect((await daemon.post('task_get', { task_id: kept.task_id })).ok).toBe(true)
    expect((await daemon.post('task_get', { task_id: lost.task_id })).error.code).toBe('RESOURCE_NOT_FOUND')
    const heard = firstAfter(cursor)
    const next = await daemon.call('task_create', { title: 'next' })
    expect((await heard).at(-1)).toMatchObject({ subject: next.task_id })
  })

  test('[E7] a backup goes where it is told, and never twice to one place', async () => {
    const file = join(daemon.home, 'mine.db')
    expect((await daemon.cli(['db', 'backup', file])).code).toBe(0)
    const before = readFileSync(file)
    expect(await daemon.cli(['db', 'backup', file])).toMatchObject({ code: 2, stderr: expect.stringContaining('already there') })
    expect(readFileSync(file).equals(before)).toBe(true)
    expect(readdirSync(daemon.home).filter((name) => name.includes('partial'))).toEqual([])
  })
})
