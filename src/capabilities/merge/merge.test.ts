import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test as base, describe, expect } from 'vitest'
import { GitRefusal } from '../../ports/git.ts'
import { epicGround, epicTest as test } from '../../testing/epic-ground.ts'
import { deferred, until } from '../../testing/signals.ts'

describe('the branch of an epic', () => {
  test('[ML11] that somebody deletes is there again with all that was merged, for work that begins and for the next merge', async ({
    ground,
  }) => {
    const { app } = ground
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    const { merge_commit } = await ground.decide(one, 'approve')
    ground.git(ground.top, 'branch', '-D', ground.epic.branch)
    const three = await ground.begun('three')
    expect(existsSync(join(three.path, 'one'))).toBe(true)
    expect(ground.git(ground.top, 'rev-parse', ground.epic.branch)).toBe(merge_commit)
    ground.git(ground.top, 'branch', '-D', ground.epic.branch)
    expect(await ground.decide(two, 'approve')).toMatchObject({ status: 'merged' })
    expect(ground.landed()).toEqual([`${two.task.handle} two`, `${one.task.handle} one`])
    await app.owner.call('task_close', { task_id: three.task.id, reason: 'enough' })
  })
})

describe('work', () => {
  base('[ML14] has landed, whatever keeps the branch from following', async () => {
    const words = `no room for ${'\u{1f600}'.repeat(3)}\ud83d`
    const ground = await epicGround(() => ({ follow: () => Promise.reject(new GitRefusal('failed', words)) }))
    expect(await ground.decide(await ground.handedIn('one.txt'), 'approve')).toMatchObject({ status: 'merged' })
    const [line] = (await ground.app.owner.call('merge_status', { repo_id: ground.repo })).lines
    expect(line).toMatchObject({ behind: 1, behind_reason: expect.stringContaining('no room for') })
  })

  base('[ML15] has landed, also when somebody takes it out of the line in the same moment', async () => {
    let takeOut = async () => {}
    const ground = await epicGround((real) => ({
      land: async (...line) => {
        await takeOut()
        return real.land(...line)
      },
    }))
    const work = await ground.handedIn('one.txt')
    takeOut = () => ground.app.owner.call('merge_cancel', { task_id: work.task.id })
    await ground.supervisor.call('review_decide', { task_id: work.task.id, decision: 'approve' }, { holdMs: 1 })
    await until(async () => (await ground.app.events({ type: 'merge.landed' })).length === 1)
    expect((await ground.app.owner.call('task_get', { task_id: work.task.id })).task.status).toBe('DONE')
    expect((await ground.app.owner.call('merge_status', { task_id: work.task.id })).lines[0].ended).toMatchObject([{ state: 'landed' }])
  })

  base('[V9] that is cut off after its merge is on the branch once, and done once', async () => {
    const cut = deferred()
    let builds = 0
    const ground = await epicGround((real) => ({
      build: async (build) => {
        builds++
        return real.build(build)
      },
      land: async (...which) => {
        await real.land(...which)
        cut.resolve()
        throw new Error('killed after the merge and before anybody was told')
      },
    }))
    const { app } = ground
    const [work, other] = [await ground.handedIn('one.txt'), await ground.handedIn('two.txt')]
    expect(await ground.decide(work, 'approve')).toMatchObject({ status: 'merged', rebase_requests: 1 })
    await cut.promise
    expect(builds).toBe(2)
    expect(ground.landed()).toEqual([`${work.task.handle} one.txt`])
    expect(await app.events({ type: 'merge.landed' })).toHaveLength(1)
    const done = (await app.events({ type: 'task.moved' })).filter(({ data }) => data.to === 'DONE')
    expect(done).toHaveLength(1)
    expect(await ground.letters(other.worker)).toHaveLength(1)
  })
})

describe('the difference', () => {
  test('[W11] of work in an epic is its own, also when it took over what others did', async ({ ground }) => {
    const [landing, work] = [await ground.handedIn('theirs.txt'), await ground.begun('mine')]
    ground.commit(work.path, 'mine.txt', 'x\n')
    const files = async () =>
      (await ground.supervisor.call('diff_get', { task_id: work.task.id })).files.map(({ path }: { path: string }) => path)
    await ground.decide(landing, 'approve')
    expect(await files()).toEqual(['mine.txt'])
    ground.git(work.path, 'merge', '-q', '--no-edit', ground.epic.branch)
    expect(existsSync(join(work.path, 'theirs.txt'))).toBe(true)
    expect(await files()).toEqual(['mine.txt'])
    writeFileSync(join(work.path, 'draft.txt'), 'not committed')
    expect(await files()).toEqual(['draft.txt', 'mine.txt'])
  })
})
