import { describe, expect } from 'vitest'
import { epicTest as test } from '../../testing/epic-ground.ts'

describe('an epic', () => {
  test('[EP6] is handed in when all is done, once, and ended by a person', async ({ ground }) => {
    const { app, supervisor, epic } = ground
    expect(await supervisor.refused('epic_finish')).toMatchObject({ code: 'INVALID_TRANSITION' })
    const [one, two] = [await ground.handedIn('one'), await ground.handedIn('two')]
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'IN_PROGRESS' })
    await ground.decide(one, 'approve')
    expect(await supervisor.refused('epic_finish')).toMatchObject({
      code: 'CONFLICT',
      message: expect.stringContaining(`${two.task.handle} (REVIEW)`),
    })
    await ground.decide(two, 'approve')
    const finished = await supervisor.call('epic_finish', { title: '[Epic] All of it' })
    expect(finished).toMatchObject({ epic_id: epic.id, pr_number: 3, state: 'REVIEW', pr_url: expect.stringMatching(/\/epic\/epic_/) })
    expect(await supervisor.call('epic_finish')).toMatchObject({ pr_id: finished.pr_id, message: expect.stringContaining('before') })
    const { letters } = await app.owner.call('mail_inbox')
    expect(letters).toMatchObject([{ subject: 'Epic ready: Passkeys', from_id: supervisor.id, body: expect.stringContaining(epic.branch) }])
    const { pr } = await app.owner.call('pr_get', { epic_id: epic.id })
    expect(pr).toMatchObject({ head: epic.branch, base: 'main', state: 'OPEN', title: '[Epic] All of it', task_id: null })
    expect(ground.git(ground.top, 'rev-list', '--count', 'main')).toBe('1')
    expect(await supervisor.refused('epic_update', { epic_id: epic.id, state: 'COMPLETED' })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await app.owner.refused('task_create', { epic_id: epic.id, title: 'late' })).toMatchObject({ code: 'CONFLICT' })
    ground.git(ground.top, 'merge', '-q', '--ff-only', epic.branch)
    await app.owner.call('epic_update', { epic_id: epic.id, state: 'COMPLETED' })
    expect((await app.owner.call('epic_get', { epic_id: epic.id })).epic.completed_at).not.toBeNull()
    expect((await app.owner.call('pr_get', { epic_id: epic.id })).pr.state).toBe('MERGED')
  })

  test('[EP6] says what was merged, and what was closed instead', async ({ ground }) => {
    const { app, supervisor, epic } = ground
    const become = (state: string) => app.owner.call('epic_update', { epic_id: epic.id, state })
    const close = (task_id: string, reason: string) => app.owner.call('task_close', { task_id, reason })
    const first = (await app.owner.call('task_create', { epic_id: epic.id, title: 'by hand', task_type: 'PAIR' })).task
    await close(first.id, 'not wanted')
    await become('IN_PROGRESS')
    expect(await supervisor.refused('epic_finish')).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('was merged') })
    await become('PLANNING')
    const [one, two] = [await ground.handedIn('one'), await ground.begun('two')]
    await close(two.task.id, 'too late')
    await ground.decide(one, 'approve')
    await become('IN_PROGRESS')
    await supervisor.call('epic_finish')
    const [letter] = (await app.owner.call('mail_inbox')).letters
    expect(letter.body).toContain(`1 of 3 tasks of ${epic.handle}`)
    expect(letter.body).toContain(`Closed without a merge: ${first.handle} (not wanted), ${two.task.handle} (too late).`)
  })
})
