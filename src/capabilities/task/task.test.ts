import { describe, expect, onTestFinished } from 'vitest'
import { createHost } from '../../daemon/host.ts'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { fc } from '../../testing/property.ts'
import { until } from '../../testing/signals.ts'

type Fields = Record<string, unknown>
type Task = {
  id: string
  handle: string
  status: string
  version: number
  updated_at: string
  blocked_by: string[]
  assignee_id: string | null
} & Fields

const get = async (app: TestApp, task: string | Task): Promise<Task> =>
  (await app.owner.call('task_get', { task_id: typeof task === 'string' ? task : task.id })).task
const move = (caller: Caller, task: Task, status: string, more: Fields = {}) =>
  caller.invoke('task_move', { task_id: task.id, status, ...more })
const codeOf = (answer: Awaited<ReturnType<Caller['invoke']>>) => (answer.ok ? 'ok' : answer.error.code)

async function at(app: TestApp, status: string): Promise<Task> {
  const task: Task = await app.task()
  const way: Record<string, string[]> = { BACKLOG: [], IN_PROGRESS: ['IN_PROGRESS'], REVIEW: ['IN_PROGRESS', 'REVIEW'], DONE: [] }
  for (const step of way[status] ?? []) await app.owner.call('task_move', { task_id: task.id, status: step })
  if (status === 'DONE') await app.owner.call('task_close', { task_id: task.id, reason: 'no longer needed' })
  return get(app, task)
}

describe('creating and reading', () => {
  test('[T1] a new task is in the backlog, with a handle, and in the log in the same step', async ({ app }) => {
    const task = await app.task({
      title: 'Write it',
      acceptance_criteria: ['it works'],
      priority: 'high',
      task_type: 'PAIR',
      base_branch: 'main',
    })
    expect(task).toMatchObject({
      handle: 'T-1',
      status: 'BACKLOG',
      title: 'Write it',
      acceptance_criteria: ['it works'],
      priority: 'high',
      task_type: 'PAIR',
      base_branch: 'main',
      version: 1,
      attention: 'human',
      created_by: app.owner.id,
    })
    expect(await app.events({ type: 'task.created' })).toMatchObject([
      { subject: task.id, task: task.id, project: task.project_id, data: { handle: 'T-1', version: 1 } },
    ])
  })

  test('[T1] the number of a task is never given twice, not even after it was deleted', async ({ app }) => {
    const first = await app.task()
    await app.owner.call('task_delete', { task_id: first.id })
    await app.owner.refused('task_create', { title: 'x', blocked_by: ['T-99'] })
    const handles = (await Promise.all(Array.from({ length: 20 }, () => app.task()))).map((task) => task.handle)
    expect(new Set(['T-1', ...handles]).size).toBe(21)
  })

  test('[T2] the board comes in the order of the numbers, filtered, in pages that skip and repeat nothing', async ({ app }) => {
    const made: Task[] = []
    for (let i = 0; i < 12; i++) made.push(await app.task({ title: `t${i}`, ...(i % 3 === 2 ? { parent_id: 'T-1' } : {}) }))
    const worker = await app.worker((made[4] as Task).id)
    await app.owner.call('task_move', { task_id: 'T-5', status: 'IN_PROGRESS' })
    const list = async (input: Fields) => (await app.owner.call('task_list', input)).tasks.map((task: Task) => task.handle)
    expect(await list({ status: ['IN_PROGRESS'] })).toEqual(['T-5'])
    expect(await list({ assignee_id: worker.handle })).toEqual(['T-5'])
    expect(await list({ parent_id: 'T-1' })).toEqual(['T-3', 'T-6', 'T-9', 'T-12'])
    expect(await list({ parent_id: 'T-1', exclude_task_ids: ['T-3', 'T-12'] })).toEqual(['T-6', 'T-9'])
    const seen: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await app.owner.call('task_list', { limit: 5, after })
      seen.push(...page.tasks.map((task: Task) => task.handle))
      after = page.next ?? undefined
      if (!after) break
    }
    expect(seen).toEqual(made.map((task) => task.handle))
    const newest = await app.owner.call('task_list', { limit: 5, order: 'newest' })
    expect(newest.tasks.map((task: Task) => task.handle)).toEqual(['T-12', 'T-11', 'T-10', 'T-9', 'T-8'])
    expect((await list({ limit: 5, order: 'newest', after: newest.next })).slice(0, 2)).toEqual(['T-7', 'T-6'])
    const recent: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await app.owner.call('task_list', { limit: 5, order: 'recent', after })
      recent.push(...page.tasks.map((task: Task) => task.handle))
      after = page.next ?? undefined
      if (!after) break
    }
    expect(recent[0]).toBe('T-5')
    expect([...recent].sort()).toEqual(made.map((task) => task.handle).sort())
    for (const after of ['x', '-1', '9'.repeat(100)])
      expect(await app.owner.refused('task_list', { after })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[T2] what a worker needs to start comes in one answer', async ({ app }) => {
    const parent = await app.task({ title: 'parent' })
    const sibling = await app.task({ title: 'sibling', parent_id: parent.id })
    const task = await app.task({ title: 'mine', parent_id: parent.id })
    await app.owner.call('task_note', { task_id: task.id, body: 'look here' })
    const worker = await app.worker(task.id)
    const context = await worker.call('task_context', { task_id: task.handle })
    expect(context).toMatchObject({
      task: { id: task.id, notes: [{ body: 'look here' }] },
      project: { id: task.project_id },
      repos: [],
      siblings: [{ id: sibling.id }],
      history: [{ type: 'task.created' }, { type: 'task.noted' }, { type: 'task.assigned' }],
    })
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await worker.call('event_wait', { cursor: context.cursor, task_id: task.id })).toMatchObject({
      events: [{ type: 'task.moved' }],
    })
  })
})

describe('changing', () => {
  test('[T3] fields change, the version counts, and the log names what changed', async ({ app }) => {
    const task = await app.task()
    const { task: changed } = await app.owner.call('task_update', {
      task_id: task.id,
      title: 'New',
      priority: 'low',
      acceptance_criteria: ['a', 'b'],
    })
    expect(changed).toMatchObject({ title: 'New', priority: 'low', acceptance_criteria: ['a', 'b'], version: 2, status: 'BACKLOG' })
    expect(await app.events({ type: 'task.updated' })).toMatchObject([
      { data: { version: 2, fields: ['title', 'priority', 'acceptance_criteria'] } },
    ])
    expect(await app.owner.refused('task_update', { task_id: task.id })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('task_update', { task_id: task.id, status: 'DONE' })).toMatchObject({ code: 'INVALID_INPUT' })
  })

  test('[T3] updated_at grows with every change, also when the clock stands still or goes back', async () => {
    let now = Date.parse('2026-03-01T12:00:00Z')
    const app = await openTestApp({ host: createHost(() => now) })
    onTestFinished(() => app.close())
    const task = await app.task()
    const times = [task.updated_at]
    const steps = [0, 0, -3_600_000, 1, -86_400_000, 7_200_000]
    for (const [i, step] of steps.entries()) {
      now += step
      const changed =
        i % 2
          ? { tool: 'task_move', input: { status: i % 4 === 1 ? 'IN_PROGRESS' : 'BACKLOG' } }
          : { tool: 'task_update', input: { title: `t${i}` } }
      times.push((await app.owner.call(changed.tool, { task_id: task.id, ...changed.input })).task.updated_at)
    }
    expect(times).toEqual([...new Set(times)].toSorted())
  })

  test('[T4] whoever says which version or status they know is refused when it is another by now', async ({ app }) => {
    const task = await app.task()
    await app.owner.call('task_update', { task_id: task.id, title: 'a', expected_version: 1 })
    expect(await app.owner.refused('task_update', { task_id: task.id, title: 'b', expected_version: 1 })).toMatchObject({
      code: 'CONFLICT',
      next_tool: 'task_get',
    })
    expect(codeOf(await move(app.owner, task, 'IN_PROGRESS', { expected_status: 'REVIEW' }))).toBe('CONFLICT')
    expect(await get(app, task)).toMatchObject({ title: 'a', status: 'BACKLOG', version: 2 })
  })

  test('[T10] a hundred race to move one task: exactly one wins, and it moved once', async ({ app }) => {
    const task = await app.task()
    const racers = await Promise.all(Array.from({ length: 10 }, () => app.agent('orchestrator')))
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) =>
        move(racers[i % 10] as Caller, task, 'IN_PROGRESS', i % 2 ? { expected_status: 'BACKLOG' } : {}),
      ),
    )
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1)
    expect(new Set(answers.map(codeOf))).toEqual(new Set(['ok', 'CONFLICT', 'INVALID_TRANSITION']))
    expect(await app.events({ type: 'task.moved' })).toHaveLength(1)
    expect(await get(app, task)).toMatchObject({ status: 'IN_PROGRESS', version: 2 })
  })

  test('[T10] a hundred race to change one version: exactly one wins', async ({ app }) => {
    const task = await app.task()
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, i) => app.owner.invoke('task_update', { task_id: task.id, title: `t${i}`, expected_version: 1 })),
    )
    expect(answers.filter((answer) => answer.ok)).toHaveLength(1)
    expect((await get(app, task)).version).toBe(2)
  })
})

describe('status', () => {
  /** As the design has it; task_close and a merge lead to DONE, nothing else. */
  const MOVES: Record<string, string[]> = {
    BACKLOG: ['IN_PROGRESS'],
    IN_PROGRESS: ['REVIEW', 'BACKLOG'],
    REVIEW: ['IN_PROGRESS'],
    DONE: ['BACKLOG'],
  }
  const STATUSES = Object.keys(MOVES)
  /** It hands its work in with review_request. */
  const OF_ITS_WORKER: Record<string, string[]> = { ...MOVES, IN_PROGRESS: ['BACKLOG'], REVIEW: [], DONE: [] }

  test.for(STATUSES)('[T5] from %s an operator makes the moves there are, and no other', async (from, { app }) => {
    for (const to of STATUSES) {
      const task = await at(app, from)
      const answer = await move(app.owner, task, to)
      const allowed = MOVES[from]?.includes(to)
      expect({ to, code: codeOf(answer) }).toEqual({ to, code: allowed ? 'ok' : 'INVALID_TRANSITION' })
      expect((await get(app, task)).status).toBe(allowed ? to : from)
      if (answer.ok) expect(answer.value).toMatchObject({ previous_status: from, task: { status: to, version: task.version + 1 } })
    }
  })

  test.for(STATUSES)('[T6] from %s a worker makes the moves of its own task, and cannot take it out of review', async (from, { app }) => {
    for (const to of STATUSES) {
      const task = await at(app, from)
      if (from === 'DONE') continue
      const worker = await app.worker(task.id)
      expect({ to, code: codeOf(await move(worker, task, to)) }).toEqual({
        to,
        code: OF_ITS_WORKER[from]?.includes(to) ? 'ok' : 'INVALID_TRANSITION',
      })
    }
  })

  test("[T6] nobody below operator moves another's task", async ({ app }) => {
    const [mine, other] = [await app.task(), await app.task()]
    const worker = await app.worker(mine.id)
    const loose = await app.agent('orchestrator', { profile: 'pair_worker' })
    for (const caller of [worker, loose]) expect(codeOf(await move(caller, other, 'IN_PROGRESS'))).toBe('PERMISSION_DENIED')
    expect((await get(app, other)).status).toBe('BACKLOG')
  })

  test('[T7] only a reasoned close makes a task DONE, and its worker is free again', async ({ app }) => {
    const task = await at(app, 'IN_PROGRESS')
    const worker = await app.worker(task.id)
    expect(await app.owner.refused('task_move', { task_id: task.id, status: 'DONE' })).toMatchObject({
      code: 'INVALID_TRANSITION',
      next_tool: 'task_close',
      message: expect.stringContaining('merged'),
    })
    expect(await app.owner.refused('task_close', { task_id: task.id })).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.owner.refused('task_close', { task_id: task.id, reason: '' })).toMatchObject({ code: 'INVALID_INPUT' })
    const { task: closed } = await app.owner.call('task_close', { task_id: task.id, reason: 'obsolete' })
    expect(closed).toMatchObject({ status: 'DONE', closed_reason: 'obsolete', assignee_id: null, attention: null })
    expect(await worker.call('agent_me')).toMatchObject({ task_id: null, state: 'IDLE' })
    expect(await app.owner.refused('task_close', { task_id: task.id, reason: 'again' })).toMatchObject({ code: 'INVALID_TRANSITION' })
    expect(await app.owner.call('task_move', { task_id: task.id, status: 'BACKLOG' })).toMatchObject({
      task: { status: 'BACKLOG', closed_reason: null },
    })
  })

  test('[T8] a worker never approves itself, whatever its profile', async ({ app }) => {
    const task = await at(app, 'REVIEW')
    const worker = await app.agent('worker', { profile: 'maintainer' })
    await app.owner.call('task_assign', { task_id: task.id, agent_id: worker.id })
    expect(await worker.refused('task_close', { task_id: task.id, reason: 'I am done' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(codeOf(await move(worker, task, 'DONE'))).toBe('INVALID_TRANSITION')
    expect((await get(app, task)).status).toBe('REVIEW')
  })

  test('[T9] a task type in the place of a status comes back with the call that was meant', async ({ app }) => {
    const task = await app.task()
    for (const type of ['AUTO', 'PAIR']) {
      const error = await app.owner.refused('task_move', { task_id: task.id, status: type })
      expect(error).toMatchObject({
        code: 'STATUS_WAS_TASK_TYPE',
        next_tool: 'task_update',
        next_arguments: { task_id: task.handle, task_type: type },
      })
      expect(await app.owner.call(error.next_tool as string, error.next_arguments)).toMatchObject({ task: { task_type: type } })
    }
    expect(await app.owner.refused('task_move', { task_id: task.id, status: 'FLYING' })).toMatchObject({
      code: 'INVALID_INPUT',
      suggestions: STATUSES,
    })
  })

  test('[T5] whatever is tried in whatever order, the task is where the model says', async ({ app }) => {
    interface Model {
      status: string
      deleted: boolean
      version: number
    }
    interface Real {
      task: Task
      worker: Caller
    }
    type Outcome = { code: string; next: string }
    const command = (
      name: string,
      expected: (status: string) => Outcome,
      call: (real: Real) => Promise<Awaited<ReturnType<Caller['invoke']>>>,
    ) => ({
      toString: () => name,
      check: () => true,
      async run(model: Model, real: Real) {
        const answer = await call(real)
        const { code, next } = model.deleted ? { code: 'TASK_DELETED', next: model.status } : expected(model.status)
        expect({ name, code: codeOf(answer) }).toEqual({ name, code })
        if (answer.ok) model.version++
        model.status = next
        if (model.deleted) return
        expect(await get(app, real.task)).toMatchObject({ status: model.status, version: model.version })
      },
    })
    const byTable = (table: Record<string, string[]>, to: string) => (from: string) =>
      table[from]?.includes(to) ? { code: 'ok', next: to } : { code: 'INVALID_TRANSITION', next: from }
    const moves = fc.constantFrom(...STATUSES)
    const commands = [
      moves.map((to) => command(`owner moves to ${to}`, byTable(MOVES, to), ({ task }) => move(app.owner, task, to))),
      fc.constant(
        command(
          'owner closes',
          (from) => (from === 'DONE' ? { code: 'INVALID_TRANSITION', next: from } : { code: 'ok', next: 'DONE' }),
          ({ task }) => app.owner.invoke('task_close', { task_id: task.id, reason: 'x' }),
        ),
      ),
      fc.constant({
        toString: () => 'owner deletes',
        check: (model: Model) => !model.deleted,
        async run(model: Model, { task }: Real) {
          expect(codeOf(await app.owner.invoke('task_delete', { task_id: task.id }))).toBe('ok')
          model.deleted = true
        },
      }),
    ]
    await fc.assert(
      fc.asyncProperty(fc.commands(commands, { maxCommands: 25 }), async (steps) => {
        const task: Task = await app.task()
        const worker = app.owner
        await fc.asyncModelRun(() => ({ model: { status: 'BACKLOG', deleted: false, version: 1 }, real: { task, worker } }), steps)
      }),
      { numRuns: 40 },
    )
  })
})

describe('dependencies', () => {
  test('[T11] a circle is refused, however long, and the edges stay as they were', async ({ app }) => {
    const [a, b, c] = [await app.task(), await app.task(), await app.task()]
    const wait = (task: Task, ...blocked_by: Task[]) =>
      app.owner.invoke('task_update', { task_id: task.id, blocked_by: blocked_by.map((t) => t.handle) })
    expect(codeOf(await wait(a, b))).toBe('ok')
    expect(codeOf(await wait(b, c))).toBe('ok')
    expect(codeOf(await wait(c, a))).toBe('DEPENDENCY_CYCLE')
    expect(codeOf(await wait(b, b))).toBe('DEPENDENCY_CYCLE')
    expect(codeOf(await wait(c, b, a))).toBe('DEPENDENCY_CYCLE')
    expect([(await get(app, a)).blocked_by, (await get(app, b)).blocked_by, (await get(app, c)).blocked_by]).toEqual([
      [b.handle],
      [c.handle],
      [],
    ])
    expect(codeOf(await wait(a))).toBe('ok')
    expect(codeOf(await wait(c, a))).toBe('ok')
  })

  test('[T11] random edges never close a circle, and only those that would are refused', async ({ app }) => {
    const SIZE = 6
    const step = fc.tuple(fc.nat(SIZE - 1), fc.uniqueArray(fc.nat(SIZE - 1), { maxLength: 3 }))
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 14 }), async (steps) => {
        const tasks: Task[] = []
        for (let i = 0; i < SIZE; i++) tasks.push(await app.task())
        const edges = new Map<number, number[]>()
        for (const [task, blockers] of steps) {
          const wanted = new Map(edges).set(task, blockers)
          const answer = await app.owner.invoke('task_update', { task_id: tasks[task]?.id, blocked_by: blockers.map((i) => tasks[i]?.id) })
          expect(codeOf(answer)).toBe(hasCircle(wanted) ? 'DEPENDENCY_CYCLE' : 'ok')
          if (answer.ok) edges.set(task, blockers)
        }
        for (const [task, blockers] of edges) {
          const handles = blockers.toSorted((x, y) => x - y).map((i) => tasks[i]?.handle)
          expect((await get(app, tasks[task] as Task)).blocked_by).toEqual(handles)
        }
      }),
      { numRuns: 25 },
    )
  })

  test('[T11] two that would close a circle together: one is refused', async ({ app }) => {
    const [a, b] = [await app.task(), await app.task()]
    const both = await Promise.all([
      app.owner.invoke('task_update', { task_id: a.id, blocked_by: [b.id] }),
      app.owner.invoke('task_update', { task_id: b.id, blocked_by: [a.id] }),
    ])
    expect(both.map(codeOf).toSorted()).toEqual(['DEPENDENCY_CYCLE', 'ok'])
  })

  test('[T12] a task does not start before what it waits for is done, and says what that is', async ({ app }) => {
    const [first, second] = [await app.task(), await app.task()]
    const task = await app.task({ blocked_by: [first.handle, second.id, first.id] })
    expect(task).toMatchObject({ blocked_by: [first.handle, second.handle], attention: 'dependency' })
    expect(await app.owner.refused('task_move', { task_id: task.id, status: 'IN_PROGRESS' })).toMatchObject({
      code: 'TASK_BLOCKED',
      suggestions: [first.handle, second.handle],
    })
    await app.owner.call('task_close', { task_id: first.id, reason: 'done by hand' })
    expect(await get(app, task)).toMatchObject({
      blocked_by: [second.handle],
      dependencies: [{ id: first.id, status: 'DONE' }, { id: second.id }],
    })
    await app.owner.call('task_delete', { task_id: second.id })
    expect(await get(app, task)).toMatchObject({ blocked_by: [], attention: 'human' })
    expect(codeOf(await move(app.owner, task, 'IN_PROGRESS'))).toBe('ok')
    expect(await get(app, first)).toMatchObject({ dependents: [{ id: task.id }] })
  })

  test('[T13] a task is not its own ancestor, and a deleted grandparent is no obstacle', async ({ app }) => {
    const top = await app.task()
    const middle = await app.task({ parent_id: top.id })
    const leaf = await app.task({ parent_id: middle.handle })
    const under = (task: Task, parent_id: string | null) => app.owner.invoke('task_update', { task_id: task.id, parent_id })
    expect(codeOf(await under(top, leaf.id))).toBe('DEPENDENCY_CYCLE')
    expect(codeOf(await under(top, top.id))).toBe('DEPENDENCY_CYCLE')
    await app.owner.call('task_delete', { task_id: top.id })
    const other = await app.task()
    expect(codeOf(await under(other, leaf.id))).toBe('ok')
    expect(codeOf(await under(other, top.id))).toBe('TASK_DELETED')
    expect(codeOf(await under(other, null))).toBe('ok')
    expect(await app.owner.refused('task_create', { title: 'x', parent_id: top.id })).toMatchObject({ code: 'TASK_DELETED' })
  })
})

describe('notes', () => {
  test('[T14] notes that many write at once are all there, each once, in the order of the log', async ({ app }) => {
    const task = await app.task()
    const writers = await Promise.all([app.worker(task.id), app.agent('orchestrator'), app.agent('orchestrator')])
    const bodies = Array.from({ length: 150 }, (_, i) => `note ${i}`)
    await Promise.all(bodies.map((body, i) => (writers[i % 3] as Caller).call('task_note', { task_id: task.id, body })))
    const { task: seen } = await app.owner.call('task_get', { task_id: task.id, notes: 200 })
    expect(seen.note_count).toBe(150)
    expect(seen.notes.map((note: { body: string }) => note.body).toSorted()).toEqual(bodies.toSorted())
    const logged = (await app.events({ type: 'task.noted' })).map((event) => event.data.note_id)
    expect(seen.notes.map((note: { id: string }) => note.id)).toEqual(logged)
  })

  test('[T14] the latest ones are shown, oldest first, with their author; none is ever changed', async ({ app }) => {
    const task = await app.task()
    for (let i = 0; i < 25; i++) await app.owner.call('task_note', { task_id: task.id, body: `n${i}` })
    const { task: seen } = await app.owner.call('task_get', { task_id: task.id, notes: 3 })
    expect(seen.notes).toMatchObject(['n22', 'n23', 'n24'].map((body) => ({ body, author: app.owner.id })))
    expect(seen).toMatchObject({ note_count: 25, version: 1 })
    expect((await get(app, task)).notes).toHaveLength(20)
    expect(await app.owner.call('task_get', { task_id: task.id, notes: 0 })).toMatchObject({ task: { notes: [], note_count: 25 } })
    const writes = app.app.registry.tools.filter((tool) => tool.name.includes('note')).map((tool) => tool.name)
    expect(writes).toEqual(['task_note'])
  })

  test('[T14] text is kept as it was written', async ({ app }) => {
    const task = await app.task()
    const body = '  <b>"quoted" \\ 🙂 ‮bidi\r\n\ttabs; DROP TABLE tasks --  '
    await app.owner.call('task_note', { task_id: task.id, body })
    expect((await get(app, task)).notes).toMatchObject([{ body }])
  })
})

describe('assigning', () => {
  test('[T15] an agent has one task and a task one agent: assigning takes both from where they were', async ({ app }) => {
    const [a, b] = [await app.task(), await app.task()]
    const [ann, bob] = [await app.worker(a.id), await app.worker(b.id)]
    await app.owner.call('task_assign', { task_id: a.handle, agent_id: bob.handle })
    expect([(await get(app, a)).assignee_id, (await get(app, b)).assignee_id]).toEqual([bob.id, null])
    expect([(await ann.call('agent_me')).task_id, (await bob.call('agent_me')).task_id]).toEqual([null, a.id])
    await app.owner.call('task_assign', { task_id: a.id, agent_id: null })
    expect([(await get(app, a)).assignee_id, (await bob.call('agent_me')).task_id]).toEqual([null, null])
  })

  test('[T15] an assignment that is refused changes nothing', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    const { project_id } = await app.owner.call('project_create', { name: 'Elsewhere' })
    const stranger = await app.agent('worker', { project_id })
    expect(await app.owner.refused('task_assign', { task_id: task.id, agent_id: stranger.id })).toMatchObject({
      code: 'INVALID_AGENT_STATE',
    })
    expect((await get(app, task)).assignee_id).toBe(worker.id)
    expect(await worker.call('agent_me')).toMatchObject({ task_id: task.id })
    await app.owner.call('task_close', { task_id: task.id, reason: 'x' })
    expect(await app.owner.refused('task_assign', { task_id: task.id, agent_id: worker.id })).toMatchObject({ code: 'INVALID_TRANSITION' })
  })

  test('[T15] a race of two agents for one task leaves both sides saying the same', async ({ app }) => {
    const task = await app.task()
    const [ann, bob] = [await app.agent('worker'), await app.agent('worker')]
    await Promise.all([ann, bob, ann, bob].map(({ id }) => app.owner.call('task_assign', { task_id: task.id, agent_id: id })))
    const { assignee_id } = await get(app, task)
    for (const agent of [ann, bob]) expect((await agent.call('agent_me')).task_id).toBe(agent.id === assignee_id ? task.id : null)
  })

  test('[T21] what moves a task next is derived: dependency, running, human, or nothing when it is done', async ({ app }) => {
    const blocker = await app.task()
    const task = await app.task({ blocked_by: [blocker.id] })
    const attention = async () => (await get(app, task)).attention
    expect(await attention()).toBe('dependency')
    await app.owner.call('task_close', { task_id: blocker.id, reason: 'x' })
    expect(await attention()).toBe('human')
    const worker = await app.worker(task.id)
    await worker.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await attention()).toBe('running')
    expect(await worker.refused('task_move', { task_id: task.id, status: 'REVIEW' })).toMatchObject({
      code: 'INVALID_TRANSITION',
      next_tool: 'review_request',
    })
    await worker.call('review_request', { summary: 'x' })
    expect(await attention()).toBe('human')
    await app.owner.call('task_close', { task_id: task.id, reason: 'x' })
    expect(await attention()).toBe(null)
  })
})

describe('deleting', () => {
  test('[T16] a deleted task is off the board, frees its agent, and whoever names it hears that it was deleted', async ({ app }) => {
    const task = await app.task()
    const worker = await app.worker(task.id)
    expect(await app.owner.call('task_delete', { task_id: task.handle })).toEqual({ task_id: task.id, handle: task.handle, deleted: true })
    expect((await app.owner.call('task_list')).tasks).toEqual([])
    expect(await worker.call('agent_me')).toMatchObject({ task_id: null })
    for (const [tool, more] of Object.entries({
      task_get: {},
      task_move: { status: 'REVIEW' },
      task_note: { body: 'x' },
      task_update: { title: 'x' },
      task_delete: {},
      task_context: {},
    })) {
      expect(await app.owner.refused(tool, { task_id: task.id, ...more })).toMatchObject({ code: 'TASK_DELETED', next_tool: 'task_list' })
    }
    expect(await app.owner.refused('task_create', { title: 'x', blocked_by: [task.id] })).toMatchObject({ code: 'TASK_DELETED' })
    expect(await app.events({ type: 'task.deleted' })).toMatchObject([{ subject: task.id, data: { from: 'BACKLOG' } }])
  })
})

describe('plans', () => {
  const PLAN = {
    tasks: [
      { title: 'Design', acceptance_criteria: ['drawn'] },
      { title: 'Build', after: [0], priority: 'high' },
      { title: 'Ship', after: [0, 1], task_type: 'PAIR' },
    ],
    todos: [{ content: 'think' }],
  }

  test('[T17] a planner proposes; what an operator accepts becomes tasks with their order, in one step', async ({ app }) => {
    const project_id = await app.project()
    const planner = await app.agent('planner')
    const { plan_id, status } = await planner.call('plan_propose', PLAN)
    expect(status).toBe('proposed')
    expect((await app.owner.call('task_list')).tasks).toEqual([])
    expect(await planner.refused('plan_accept', { plan_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
    const operator = await app.agent('orchestrator')
    const accepted = await operator.call('plan_accept', { plan_id })
    expect(accepted).toMatchObject({ status: 'accepted', handles: ['T-1', 'T-2', 'T-3'] })
    expect((await app.owner.call('task_list')).tasks).toMatchObject([
      { title: 'Design', blocked_by: [], project_id },
      { title: 'Build', blocked_by: ['T-1'], priority: 'high' },
      { title: 'Ship', blocked_by: ['T-1', 'T-2'], task_type: 'PAIR' },
    ])
    expect(await app.events({ type: 'plan.decided' })).toMatchObject([
      { subject: plan_id, actor: operator.id, data: { accepted: true, task_ids: accepted.task_ids } },
    ])
  })

  test('[T17] a plan can be read before and after it is decided', async ({ app }) => {
    await app.project()
    const { plan_id } = await app.owner.call('plan_propose', { tasks: [{ title: 'One' }, { title: 'Two', after: [0] }] })
    expect(await app.owner.call('plan_get', { plan_id })).toMatchObject({
      status: 'proposed',
      tasks: [{ title: 'One' }, { title: 'Two', after: [0] }],
      task_ids: [],
    })
    const { task_ids } = await app.owner.call('plan_accept', { plan_id })
    expect(await app.owner.call('plan_get', { plan_id })).toMatchObject({ status: 'accepted', task_ids, decided_by: app.owner.id })
  })

  test('[T17] a plan is decided once, also when two decide at the same time', async ({ app }) => {
    await app.project()
    const { plan_id } = await app.owner.call('plan_propose', PLAN)
    const both = await Promise.all([true, false].map((accept) => app.owner.invoke('plan_accept', { plan_id, accept })))
    expect(both.map(codeOf).toSorted()).toEqual(['CONFLICT', 'ok'])
    expect((await app.owner.call('task_list')).tasks).toHaveLength(both[0]?.ok ? 3 : 0)
  })

  test('[T17] a rejected plan makes no task', async ({ app }) => {
    await app.project()
    const { plan_id } = await app.owner.call('plan_propose', PLAN)
    expect(await app.owner.call('plan_accept', { plan_id, accept: false })).toMatchObject({ status: 'rejected', task_ids: [] })
    expect((await app.owner.call('task_list')).tasks).toEqual([])
  })

  test('[T17] a plan whose order does not work out is refused when it is proposed', async ({ app }) => {
    await app.project()
    const refused = (tasks: unknown[]) => app.owner.refused('plan_propose', { tasks })
    expect(await refused([{ title: 'a', after: [0] }])).toMatchObject({
      code: 'INVALID_INPUT',
      message: expect.stringContaining('tasks[0].after'),
    })
    expect(await refused([{ title: 'a', after: [1] }, { title: 'b' }])).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await refused([])).toMatchObject({ code: 'INVALID_INPUT' })
    expect(await app.events({ type: 'plan.proposed' })).toEqual([])
  })
})

describe('waiting', () => {
  const wait = (caller: Caller, task: Task, more: Fields = {}, request = {}) =>
    caller.call('task_wait', { task_id: task.id, ...more }, request)
  const waiting = async (app: TestApp, task: Task, more: Fields = {}, request = {}) => {
    const answer = wait(app.owner, task, more, request)
    await until(() => app.app.feed.waiters === 1)
    return { answer }
  }

  test('[T18] TASK_CHANGED: the status changed during the wait', async ({ app }) => {
    const task = await app.task()
    const { answer } = await waiting(app, task)
    const { task: moved } = await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await answer).toEqual({
      changed: true,
      timed_out: false,
      task_id: task.id,
      previous_status: 'BACKLOG',
      current_status: 'IN_PROGRESS',
      changed_at: moved.updated_at,
      task: expect.objectContaining({ id: task.id, status: 'IN_PROGRESS', version: 2 }),
      code: 'TASK_CHANGED',
      resume: false,
      cursor: expect.any(String),
    })
  })

  test('[T18] only a change of status or a deletion counts', async ({ app }) => {
    const task = await app.task()
    const { answer } = await waiting(app, task)
    await app.owner.call('task_update', { task_id: task.id, title: 'no status' })
    await app.owner.call('task_note', { task_id: task.id, body: 'no status' })
    await app.owner.call('task_move', { task_id: (await app.task()).id, status: 'IN_PROGRESS' })
    expect(app.app.feed.waiters).toBe(1)
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await answer).toMatchObject({ code: 'TASK_CHANGED', current_status: 'IN_PROGRESS' })
  })

  test('[T18] ALREADY_AT_STATUS comes before CHANGED_SINCE_CURSOR, and both at once', async ({ app }) => {
    const task = await app.task()
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    const since = { from_updated_at: task.updated_at }
    expect(await wait(app.owner, task, { ...since, wait_for_status: ['REVIEW', 'IN_PROGRESS'] })).toMatchObject({
      code: 'ALREADY_AT_STATUS',
      changed: false,
      timed_out: false,
    })
    expect(await wait(app.owner, task, since)).toMatchObject({ code: 'CHANGED_SINCE_CURSOR', changed: true, current_status: 'IN_PROGRESS' })
    expect(await wait(app.owner, task, { ...since, wait_for_status: ['DONE'] })).toMatchObject({ code: 'CHANGED_SINCE_CURSOR' })
    const { updated_at } = await get(app, task)
    expect(await wait(app.owner, task, { from_updated_at: updated_at, timeout_seconds: 0.001 })).toMatchObject({ code: 'WAIT_TIMEOUT' })
  })

  test('[T18] a change of something else since from_updated_at is not a change', async ({ app }) => {
    const task = await app.task()
    await app.owner.call('task_update', { task_id: task.id, title: 'x' })
    expect(await wait(app.owner, task, { from_updated_at: task.updated_at, timeout_seconds: 0.001 })).toMatchObject({
      code: 'WAIT_TIMEOUT',
    })
  })

  test('[T18] with target statuses it passes over the others', async ({ app }) => {
    const task = await app.task()
    const { answer } = await waiting(app, task, { wait_for_status: ['REVIEW', 'DONE'] })
    for (const status of ['IN_PROGRESS', 'BACKLOG', 'IN_PROGRESS', 'REVIEW'])
      await app.owner.call('task_move', { task_id: task.id, status })
    expect(await answer).toMatchObject({ code: 'TASK_CHANGED', previous_status: 'BACKLOG', current_status: 'REVIEW' })
  })

  test('[T18] WAIT_TIMEOUT: its own time is over; with resume: true it is only ours', async ({ app }) => {
    const task = await app.task()
    expect(await wait(app.owner, task, { timeout_seconds: 0.001 })).toMatchObject({
      code: 'WAIT_TIMEOUT',
      timed_out: true,
      changed: false,
      changed_at: null,
      resume: false,
    })
    const held = await wait(app.owner, task, { timeout_seconds: 600 }, { holdMs: 1 })
    expect(held).toMatchObject({ code: 'WAIT_TIMEOUT', timed_out: true, resume: true })
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await wait(app.owner, task, { cursor: held.cursor })).toMatchObject({
      code: 'TASK_CHANGED',
      previous_status: 'BACKLOG',
      current_status: 'IN_PROGRESS',
    })
  })

  test('[T18] WAIT_INTERRUPTED: the caller went away, or the daemon stopped', async ({ app }) => {
    const task = await app.task()
    const gone = new AbortController()
    const first = await waiting(app, task, {}, { signal: gone.signal })
    gone.abort()
    expect(await first.answer).toMatchObject({ code: 'WAIT_INTERRUPTED', resume: true, changed: false })
    const second = await waiting(app, task)
    await app.reopen()
    const { code, cursor } = await second.answer
    expect(code).toBe('WAIT_INTERRUPTED')
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await wait(app.owner, task, { cursor })).toMatchObject({ code: 'TASK_CHANGED' })
  })

  test('[T18] TASK_DELETED: during the wait, or before it', async ({ app }) => {
    const task = await app.task()
    const { answer } = await waiting(app, task, { wait_for_status: ['DONE'] })
    await app.owner.call('task_delete', { task_id: task.id })
    expect(await answer).toMatchObject({ code: 'TASK_DELETED', changed: true, task: null, current_status: 'BACKLOG' })
    expect(await wait(app.owner, task)).toMatchObject({ code: 'TASK_DELETED', task: null })
  })

  test('[T19] a change between the snapshot and the wait is not missed, by cursor or by updated_at', async ({ app }) => {
    const task = await app.task()
    const { cursor } = await app.owner.call('task_list')
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    await app.owner.call('task_move', { task_id: task.id, status: 'REVIEW' })
    await app.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
    expect(await wait(app.owner, task, { cursor, wait_for_status: ['REVIEW'] })).toMatchObject({
      code: 'TASK_CHANGED',
      previous_status: 'BACKLOG',
      current_status: 'IN_PROGRESS',
    })
    expect(await wait(app.owner, task, { from_updated_at: task.updated_at })).toMatchObject({ code: 'CHANGED_SINCE_CURSOR' })
  })

  test('[T19] a chain of waits, each from the cursor of the one before, sees every move', async ({ app }) => {
    const task = await app.task()
    const moves = ['IN_PROGRESS', 'REVIEW', 'IN_PROGRESS', 'BACKLOG', 'IN_PROGRESS', 'REVIEW']
    const seen: string[] = []
    const follow = async () => {
      let { cursor } = await app.owner.call('task_list')
      started()
      while (seen.length < moves.length) {
        const answer = await app.owner.call('event_wait', { cursor, task_id: task.handle, types: ['task.moved'], limit: 1 })
        seen.push(...answer.events.map((event: { data: { to: string } }) => event.data.to))
        cursor = answer.cursor
      }
    }
    let started = () => {}
    const ready = new Promise<void>((resolve) => {
      started = resolve
    })
    const following = follow()
    await ready
    for (const status of moves) await app.owner.call('task_move', { task_id: task.id, status })
    await following
    expect(seen).toEqual(moves)
  })

  test.for([0, -1, -0.001, '30', null, true, Number.NaN])('[T20] a timeout of %s is INVALID_TIMEOUT', async (timeout_seconds, { app }) => {
    const task = await app.task()
    const error = await app.owner.refused('task_wait', { task_id: task.id, timeout_seconds })
    expect(error).toMatchObject({ code: 'INVALID_TIMEOUT', message: expect.stringContaining('above 0') })
  })

  test('[T20] a longer timeout than the maximum is capped, and both are settings in force at once', async ({ app }) => {
    const task = await app.task()
    await app.owner.call('setting_update', { key: 'general.tasks_wait_max_timeout_seconds', value: 1 })
    const began = performance.now()
    expect(await wait(app.owner, task, { timeout_seconds: 1e9 })).toMatchObject({ code: 'WAIT_TIMEOUT', resume: false })
    expect(await wait(app.owner, task, {}, { holdMs: 5 })).toMatchObject({ code: 'WAIT_TIMEOUT', resume: true })
    const elapsed = performance.now() - began
    expect(elapsed).toBeGreaterThan(900)
    expect(elapsed).toBeLessThan(20_000)
  })

  test('[T18] a cursor that is none is refused, also when the wait would end at once', async ({ app }) => {
    const task = await app.task()
    for (const cursor of ['garbage', 'zz.zzz']) {
      expect(await app.owner.refused('task_wait', { task_id: task.id, cursor, wait_for_status: ['BACKLOG'] })).toMatchObject({
        code: 'INVALID_CURSOR',
      })
    }
  })

  test('[T19] an agent is not left waiting for what the log does not show to it', async ({ app }) => {
    const task = await app.task()
    const { project_id } = await app.owner.call('project_create', { name: 'Elsewhere' })
    const stranger = await app.agent('orchestrator', { project_id })
    expect(await stranger.refused('task_wait', { task_id: task.id, timeout_seconds: 5 })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await stranger.refused('event_wait', { task_id: task.id, timeout_seconds: 5 })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await stranger.refused('event_wait', { project_id: task.project_id, timeout_seconds: 5 })).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
  })
})

function hasCircle(edges: Map<number, number[]>): boolean {
  const reaches = (from: number, target: number, seen = new Set<number>()): boolean =>
    (edges.get(from) ?? []).some((next) => next === target || (!seen.has(next) && reaches(next, target, seen.add(next))))
  return [...edges.keys()].some((task) => reaches(task, task))
}
