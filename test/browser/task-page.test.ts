import { describe, expect } from 'vitest'
import { someTasks, test, withoutBrowser } from './support.ts'

describe.skipIf(withoutBrowser('[U5] [U6] the page of a task'))('the page of a task', () => {
  test('[U5] a note is written in Markdown and drawn as such', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Write on me')
    const { page } = visitor
    await visitor.signIn(`/task/${handles[0]}`)
    await page.getByRole('button', { name: 'Add the note' }).click()
    await page.getByText('Write something first.').waitFor()
    await page
      .getByLabel('Write a note')
      .fill('**Found** it:\n\n- a [page](https://example.com/x)\n- `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |')
    await page.getByRole('button', { name: 'Add the note' }).click()
    await page.locator('.notes strong', { hasText: 'Found' }).waitFor()
    expect(await page.locator('.notes li li').allTextContents()).toEqual(['a page', 'code'])
    expect(await page.locator('.notes td').allTextContents()).toEqual(['1', '2'])
    expect(await page.getByRole('link', { name: 'page', exact: true }).getAttribute('rel')).toBe('noreferrer noopener')
    await expect.poll(() => page.getByLabel('Write a note').inputValue()).toBe('')
    expect(await daemon.call('task_get', { task_id: handles[0] })).toMatchObject({ task: { note_count: 1 } })
  })

  test('[U6] an edit of what changed meanwhile is refused, and what was typed stays', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Edit me')
    const [task_id] = handles
    const { page } = visitor
    visitor.expects(/status of 409 .*task_update/)
    await visitor.signIn(`/task/${task_id}`)
    await page.getByRole('button', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog', { name: `Edit ${task_id}` })
    await dialog.getByLabel('Description').fill('Typed by hand')
    // The page behind the dialog follows: that must not make the form one of the new version.
    await daemon.call('task_update', { task_id, description: 'Written by another', priority: 'high' })
    await page.locator('.task-main .markdown').getByText('Written by another').waitFor({ state: 'attached' })
    await dialog.getByRole('button', { name: 'Save' }).click()
    await dialog.getByRole('alert').getByText(`${task_id} is at version 2, not 1.`).waitFor()
    expect(await dialog.getByLabel('Description').inputValue()).toBe('Typed by hand')
    expect(await daemon.call('task_get', { task_id })).toMatchObject({ task: { description: 'Written by another', version: 2 } })

    // Seen and wanted all the same: written over, and only what was typed.
    await dialog.getByRole('button', { name: 'Save anyway' }).click()
    await dialog.waitFor({ state: 'detached' })
    expect(await daemon.call('task_get', { task_id })).toMatchObject({
      task: { description: 'Typed by hand', priority: 'high', title: 'Edit me' },
    })
  })

  test('[U6] a half typed note goes to no other task, and a click beside a form loses nothing', async ({ visitor, daemon }) => {
    const { handles, tasks } = await someTasks(daemon, 'The first', 'The second')
    const [first = '', second = ''] = handles
    const { page } = visitor
    await daemon.call('task_update', { task_id: second, blocked_by: [tasks[0]?.id] })
    await visitor.signIn(`/task/${second}`)
    await page.getByRole('link', { name: first }).click()
    await page.getByRole('heading', { name: 'The first' }).waitFor()
    await page.getByLabel('Write a note').fill('About the first')
    await page.goBack()
    await page.getByRole('heading', { name: 'The second' }).waitFor()
    expect(await page.getByLabel('Write a note').inputValue()).toBe('')

    await page.getByRole('button', { name: 'Edit' }).click()
    const dialog = page.getByRole('dialog', { name: `Edit ${second}` })
    await dialog.getByLabel('Description').fill('Typed by hand')
    await page.mouse.click(5, 5)
    await dialog.getByRole('button', { name: 'Save' }).click()
    await page.locator('.task-main .markdown').getByText('Typed by hand').waitFor()
  })

  test('[U8] what cannot be read again is said to be out of date; what is gone is not shown', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Read again')
    const [task_id] = handles
    const { page } = visitor
    visitor.expects(/status of (403|404|410) .*task_context/)
    await visitor.signIn(`/task/${task_id}`)
    const refusal = { ok: false, error: { code: 'FORBIDDEN', message: 'Not for you.' } }
    await page.route('**/api/tools/task_context', (route) => route.fulfill({ status: 403, json: refusal }))
    await daemon.call('task_update', { task_id, title: 'Another title' })
    await page.getByText('Out of date: Not for you.').waitFor()
    expect(await page.getByRole('heading', { name: 'Read again' }).count()).toBe(1)
    await page.unroute('**/api/tools/task_context')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Another title' }).waitFor()
    await page.getByText('Out of date').waitFor({ state: 'detached' })
    await daemon.call('task_delete', { task_id })
    await page.getByRole('link', { name: 'Go to the board' }).waitFor()
    await page.getByRole('heading', { name: 'Another title' }).waitFor({ state: 'detached' })
  })

  test('[U10] on a narrow screen nothing stands out to the side, however long a word is', async ({ visitor, daemon }) => {
    const { handles, board } = await someTasks(daemon, 'w'.repeat(200))
    const { page } = visitor
    await page.setViewportSize({ width: 360, height: 740 })
    await visitor.signIn(`/task/${handles[0]}`)
    const wide: string[] = []
    const measure = async (name: string) => {
      const by = await page.evaluate<number>('window.widest')
      if (by > 0) wide.push(`${name}: ${by}`)
    }
    // In every frame: what is not all there yet may be wider than in the end.
    await visitor.context.addInitScript(`
      window.widest = 0
      const look = () => {
        for (const e of [document.documentElement, document.querySelector('main'), document.querySelector('h1')])
          if (e) window.widest = Math.max(window.widest, e.scrollWidth - e.clientWidth)
        requestAnimationFrame(look)
      }
      look()`)
    // Until it is known who somebody is, their id stands there: a long word too.
    await page.route('**/api/tools/person_list', () => {})
    await visitor.visit(`/task/${handles[0]}`)
    await page.locator('.history .who', { hasText: 'person_' }).first().waitFor()
    await measure('a task by somebody unknown')
    await page.unroute('**/api/tools/person_list')
    for (const path of [`/task/${handles[0]}`, board, ...(await visitor.screens())]) {
      await visitor.visit(path)
      await measure(path)
    }
    expect(wide).toEqual([])
  })

  test('[U6] a note that could not be sent is still there to be sent again', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Offline')
    const { page } = visitor
    visitor.expects(/ERR_FAILED|Failed to load/)
    await visitor.signIn(`/task/${handles[0]}`)
    await page.route('**/api/tools/task_note', (route) => route.abort())
    await page.getByLabel('Write a note').fill('Worth keeping')
    await page.getByRole('button', { name: 'Add the note' }).click()
    await page.getByText('Signalbox does not answer.').first().waitFor()
    expect(await page.getByLabel('Write a note').inputValue()).toBe('Worth keeping')
    await page.unroute('**/api/tools/task_note')
    await page.getByRole('button', { name: 'Add the note' }).click()
    await page.locator('.notes').getByText('Worth keeping').waitFor()
    expect(await daemon.call('task_get', { task_id: handles[0] })).toMatchObject({ task: { note_count: 1 } })
  })

  test('[U5] a task is assigned, moved, closed with a reason, and deleted after a question', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Through its life')
    const [task_id] = handles
    const { handle: agent, agent_id } = await daemon.call('agent_invite', { role: 'worker', name: 'Ada' })
    const { page } = visitor
    const task = async () => (await daemon.call('task_get', { task_id })).task
    await visitor.signIn(`/task/${task_id}`)
    const assigned = page.waitForResponse('**/api/tools/task_assign')
    await page.getByLabel('Agent').selectOption(agent)
    expect((await assigned).status()).toBe(200)
    await page.locator('.history').getByText(agent).first().waitFor()
    expect(await task()).toMatchObject({ assignee_id: agent_id })
    await page.getByRole('button', { name: 'In progress' }).click()
    await page.locator('.page-actions').getByText('In progress').waitFor()
    await expect.poll(task).toMatchObject({ status: 'IN_PROGRESS' })
    await page.getByRole('button', { name: 'Done' }).click()
    const dialog = page.getByRole('dialog', { name: `Close ${task_id}` })
    await dialog.getByLabel('Reason').fill('No longer needed')
    await dialog.getByRole('button', { name: 'Close the task' }).click()
    await page.getByText('Closed: No longer needed').waitFor()
    await expect.poll(task).toMatchObject({ status: 'DONE', closed_reason: 'No longer needed', assignee_id: null })

    await page.getByRole('button', { name: 'Delete the task' }).click()
    const question = page.getByRole('alertdialog', { name: `Delete ${task_id}?` })
    await question.getByRole('button', { name: 'Cancel' }).click()
    await question.waitFor({ state: 'detached' })
    expect(await task()).toMatchObject({ status: 'DONE' })
    await page.getByRole('button', { name: 'Delete the task' }).click()
    await question.getByRole('button', { name: 'Delete' }).click()
    await page.waitForURL('**/board')
    expect(await daemon.post('task_get', { task_id })).toMatchObject({ error: { code: 'TASK_DELETED' } })
    visitor.expects(/status of 4\d\d .*task_context/)
    await visitor.page.goto(`${daemon.url}/task/${task_id}`)
    await page.getByText(`${task_id} was deleted.`).waitFor()
  })
})
