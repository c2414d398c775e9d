import { describe, expect } from 'vitest'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { scriptOf } from './agents.ts'
import { test, withoutBrowser } from './support.ts'

const WORK = [
  { write: { path: 'part.txt', text: 'x' } },
  { commit: { message: 'part' } },
  { review: { summary: 'The part is <b>there</b>.' } },
]
/** Sent back, it does the same and a little more. */
const AGAIN = [
  ...WORK.slice(0, 2),
  { if_resumed: { steps: [{ write: { path: 'more.txt', text: 'y' } }, { commit: { message: 'more' } }] } },
  WORK[2] as object,
]

describe.skipIf(withoutBrowser('[U22] epics'))('epics', () => {
  test('[U22] are written, watched and decided about', async ({ visitor, daemon }) => {
    const { project_id } = await daemon.call('project_create', { name: 'Epics' })
    const repo = repository()
    await daemon.call('repo_add', { path: repo, project_id })
    const { page } = visitor
    await visitor.signIn('/epics')
    await page.getByRole('button', { name: 'New epic' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Title').fill('Passkeys <i>everywhere</i>')
    await dialog.getByLabel('Description').fill(scriptOf({ say: 'I have nothing to split.' }))
    await dialog.getByLabel('Project').selectOption({ label: 'Epics' })
    await dialog.getByLabel('Workers at a time').fill('1')
    await dialog.getByRole('button', { name: 'Create' }).click()

    await page.getByRole('heading', { name: 'Passkeys <i>everywhere</i>' }).waitFor()
    await page.getByText('no tasks yet').waitFor()
    const { epics } = await daemon.call('epic_list')
    const epic_id = epics[0].id
    const { task } = await daemon.call('task_create', { epic_id, title: 'A part', description: scriptOf(...AGAIN) })
    await page.getByText('0 of 1 done').waitFor()
    const queue = page.locator('.queue')
    await queue.getByText('The part is <b>there</b>.').waitFor()
    await queue.getByText('PR 1').waitFor()

    await queue.getByLabel(`Feedback on ${task.handle}`).fill('More of it.')
    await queue.getByRole('button', { name: `Send back ${task.handle}` }).click()
    await until(async () => (await daemon.call('review_list', { task_id: task.id })).reviews.length === 2, 'a second round')
    await queue.getByRole('button', { name: `Approve and merge ${task.handle}` }).click()
    await page.getByText('1 of 1 done').waitFor()
    await page.getByText('Nothing waits for review.').waitFor()
    expect(git(repo, 'ls-tree', '--name-only', epics[0].branch).split('\n')).toEqual(['more.txt', 'part.txt'])

    await daemon.call('epic_finish', { epic_id })
    await page.getByText('1: [Epic]').or(page.getByText('2: [Epic]')).waitFor()
    visitor.expects(/status of 409 .*epic_update/)
    await page.getByRole('button', { name: 'It is merged' }).click()
    const unmerged = page.getByRole('alertdialog')
    await unmerged.getByText(`E-1 is not merged: ${epics[0].base_branch} does not have what is on`).waitFor()
    await unmerged.getByRole('button', { name: 'Cancel' }).click()
    git(repo, 'merge', '--quiet', '--ff-only', epics[0].branch)
    await page.getByRole('button', { name: 'It is merged' }).click()
    await page.getByText('completed', { exact: true }).waitFor()
    await visitor.walk('/epics')
    await page
      .getByRole('row', { name: /Passkeys/ })
      .getByText('1 of 1 done')
      .waitFor()
  })

  test('[U22] agents are stopped and started in their list', async ({ visitor, daemon }) => {
    const { project_id } = await daemon.call('project_create', { name: 'Agents' })
    await daemon.call('repo_add', { path: repository(), project_id })
    const { task } = await daemon.call('task_create', { project_id, title: 'Long', description: scriptOf({ sleep: { ms: 600_000 } }) })
    await daemon.call('job_submit', { task_id: task.id, action: 'start_agent' })
    const agent = async () =>
      (await daemon.call('agent_list', { limit: 200 })).agents.find(
        ({ task_id, managed }: Record<string, unknown>) => managed && task_id === task.id,
      )
    await until(async () => (await agent())?.state === 'BUSY', 'a busy agent')
    const { handle } = await agent()
    const { page } = visitor
    await visitor.signIn('/agents')
    await page.getByRole('button', { name: `Stop ${handle}` }).click()
    await until(async () => (await agent()).state === 'STOPPED', 'a stopped agent')
    expect((await agent()).desired).toBe('stopped')
    await page.getByText(/stopped \(\d+\)/).click()
    await page.getByRole('button', { name: `Start ${handle}` }).click()
    await until(async () => (await agent()).state === 'BUSY', 'a busy agent again')
    await page.getByRole('button', { name: `Stop ${handle}` }).click()
    await until(async () => (await agent()).state === 'STOPPED', 'a stopped agent')
  })
})
