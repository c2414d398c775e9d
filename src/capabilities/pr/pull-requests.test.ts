import { test as base, describe, expect } from 'vitest'
import { epicGround, epicTest as test } from '../../testing/epic-ground.ts'
import { deferred, until } from '../../testing/signals.ts'
import type { Work } from '../../testing/work.ts'

describe('the queue', () => {
  test('[V11] is made of pull requests, numbered in their repository', async ({ ground }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    const pr = async (work: Work) => (await app.owner.call('pr_get', { task_id: work.task.id })).pr
    expect([(await pr(one)).number, (await pr(two)).number]).toEqual([1, 2])
    expect(await pr(one)).toMatchObject({
      state: 'OPEN',
      base: ground.epic.branch,
      title: `${one.task.handle} one`,
      description: 'one is there',
      url: expect.stringMatching(/\/task\/task_/),
    })
    await ground.decide(one, 'request_changes', { feedback: 'again' })
    await ground.handIn(one, 'once more')
    expect(await pr(one)).toMatchObject({ number: 1, description: 'once more' })
    expect(await app.owner.refused('pr_get', { epic_id: ground.epic.id })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect(await app.owner.refused('pr_get', {})).toMatchObject({ code: 'INVALID_INPUT' })
    const { merge_commit } = await ground.decide(one, 'approve')
    expect(await pr(one)).toMatchObject({ state: 'MERGED', merge_commit })
    expect((await app.events({ type: 'pr.opened' })).map(({ data }) => data.number)).toEqual([1, 2])
  })
})

describe('work', () => {
  test('[V10] that lands is told to those whose pull requests are open, each time, and so many letters are counted', async ({ ground }) => {
    const { app } = ground
    const [first, second, reviewed, sentBack] = [
      await ground.handedIn('one'),
      await ground.handedIn('two'),
      await ground.handedIn('three'),
      await ground.handedIn('four'),
    ]
    const running = await ground.begun('five')
    await app.owner.call('task_create', { epic_id: ground.epic.id, title: 'not begun' })
    await ground.decide(sentBack, 'request_changes', { feedback: 'More.' })
    const told = async ({ worker }: Work) => (await ground.letters(worker)).filter(({ subject }) => subject === 'Rebase Required')
    expect(await ground.decide(first, 'approve')).toMatchObject({
      rebase_requests: 3,
      message: 'PR merged successfully. 3 rebase requests sent.',
    })
    for (const work of [second, reviewed, sentBack])
      expect(await told(work)).toMatchObject([{ from_id: 'system', body: expect.stringContaining(ground.epic.branch) }])
    for (const work of [first, running]) expect(await told(work)).toEqual([])
    expect(await ground.decide(second, 'approve')).toMatchObject({ rebase_requests: 2 })
    for (const work of [reviewed, sentBack])
      expect(await told(work)).toMatchObject([second, first].map(({ task }) => ({ body: expect.stringContaining(`${task.handle} (`) })))
    expect(await told(second)).toHaveLength(1)
  })

  base('[V10] that lands is not told to those who are in the line: they are merged with it by themselves', async () => {
    const both = deferred()
    const ground = await epicGround((real) => ({ build: async (build) => both.promise.then(() => real.build(build)) }))
    const [first, second, waiting] = [await ground.handedIn('one'), await ground.handedIn('two'), await ground.handedIn('three')]
    const approved = [ground.decide(first, 'approve'), ground.decide(second, 'approve')]
    await until(async () => (await ground.app.events({ type: 'review.decided' })).length === 2)
    both.resolve()
    expect((await Promise.all(approved)).map(({ rebase_requests }) => rebase_requests)).toEqual([1, 1])
    for (const { worker } of [first, second]) expect(await ground.letters(worker)).toEqual([])
    expect(await ground.letters(waiting.worker)).toHaveLength(2)
  })
})
