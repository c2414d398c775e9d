import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { startWith } from './agents.ts'
import { someTasks, test, type Visitor, withoutBrowser } from './support.ts'

const EVIL = '<img src=x onerror=hacked=1>'

/** A project with a real repository whose checks wait for a file when `slow.txt` is there, and fail with `red.txt`. */
async function ground(daemon: TestDaemon, ...titles: string[]) {
  const { project_id, handles } = await someTasks(daemon, ...titles)
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-gate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [repo, gate] = [repository(), join(folder, 'open')]
  const wait = `if test -e slow.txt; then while test ! -e '${gate}'; do sleep 0.1; done; fi`
  const red = `if test -e red.txt; then printf '%s \\033[31mred\\n' '${EVIL}'; exit 1; fi`
  const { repo_id } = await daemon.call('repo_add', { path: repo, project_id, checks: `${wait}; ${red}` })
  return { repo, repo_id, handles, open: () => writeFileSync(gate, '') }
}

interface Work {
  files: Record<string, string>
  summary?: string
  /** What the agent does when it is woken, before it ends. */
  resumed?: object[]
}

async function handedIn(daemon: TestDaemon, task_id: string, { files, summary = 'It is **there**.', resumed = [] }: Work): Promise<void> {
  const writes = Object.entries(files).map(([path, text]) => ({ write: { path, text } }))
  const again = { if_resumed: { steps: [...resumed, { exit: { code: 0 } }] } }
  await startWith(daemon, task_id, again, ...writes, { commit: { message: 'the work' } }, { review: { summary } })
  await until(async () => (await statusOf(daemon, task_id)) === 'REVIEW', `${task_id} handed in: ${daemon.log}`)
}

const nobodyAtWork = (daemon: TestDaemon) =>
  until(async () => !(await daemon.call('job_list', { states: ['queued', 'running'] })).jobs.length, 'every worker went home')

const statusOf = async (daemon: TestDaemon, task_id: string) => (await daemon.call('task_get', { task_id })).task.status

async function unharmed({ page }: Visitor): Promise<void> {
  expect(await page.evaluate('window.hacked')).toBe(undefined)
  expect(await page.locator('main img').count()).toBe(0)
}

describe.skipIf(withoutBrowser('[U23] [U24] [U25] the merge line'))('the merge line', () => {
  test('[U23] [U24] [U25] what is approved on its page is seen to wait, to be checked and to land, and a branch that is behind is brought up', async ({
    visitor,
    daemon,
  }) => {
    const { page } = visitor
    const { repo, handles, open } = await ground(daemon, 'Slow <b>work</b>', 'After it')
    const [slow = '', after = ''] = handles
    await handedIn(daemon, slow, { files: { 'slow.txt': 'x\n' } })
    await handedIn(daemon, after, { files: { 'after.txt': 'x\n' } })
    await visitor.signIn(`/task/${slow}`)
    const decide = page.locator('.decide')
    await decide.locator('strong', { hasText: 'there' }).waitFor()
    await decide.getByText('round 1').waitFor()
    expect(await decide.getByRole('button', { name: 'Send back' }).isDisabled()).toBe(true)
    await decide.getByRole('button', { name: 'Approve' }).click()
    const merge = page.locator('.merge-of')
    await merge.getByText('being checked').waitFor()
    await merge.getByText(/for \d+:\d\d/).waitFor()
    await decide.waitFor({ state: 'detached' })
    await daemon.call('merge_submit', { task_id: after })

    await visitor.walk('/merges')
    await page.evaluate(`document.body.dataset.since = 'before'`)
    const line = page.locator('.line-card', { hasText: slow })
    const waiting = line.getByRole('list', { name: 'In the line of main' }).getByRole('listitem')
    await expect.poll(() => waiting.count()).toBe(2)
    await waiting.nth(0).getByText('being checked').waitFor()
    await waiting.nth(0).getByText('Slow <b>work</b>').waitFor()
    await waiting
      .nth(0)
      .getByText(/for \d+:\d\d/)
      .waitFor()
    await waiting.nth(1).getByText('waits').waitFor()
    await waiting.nth(1).getByRole('button', { name: 'Take out' }).click()
    await line.locator('.merge', { hasText: after }).getByText('taken out', { exact: true }).waitFor()
    expect(await waiting.count()).toBe(1)
    await daemon.call('merge_retry', { task_id: after })
    await expect.poll(() => waiting.count()).toBe(2)
    open()
    await line.getByText('Nothing waits.').waitFor()
    const ended = line.locator('.merge')
    await expect.poll(() => ended.locator('.badge').allTextContents()).toEqual(['landed', 'landed'])
    await ended
      .first()
      .getByText(git(repo, 'rev-parse', 'main').slice(0, 10))
      .waitFor()
    expect(await page.evaluate('document.body.dataset.since')).toBe('before')
    expect(git(repo, 'ls-files').split('\n')).toEqual(['after.txt', 'slow.txt'])

    // Somebody works in the checkout: the branch stays where it is until that is out of the way.
    const { project_id } = (await daemon.call('task_get', { task_id: slow })).task
    const { handle: third } = await daemon.call('task_create', { project_id, title: 'The third' })
    await handedIn(daemon, third, { files: { 'third.txt': 'x\n' } })
    writeFileSync(join(repo, 'slow.txt'), 'mine\n')
    await daemon.call('merge_submit', { task_id: third })
    await line.getByText('main is 1 behind.').waitFor()
    await visitor.walk(`/task/${third}`)
    await page.locator('.merge-of').getByText('main is 1 behind.').waitFor()
    await visitor.walk('/merges')
    git(repo, 'checkout', '--', 'slow.txt')
    await line.getByRole('button', { name: /^Bring it up to date: .* main$/ }).click()
    await page.getByText('Everything is up to date.').waitFor()
    await line.getByText('main is 1 behind.').waitFor({ state: 'detached' })
    expect(git(repo, 'ls-files').split('\n')).toEqual(['after.txt', 'slow.txt', 'third.txt'])

    await visitor.walk(`/task/${slow}`)
    await page.locator('.merge-of').getByText('landed').waitFor()
    await page.getByRole('tab', { name: 'Reviews' }).click()
    const request = page.locator('.pull-request')
    await request.getByRole('heading', { name: 'Pull request 1' }).waitFor()
    await request.getByText('merged', { exact: true }).waitFor()
    await expect.poll(() => page.locator('.rounds .badge').allTextContents()).toEqual(['round 1', 'approved', 'merged'])
    await unharmed(visitor)
  })

  test('[U23] [U24] what fails goes back with what the checks printed, is tried again, and a line that is held goes on', async ({
    visitor,
    daemon,
  }) => {
    const { page } = visitor
    const { repo, repo_id, handles } = await ground(daemon, 'Red work', 'Good work')
    const [red = '', good = ''] = handles
    await handedIn(daemon, red, { files: { 'red.txt': 'x\n' }, resumed: [{ sleep: { ms: 600_000 } }] })
    await handedIn(daemon, good, { files: { 'good.txt': 'x\n' } })
    await visitor.signIn(`/task/${red}`)
    await page.locator('.decide').getByRole('button', { name: 'Approve' }).click()
    const merge = page.locator('.merge-of')
    await merge.getByText('checks failed').waitFor()
    expect(await statusOf(daemon, red)).toBe('IN_PROGRESS')
    await merge.getByText('The end of what the checks printed').click()
    await merge.getByText(`${EVIL} ␛[31mred`).waitFor()
    await unharmed(visitor)

    // The branch itself is red: nobody who waits is to blame.
    writeFileSync(join(repo, 'red.txt'), 'x\n')
    git(repo, 'add', 'red.txt')
    git(repo, 'commit', '--quiet', '--message=red by hand')
    await visitor.walk(`/task/${good}`)
    await page.locator('.decide').getByRole('button', { name: 'Approve' }).click()
    await merge.getByText('Nothing lands on main.').waitFor()
    await visitor.walk('/merges')
    const line = page.locator('.line-card', { hasText: good })
    await line.getByText('Nothing lands on main.').waitFor()
    const waits = line.locator('.merge', { hasText: good })
    await waits.getByText('The end of what the checks printed').click()
    await waits.getByText(`${EVIL} ␛[31mred`).waitFor()
    await unharmed(visitor)
    git(repo, 'rm', '--quiet', 'red.txt')
    git(repo, 'commit', '--quiet', '--message=green again')
    await line.getByRole('button', { name: /^Let it go on: .* main$/ }).click()
    await waits.getByText('landed').waitFor()
    await line.getByText('Nothing lands on main.').waitFor({ state: 'detached' })

    await daemon.call('repo_update', { repo_id, checks: 'true' })
    await line.getByRole('button', { name: `Try again: the merge of ${red}` }).click()
    await line.locator('.merge', { hasText: red }).getByText('landed').waitFor()
    expect(await statusOf(daemon, red)).toBe('DONE')
  })

  test('[U24] [U25] comments on lines survive a reload and reach the worker as one text; the next round is shown below', async ({
    visitor,
    daemon,
  }) => {
    const { page } = visitor
    const { handles } = await ground(daemon, 'Work with comments')
    const [task = ''] = handles
    const path = 'src/evil <b>.ts'
    const files = { [path]: `const one = 1\nconst two = '${EVIL}\u202e'\nconst three = 3\n`, 'b.txt': 'b\n' }
    const more = { write: { path: 'src/more.ts', text: 'export {}\n' } }
    const resumed = [more, { commit: { message: 'more' } }, { review: { summary: 'Second try' } }]
    await handedIn(daemon, task, { files, summary: EVIL, resumed })
    await visitor.signIn(`/task/${task}`)
    await page.locator('.decide').getByText(EVIL).waitFor()
    await page.getByRole('button', { name: 'Look at the changes' }).click()
    const patch = page.getByRole('region', { name: `Changes of ${path}` })
    await patch.getByText(`const two = '${EVIL}⟨U+202E⟩'`).waitFor()

    // By keyboard: to the first line, down to the second, and back to it from an empty comment.
    await patch.getByRole('button', { name: 'Comment on line 1' }).focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    const second = patch.getByLabel('Your comment on line 2', { exact: true })
    await second.waitFor()
    await page.keyboard.press('Escape')
    await second.waitFor({ state: 'detached' })
    expect(await page.evaluate('document.activeElement.getAttribute("aria-label")')).toBe('Comment on line 2')
    await page.keyboard.press('Enter')
    await second.waitFor()
    await page.keyboard.type(`Why ${EVIL}?`)
    await patch.getByRole('button', { name: 'Comment on line 3' }).click()
    await patch.getByLabel('Your comment on line 3', { exact: true }).fill('Not needed.')
    await patch.getByRole('button', { name: 'Comment on line 1' }).click()
    await patch.getByLabel('Your comment on line 1', { exact: true }).fill('Taken back')
    await page.getByRole('button', { name: `Remove the comment on ${path}:1` }).click()
    await page.locator('.decide').getByLabel('Feedback').fill('Nearly.')
    await page.reload()
    await visitor.settled()
    expect(await second.inputValue()).toBe(`Why ${EVIL}?`)
    expect(await page.locator('.decide').getByLabel('Feedback').inputValue()).toBe('Nearly.')
    await page.locator('.decide').getByText('2 comments, not sent yet').waitFor()
    await page.getByRole('tab', { name: 'Overview' }).click()
    await page.getByRole('button', { name: `${path}:2`, exact: true }).click()
    await expect.poll(() => page.evaluate('document.activeElement.value')).toBe(`Why ${EVIL}?`)
    await unharmed(visitor)

    // What could not be sent is still there.
    visitor.expects(/ERR_FAILED|Failed to load/)
    await page.route('**/api/tools/review_feedback', (route) => route.abort())
    await page.getByRole('button', { name: 'Send back' }).click()
    await page.locator('.decide').getByText('Signalbox does not answer.').waitFor()
    await page.unroute('**/api/tools/review_feedback')
    await page.getByRole('button', { name: 'Send back' }).click()
    await page.getByText('Feedback sent to worker.').waitFor()
    const feedback = [
      'Nearly.',
      `${path}:2\n\n\`\`\`\nconst two = '${EVIL}⟨U+202E⟩'\n\`\`\`\n\nWhy ${EVIL}?`,
      `${path}:3\n\n\`\`\`\nconst three = 3\n\`\`\`\n\nNot needed.`,
    ].join('\n\n')
    expect((await daemon.call('review_list', { task_id: task })).reviews[0]).toMatchObject({
      decision: 'request_changes',
      feedback,
      feedbacks: [{ state: 'sent', commit_hash: expect.stringMatching(/^[0-9a-f]{40}$/) }],
    })
    expect(await page.evaluate('Object.keys(sessionStorage).filter((key) => key.includes("draft"))')).toEqual([])

    await page.getByRole('tab', { name: 'Reviews' }).click()
    await page.locator('.rounds').getByText('Not needed.').waitFor()
    await unharmed(visitor)
    // Its worker was woken by it.
    await expect.poll(() => page.locator('.rounds .badge').allTextContents()).toEqual(['round 1', 'sent back', 'round 2'])
    await page.locator('.pull-request').getByText('open', { exact: true }).waitFor()
    await page.locator('.decide').getByText('Second try').waitFor()
    expect(await page.locator('.decide').getByLabel('Feedback').inputValue()).toBe('')

    await page.locator('.decide').getByRole('button', { name: 'Give up' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Give it up' }).click()
    await page.locator('.rounds').getByText('given up').waitFor()
    expect((await daemon.call('task_get', { task_id: task })).task).toMatchObject({ status: 'BACKLOG', attention: 'human' })
  })

  test('[U26] when the rounds are used up the ways out are buttons, and work in review is rebased', async ({ visitor, daemon }) => {
    const { page } = visitor
    const { repo, handles } = await ground(daemon, 'Goes nowhere')
    const [task = ''] = handles
    await daemon.call('setting_update', { key: 'review.max_iterations', value: 1 })
    onTestFinished(async () => void (await daemon.call('setting_update', { key: 'review.max_iterations', value: 3 })))
    const asksAgain = { tool: 'review_request', arguments: { summary: 'Once more' }, expect: 'REVIEW_LIMIT_EXCEEDED' }
    // A letter that it leaves unread would wake it once more.
    const reads = { call: { tool: 'mail_read', arguments: { mail_id: '{{letter.id}}' } } }
    const inbox = [{ call: { tool: 'mail_inbox', save: 'inbox' } }, { each: { of: '{{inbox.letters}}', as: 'letter', steps: [reads] } }]
    await handedIn(daemon, task, { files: { 'a.txt': 'a\n' }, resumed: [...inbox, { call: asksAgain }] })
    // What it left is looked at when it has ended: with the feedback in it already, the next one would have changed nothing, and failed.
    await nobodyAtWork(daemon)
    await daemon.call('review_feedback', { task_id: task, feedback: 'Not so.', feedback_type: 'needs_work' })
    await visitor.signIn(`/task/${task}`)
    const card = page.locator('.decide')
    await card.getByText('Maximum review iterations (1) reached.').waitFor()
    await card.getByText('1 of 1').waitFor()
    await card.getByText('refused').waitFor()
    await card.getByRole('button', { name: 'Give up' }).waitFor()
    await card.getByRole('button', { name: 'Look at the changes' }).waitFor()
    await nobodyAtWork(daemon)
    await card.getByRole('button', { name: 'Create pull request' }).click()
    await card.getByRole('heading', { name: 'To review' }).waitFor()
    expect(await statusOf(daemon, task)).toBe('REVIEW')

    git(repo, 'commit', '-q', '--allow-empty', '--message=theirs')
    await card.getByRole('button', { name: 'Rebase' }).click()
    await page.getByText('Its commits are on top of what has landed.').waitFor()
    const { branch } = (await daemon.call('work_get', { task_id: task })).work
    expect(git(repo, 'merge-base', 'main', branch)).toBe(git(repo, 'rev-parse', 'main'))
    await unharmed(visitor)
  })

  test('[U27] a repository that was moved is found again, and it and its project are taken off with what is open', async ({
    visitor,
    daemon,
  }) => {
    const { page } = visitor
    const { repo, repo_id, handles } = await ground(daemon, 'Not landed')
    const [task = ''] = handles
    await handedIn(daemon, task, { files: { 'a.txt': 'a\n' } })
    const { project_id } = (await daemon.call('task_get', { task_id: task })).task
    await daemon.call('project_open', { project_id })
    const { name } = (await daemon.call('project_list')).projects.find(({ id }: { id: string }) => id === project_id)
    const { handle } = (await daemon.call('repo_list', { project_id })).repos[0]
    renameSync(repo, `${repo}-moved`)
    onTestFinished(() => rmSync(`${repo}-moved`, { recursive: true, force: true }))
    visitor.expects(/status of 40[49]/)
    await visitor.signIn('/projects')
    await page.getByRole('button', { name: `Sync ${handle}` }).click()
    await page.getByText(`There is no git repository at ${repo}.`).waitFor()
    await page.getByRole('button', { name: `Edit ${handle}` }).click()
    await page.getByLabel('Path').fill(`${repo}-moved`)
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('its worktrees have found it again').waitFor()
    expect((await daemon.call('diff_get', { task_id: task })).files).toHaveLength(1)

    await page.getByRole('button', { name: `Remove ${handle}` }).click()
    await page.getByRole('button', { name: 'Remove it' }).click()
    await page.getByRole('alertdialog').getByText(`${task} (REVIEW)`).waitFor()
    await page.getByRole('button', { name: 'Close them and remove it' }).click()
    await page.getByText(`${handle} is no longer registered.`).waitFor()
    expect(await statusOf(daemon, task)).toBe('DONE')
    expect((await daemon.post('repo_sync', { repo_id })).error.code).toBe('RESOURCE_NOT_FOUND')
    await page.getByRole('button', { name: `Delete ${name}`, exact: true }).click()
    await page.getByRole('button', { name: 'Delete it' }).click()
    await page.getByText('is deleted.').waitFor()
    await expect.poll(() => page.getByRole('button', { name: `Delete ${name}`, exact: true }).count()).toBe(0)
  })

  test('[U14] [U23] [U24] whoever may only look sees the line and the work, and is offered nothing', async ({ visitor, daemon }) => {
    const { page } = visitor
    const { handles } = await ground(daemon, 'Looked at')
    const [task = ''] = handles
    await handedIn(daemon, task, { files: { 'a.txt': 'a\n' } })
    const { token } = await daemon.call('person_invite', { name: 'Viewer', profile: 'viewer' })
    await page.goto(daemon.url)
    await page.getByText('I was given a token').click()
    await page.getByLabel('Token').fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    await visitor.visit(`/task/${task}?tab=Changes`)
    await page.locator('.decide strong', { hasText: 'there' }).waitFor()
    await page.locator('.line-added').first().waitFor()
    expect(await page.getByRole('button', { name: /^(Approve|Send back|Comment on)/ }).count()).toBe(0)
    await visitor.visit('/merges')
    await page.getByRole('heading', { name: 'Merge line' }).waitFor()
    expect(await page.getByRole('button', { name: /^(Let|Bring|Try)/ }).count()).toBe(0)
  })
})
