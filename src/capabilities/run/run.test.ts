import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { errand } from '../../../test/errand/index.ts'
import { createApp } from '../../daemon/app.ts'
import { openTestApp, type TestApp } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { testSurroundings } from '../../testing/ports.ts'
import { until } from '../../testing/signals.ts'
import { capabilities } from '../index.ts'

const withErrands = { capabilities: [...capabilities, errand], dialects: [] }

async function open(settings: Record<string, unknown> = {}) {
  const runner = new FakeRunner()
  const ports = { runner, git: new FakeGit(), harnesses: harnessesOf(fakeHarness()) }
  const app = await openTestApp({ ...withErrands, ports, effectTimes: QUICK })
  onTestFinished(() => app.close())
  const all = { 'runs.default_harness': 'fake', 'runs.linger_seconds': 0, 'runs.max_lives': 1, ...settings }
  for (const [key, value] of Object.entries(all)) await app.owner.call('setting_update', { key, value })
  const project_id = await app.project()
  const send = async (words: string, project = project_id): Promise<string> =>
    (await app.owner.call('errand_start', { project_id: project, folder: '/errands', words, harness: 'fake' })).errand_id
  const states = async () =>
    Object.fromEntries((await app.owner.call('errand_list')).errands.map(({ words, state }: Words) => [words, state]))
  const runs = async () => (await app.owner.call('usage_get', { limit: 200 })).runs
  return Object.assign(app, { runner, project_id, send, states, runs })
}

interface Words {
  words: string
  state: string
}

const living = (app: TestApp & { runner: FakeRunner }, count: number) => until(() => app.runner.living.length === count)

describe('a run', () => {
  test('[RN1] [RN3] is in the folder of its owner, told its words, and ends as its owner says; no task is needed', async () => {
    const app = await open({ 'runs.approvals': ['*=ask'] })
    await app.send('Buy milk')
    await living(app, 1)
    const [run] = app.runner.living as [string]
    const spec = app.runner.runs.get(run)?.spec
    expect([spec?.cwd, spec?.env.ERRAND]).toEqual(['/errands', expect.stringMatching(/^errand_/)])
    expect(app.runner.kept.get(`${run}/brief`)).toBe('Buy milk')
    app.runner.print(run, { type: 'turn_started' }, { type: 'text', from: 'agent', text: 'It is bought.' })
    await until(async () => (await app.owner.call('transcript_read', { run_id: run })).entries.length === 1)
    expect(await app.runs()).toMatchObject([{ run_id: run, task_id: null, task: null, harness: 'fake', turns: 1 }])
    app.runner.exit(run, 0)
    await until(async () => (await app.states())['Buy milk'] === 'done')
    expect((await app.owner.call('approval_list')).approvals).toEqual([])
    expect(await app.events({ type: 'run.ended' })).toMatchObject([{ subject: run, task: null, data: { job_id: null } }])
    expect((await app.owner.call('need_list')).needs).toEqual([])
    await app.send('Buy more')
    await living(app, 1)
    app.runner.exit(app.runner.living[0] as string, 1)
    await until(async () => (await app.owner.call('need_list')).total === 1)
    expect((await app.owner.call('need_list')).needs).toMatchObject([{ kind: 'errand', title: 'Buy more' }])
  })

  test('[RN2] jobs and errands wait in one line, by priority and then by who came first; places and budgets hold for both', async () => {
    const app = await open({ 'runs.max_per_host': 1 })
    await app.owner.call('repo_add', { path: '/repo', project_id: app.project_id })
    await app.send('first')
    await living(app, 1)
    await app.send('second')
    const low = await app.task({ title: 'low', priority: 'low' })
    const high = await app.task({ title: 'high', priority: 'high' })
    const medium = await app.task({ title: 'medium' })
    for (const { id } of [low, medium, high]) await app.owner.call('job_submit', { task_id: id, action: 'start_agent' })
    await app.send('third')
    const order: string[] = []
    for (let n = 0; n < 6; n++) {
      await living(app, 1)
      const [run] = app.runner.living as [string]
      order.push(String(app.runner.kept.get(`${run}/brief`)).match(/first|second|third|low|medium|high/)?.[0] ?? '?')
      app.runner.exit(run, 0)
      await until(() => !app.runner.living.includes(run))
    }
    expect(order).toEqual(['first', 'high', 'second', 'medium', 'third', 'low'])
    const { project_id } = await app.owner.call('project_create', { name: 'Poor' })
    await app.owner.call('budget_set', { project_id, turns: 1 })
    await app.send('spend', project_id)
    await living(app, 1)
    app.runner.print(app.runner.living[0] as string, { type: 'turn_started' })
    await until(async () => (await app.states()).spend === 'failed')
    await app.send('too late', project_id)
    expect((await app.states())['too late']).toBe('failed')
  })
})

describe.runIf(inject('postgres'))('where two machines share a database', () => {
  test('[RN4] each has its own places, and what has none on one begins on the other', async () => {
    const app = await open({ 'runs.max_per_host': 2, 'runs.max_per_project': 10 })
    const runner = new FakeRunner()
    const other = await createApp({
      ...withErrands,
      database: app.database,
      ...testSurroundings(app.folder),
      ports: { ...testSurroundings(app.folder).ports, runner, git: new FakeGit(), harnesses: harnessesOf(fakeHarness()) },
      hostName: 'server:/two',
      onDefect: () => {},
      ownerSecrets: [app.app.ownerToken],
      effectTimes: QUICK,
    })
    onTestFinished(() => other.close())
    for (let n = 0; n < 6; n++) await app.send(`errand ${n}`)
    await until(() => app.runner.living.length + runner.living.length === 4)
    expect([app.runner.living.length, runner.living.length]).toEqual([2, 2])
    expect(Object.values(await app.states()).filter((state) => state === 'waiting')).toHaveLength(2)
    runner.exit(runner.living[0] as string, 0)
    await until(() => runner.started.length === 3)
    expect([app.runner.living.length, runner.living.length]).toEqual([2, 2])
  })
})
