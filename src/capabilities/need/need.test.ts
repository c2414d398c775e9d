import { describe, expect, onTestFinished } from 'vitest'
import { answer } from '../../kernel/point.ts'
import { openTestApp, type TestApp, test } from '../../testing/app.ts'
import { QUICK } from '../../testing/effects.ts'
import { FakeGit } from '../../testing/fakes/git.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { capabilities } from '../index.ts'
import { isAfter, type Need, needs } from './point.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

const titles = ({ needs }: Any) => needs.map(({ title }: Any) => title)
const counted = ({ kinds }: Any) => Object.fromEntries(kinds.flatMap(({ kind, count }: Any) => [[kind, count]]))

async function pages(app: TestApp, input: Record<string, unknown>): Promise<Any[]> {
  const all: Any[] = [await app.owner.call('need_list', input)]
  for (let { next } = all[0]; next !== null; { next } = all.at(-1)) all.push(await app.owner.call('need_list', { ...input, after: next }))
  return all
}

/** A capability of somebody else, of whose ten needs all but one began at the same moment. */
const trains = (since = 5_000) => {
  const all: Need[] = Array.from({ length: 10 }, (_, n) => ({
    kind: 'train',
    id: `train_${n}`,
    handle: null,
    title: `Train ${n}`,
    detail: null,
    by: null,
    task_id: null,
    project_id: null,
    since: n === 7 ? 1_000 : since,
  }))
  return {
    name: 'train',
    tools: [],
    answers: [
      answer(needs, async (_ctx, { kinds, limit, after }) => ({
        kinds: [{ kind: 'train', title: 'Trains', urgency: 'now' as const }],
        counts: { train: all.length },
        needs: all
          .toSorted((a, b) => (isAfter(a, b) ? 1 : -1))
          .filter((one) => kinds?.includes('train') !== false && isAfter(one, after('now')))
          .slice(0, limit),
        steps: async (shown) => new Map(shown.map(({ id }) => [id, [{ tool: 'task_list', arguments: {} }]])),
      })),
    ],
  }
}

describe('what needs a person', () => {
  test('[ND1] [ND2] the most urgent first, then the oldest; every page but the last is full, and nothing is there twice', async ({
    app,
  }) => {
    for (let n = 0; n < 7; n++) await app.task({ title: `Task ${n}` })
    const ann = await app.agent('worker', { name: 'Ann' })
    for (let n = 0; n < 4; n++) await ann.call('mail_send', { to_human: true, subject: `Letter ${n}`, body: String(n) })
    const review = await app.task({ title: 'Handed in' })
    for (const status of ['IN_PROGRESS', 'REVIEW']) await app.owner.call('task_move', { task_id: review.id, status })
    const whole = await app.owner.call('need_list', { limit: 200 })
    expect(titles(whole)).toEqual([
      ...[0, 1, 2, 3].map((n) => `Letter ${n}`),
      'Handed in',
      ...[0, 1, 2, 3, 4, 5, 6].map((n) => `Task ${n}`),
    ])
    expect(whole).toMatchObject({ total: 12, next: null, tasks: { BACKLOG: 7, IN_PROGRESS: 0, REVIEW: 1, DONE: 0 } })
    const cut = await pages(app, { limit: 5 })
    expect(cut.flatMap(titles)).toEqual(titles(whole))
    expect(cut.map(({ needs }) => needs.length)).toEqual([5, 5, 2])
    for (const page of cut) expect([page.total, counted(page)]).toEqual([12, { letter: 4, review: 1, ready: 7 }])
    const some = await app.owner.call('need_list', { kinds: ['letter'], limit: 2 })
    expect([titles(some), some.total, counted(some)]).toEqual([['Letter 0', 'Letter 1'], 4, { letter: 4, review: 1, ready: 7 }])
    expect(await app.owner.refused('need_list', { after: '7.x' })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[ND1] [ND6] a kind of somebody else has its place, and those of one moment are cut as well', async () => {
    const app = await openTestApp({ capabilities: [...capabilities, trains()], dialects: [] })
    onTestFinished(() => app.close())
    await app.task({ title: 'Task' })
    const cut = await pages(app, { limit: 3 })
    expect(cut.flatMap(titles)).toEqual(['Train 7', ...[0, 1, 2, 3, 4, 5, 6, 8, 9].map((n) => `Train ${n}`), 'Task'])
    expect(cut[0].kinds).toContainEqual({ kind: 'train', title: 'Trains', urgency: 'now', count: 10 })
    expect(cut[0].needs[0]).toMatchObject({ began_at: '1970-01-01T00:00:01.000Z', steps: [{ tool: 'task_list', arguments: {} }] })
  })

  test('[ND4] an agent sees its own project, no letters and no questions; what belongs to none is for operators', async ({ app }) => {
    const ours = await app.project()
    const { project_id: theirs } = await app.owner.call('project_create', { name: 'Theirs' })
    await app.task({ title: 'Ours' })
    await app.owner.call('task_create', { project_id: theirs, title: 'Theirs' })
    const ann = await app.agent('planner', { project_id: ours })
    await ann.call('mail_send', { to_human: true, subject: 'Which port?', body: 'x' })
    expect(titles(await ann.call('need_list'))).toEqual(['Ours'])
    expect(await ann.refused('need_list', { project_id: theirs })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(titles(await app.owner.call('need_list'))).toEqual(['Which port?', 'Ours', 'Theirs'])
    expect(titles(await app.owner.call('need_list', { project_id: ours }))).toEqual(['Which port?', 'Ours'])
    expect(titles(await app.owner.call('need_list', { project_id: theirs }))).toEqual(['Theirs'])
  })

  test('[ND4] what is stuck outside is shown to operators, and not within a project', async () => {
    const app = await openTestApp({ effectTimes: QUICK })
    onTestFinished(() => app.close())
    await app.owner.call('setting_update', { key: 'mail.notify_command', value: ['/bin/false'] })
    const ann = await app.agent('worker')
    await ann.call('mail_send', { to_human: true, subject: 'Which port?', body: 'x' })
    const stuck = async () => (await app.owner.call('need_list', { kinds: ['effect'] })).needs
    await until(async () => (await stuck()).length === 1)
    const [{ id, title, steps }] = await stuck()
    expect([title, steps.map(({ tool }: Any) => tool)]).toEqual([
      expect.stringMatching(/ is (dead|unknown)$/),
      ['effect_retry', 'effect_drop'],
    ])
    const { project_id } = await app.owner.call('project_create', { name: 'Any' })
    expect(counted(await app.owner.call('need_list', { project_id }))).toEqual({})
    const viewer = await app.agent('orchestrator', { profile: 'viewer' })
    expect(counted(await viewer.call('need_list')).effect).toBe(undefined)
    await app.owner.call('effect_drop', { effect_id: id })
    expect(await stuck()).toEqual([])
  })

  test('[ND5] a task whose agent asks is there once, as the question; to an agent it is a task that waits for a person', async () => {
    const runner = new FakeRunner()
    const app = await openTestApp({ ports: { runner, git: new FakeGit(), harnesses: harnessesOf(fakeHarness()) }, effectTimes: QUICK })
    onTestFinished(() => app.close())
    await app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    const project_id = await app.project()
    await app.owner.call('repo_add', { path: '/repo', project_id })
    const task = await app.task({ title: 'Publish' })
    await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', options: { approvals: 'ask' } })
    const run = async () => (await app.owner.call('run_list', { task_id: task.id })).runs[0]
    await until(async () => (await run())?.state === 'running')
    runner.print(
      (await run()).id,
      { type: 'turn_started' },
      { type: 'approval_asked', id: 'q1', name: 'Bash', input: '{"command":"npm publish"}' },
    )
    await until(async () => (await app.owner.call('need_list')).total === 1)
    expect((await app.owner.call('need_list')).needs).toMatchObject([
      { kind: 'permission', urgency: 'now', handle: 'A-1', title: 'Bash: npm publish', detail: `${task.handle} Publish`, task_id: task.id },
    ])
    const other = await app.agent('orchestrator', { project_id })
    expect((await other.call('need_list')).needs).toMatchObject([{ kind: 'stopped', handle: task.handle }])
  })
})
