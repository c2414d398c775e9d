import type { Page } from 'playwright-core'
import { describe, expect } from 'vitest'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { someTasks, test, type Visitor, withoutBrowser } from './support.ts'

const handlesIn = (visitor: Visitor, column: string) =>
  visitor
    .column(column)
    .locator('[data-task]')
    .evaluateAll((cards) => cards.map((card) => card.getAttribute('data-task')))

/** No string is evaluated on these pages: what is waited for is an element. */
const putDown = (page: Page) => page.locator('.task-card-carried').first().waitFor({ state: 'detached' })

/** While the last card glides to its place, the next one is not picked up. */
const atRest = (page: Page) => page.locator('[data-dnd-dragging], [data-dnd-dropping]').first().waitFor({ state: 'detached' })

/** At the daemon: a card is in its column as soon as it is let go, before anybody was asked. */
const becomes = (daemon: TestDaemon, task_id: string, task: object) =>
  expect.poll(async () => (await daemon.call('task_get', { task_id })).task).toMatchObject(task)

/** As a hand does it: press, move, come to rest over the column, let go. */
async function carry(visitor: Visitor, handle: string, column: string): Promise<void> {
  const { page } = visitor
  await atRest(page)
  const [from, to] = [await visitor.card(handle).boundingBox(), await visitor.column(column).boundingBox()]
  if (!from || !to) throw new Error(`${handle} or ${column} is not on the screen`)
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2)
  await page.mouse.down()
  await page.mouse.move(from.x + from.width / 2 + 12, from.y + from.height / 2, { steps: 3 })
  await page.locator('.task-card-carried').first().waitFor()
  await page.mouse.move(to.x + to.width / 2, to.y + to.height / 2, { steps: 6 })
  await page.locator('.column-over').and(visitor.column(column)).waitFor()
  await page.mouse.up()
}

/** Resolves when the daemon has answered a call of this tool. */
const answered = (page: Page, tool: string) => page.waitForResponse((response) => response.url().endsWith(`/api/tools/${tool}`))

describe.skipIf(withoutBrowser('[U3] [U4] the board'))('the board', () => {
  test('[U3] c opens the dialog, and what it makes is at the daemon and on the board', async ({ visitor, daemon }) => {
    const { project, board } = await someTasks(daemon)
    const { page } = visitor
    await visitor.signIn(board)
    await page.getByText('No task yet.').waitFor()
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('A task needs a title.').waitFor()
    await dialog.getByLabel('Title').fill('Log in with a passkey')
    await dialog.getByLabel('Description').fill('Not *only* on phones.')
    await dialog.getByLabel('Acceptance criteria').fill('A passkey signs in\n\n A wrong one is refused ')
    await dialog.getByLabel('Priority').selectOption('high')
    await dialog.getByLabel('Type').selectOption('PAIR')
    expect(await dialog.getByLabel('Project').inputValue()).toBe(project)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.waitFor({ state: 'detached' })
    await visitor.column('Backlog').getByText('Log in with a passkey').waitFor()
    const { tasks } = await daemon.call('task_list', { project_id: project })
    expect(await daemon.call('task_get', { task_id: tasks[0].handle })).toMatchObject({
      task: {
        title: 'Log in with a passkey',
        description: 'Not *only* on phones.',
        acceptance_criteria: ['A passkey signs in', 'A wrong one is refused'],
        priority: 'high',
        task_type: 'PAIR',
      },
    })
    await page.getByRole('button', { name: 'New task' }).click()
    expect(await dialog.getByLabel('Title').inputValue()).toBe('')
    await dialog.getByLabel('Title').press('c')
    expect(await dialog.getByLabel('Title').inputValue()).toBe('c')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
  })

  test('[U3] the filter narrows by word, number and what moves a task, and stands in the address', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'Paint the gate', 'Oil the gate', 'Mow the lawn')
    const [paint, oil, mow] = handles as [string, string, string]
    await daemon.call('task_update', { task_id: oil, blocked_by: [paint] })
    const { page } = visitor
    await visitor.signIn(board)
    await visitor.isIn(mow, 'Backlog')
    await page.keyboard.press('/')
    await page.keyboard.type('GATE')
    await visitor.card(mow).waitFor({ state: 'detached' })
    expect(await handlesIn(visitor, 'Backlog')).toEqual([paint, oil])
    await page.getByLabel('What moves it next').selectOption('dependency')
    await visitor.card(paint).waitFor({ state: 'detached' })
    expect(await handlesIn(visitor, 'Backlog')).toEqual([oil])
    expect(new URL(page.url()).searchParams.get('q')).toBe('GATE')
    await page.reload()
    await visitor.isIn(oil, 'Backlog')
    expect(await handlesIn(visitor, 'Backlog')).toEqual([oil])
    await page.getByRole('searchbox').fill('nothing is called this')
    await page.getByText('No task fits the filter.').waitFor()
    await page.getByRole('main').getByRole('button', { name: 'Clear the filter' }).last().click()
    await visitor.isIn(mow, 'Backlog')
    await page.getByRole('searchbox').fill(mow)
    await visitor.card(paint).waitFor({ state: 'detached' })
    expect(await handlesIn(visitor, 'Backlog')).toEqual([mow])
  })

  test('[U3] a number in the address is a filter too, and a new task is for the project that is shown', async ({ visitor, daemon }) => {
    const [one, other] = [await someTasks(daemon, 'Ships in 12 days', 'Ships later'), await someTasks(daemon, 'Elsewhere')]
    const { page } = visitor
    await visitor.signIn(`${one.board}&q=12`)
    await visitor.isIn(one.handles[0] as string, 'Backlog')
    const shown = new URL(page.url()).searchParams
    expect([shown.get('project'), shown.get('q')]).toEqual([one.project, '12'])
    const dialog = page.getByRole('dialog', { name: 'New task' })
    await page.getByRole('button', { name: 'New task' }).click()
    expect(await dialog.getByLabel('Project').inputValue()).toBe(one.project)
    await dialog.getByLabel('Title').fill('Half typed')
    await page.mouse.click(5, 5)
    expect(await dialog.getByLabel('Title').inputValue()).toBe('Half typed')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('.filters').getByLabel('Project').selectOption(other.project)
    await page.getByRole('button', { name: 'New task' }).click()
    expect(await dialog.getByLabel('Project').inputValue()).toBe(other.project)
    expect(await dialog.getByLabel('Title').inputValue()).toBe('Half typed')
  })

  test('[U4] of two moves at once each refused one puts its own card back', async ({ visitor, daemon }) => {
    const { board, handles, tasks } = await someTasks(daemon, 'Refused', 'Accepted')
    const [refused = '', accepted = ''] = handles
    const { page } = visitor
    visitor.expects(/status of 409 .*task_move/)
    await visitor.signIn(board)
    let refuse = () => {}
    await page.route('**/api/tools/task_move', async (route) => {
      if (route.request().postDataJSON().task_id !== tasks[0]?.id) return route.continue()
      await new Promise<void>((resolve) => {
        refuse = resolve
      })
      await route.fulfill({ status: 409, json: { ok: false, error: { code: 'CONFLICT', message: 'Not now.' } } })
    })
    const move = async (handle: string, column: string) => {
      await visitor.card(handle).getByRole('button').click()
      await page.getByRole('menuitem', { name: column }).click()
      await visitor.isIn(handle, column)
    }
    await move(refused, 'In progress')
    const [moved] = [answered(page, 'task_move'), await move(accepted, 'In progress')]
    await moved
    refuse()
    await page.getByText('Not now.').waitFor()
    await visitor.isIn(refused, 'Backlog')
    await visitor.isIn(accepted, 'In progress')
  })

  test('[U4] a card that is carried to another column has another status', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'Carry me', 'Leave me')
    const [carried = '', left = ''] = handles
    await visitor.signIn(board)
    await visitor.isIn(carried, 'Backlog')
    const moved = answered(visitor.page, 'task_move')
    await carry(visitor, carried, 'In progress')
    await visitor.isIn(carried, 'In progress')
    expect((await moved).status()).toBe(200)
    await becomes(daemon, carried, { status: 'IN_PROGRESS' })
    await expect.poll(() => handlesIn(visitor, 'Backlog')).toEqual([left])
    // Let go where it was: nothing happened.
    await carry(visitor, left, 'Backlog')
    await putDown(visitor.page)
    await visitor.isIn(left, 'Backlog')
    expect(await daemon.call('task_get', { task_id: left })).toMatchObject({ task: { status: 'BACKLOG', version: 1 } })
    // A click still opens it.
    await visitor.card(carried).getByRole('link').click()
    await visitor.page.getByRole('heading', { name: 'Carry me', level: 1 }).waitFor()
  })

  test('[U4] a card that is carried to Done asks why, and stays when nothing is said', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'Finish me')
    const [handle = ''] = handles
    const dialog = visitor.page.getByRole('dialog', { name: `Close ${handle}` })
    await visitor.signIn(board)
    await visitor.isIn(handle, 'Backlog')
    await carry(visitor, handle, 'Done')
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    await visitor.isIn(handle, 'Backlog')
    await carry(visitor, handle, 'Done')
    await dialog.getByRole('button', { name: 'Close the task' }).click()
    await dialog.getByText('Say why it is done.').waitFor()
    await dialog.getByLabel('Reason').fill('Done by hand')
    await dialog.getByRole('button', { name: 'Close the task' }).click()
    await visitor.isIn(handle, 'Done')
    await becomes(daemon, handle, { status: 'DONE', closed_reason: 'Done by hand' })
  })

  test('[U4] a refused move puts the card back, with the words of the daemon', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'First', 'Second')
    const [first = '', second = ''] = handles
    await daemon.call('task_update', { task_id: second, blocked_by: [first] })
    visitor.expects(/status of 4\d\d .*task_move/)
    await visitor.signIn(board)
    await visitor.isIn(first, 'Backlog')
    await carry(visitor, first, 'Review')
    await visitor.page.getByText(`${first} is BACKLOG; it cannot become REVIEW.`).first().waitFor()
    await visitor.page.getByText('From here it can become IN_PROGRESS.').first().waitFor()
    await visitor.isIn(first, 'Backlog')
    const refused = answered(visitor.page, 'task_move')
    await carry(visitor, second, 'In progress')
    const { error } = await (await refused).json()
    await visitor.page.getByText(error.message).first().waitFor()
    await visitor.isIn(second, 'Backlog')
    await expect.poll(() => handlesIn(visitor, 'In progress')).toEqual([])
    expect(await daemon.call('task_get', { task_id: second })).toMatchObject({ task: { status: 'BACKLOG' } })
  })

  test('[U4] the keyboard carries a card: Space, arrows, Space; Escape puts it back', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'With keys')
    const [handle = ''] = handles
    const { page } = visitor
    await visitor.signIn(board)
    await visitor.isIn(handle, 'Backlog')
    await visitor.card(handle).getByRole('link').focus()
    await page.keyboard.press('Space')
    await page.locator('.task-card-carried').first().waitFor()
    await page.keyboard.press('ArrowRight')
    await page.locator('.column-over').and(visitor.column('In progress')).waitFor()
    await page.keyboard.press('Escape')
    await putDown(page)
    await visitor.isIn(handle, 'Backlog')
    await atRest(page)
    await visitor.card(handle).getByRole('link').focus()
    await page.keyboard.press('Space')
    await page.locator('.task-card-carried').first().waitFor()
    await page.keyboard.press('ArrowRight')
    await page.locator('.column-over').and(visitor.column('In progress')).waitFor()
    await page.keyboard.press('Space')
    await visitor.isIn(handle, 'In progress')
    await becomes(daemon, handle, { status: 'IN_PROGRESS' })
    await page.getByRole('status').getByText(`${handle} is put down in In progress.`).waitFor({ state: 'attached' })
    // The focus went with it, and Enter opens what has it.
    await visitor.card(handle).locator('a:focus').waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'With keys', level: 1 }).waitFor()
  })

  test('[U4] the menu of a card moves it too, with the keyboard alone, and swallows no shortcut', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'By menu')
    const [handle = ''] = handles
    const { page } = visitor
    await visitor.signIn(board)
    await page.getByRole('button', { name: `Move ${handle}` }).focus()
    await page.keyboard.press('Control+k')
    await page.getByRole('dialog', { name: 'Find a task or a page' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Enter')
    await page.getByRole('menuitem', { name: 'In progress' }).waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowUp')
    await page.keyboard.press('Enter')
    await visitor.isIn(handle, 'In progress')
    await page.getByRole('menu').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: `Move ${handle}` }).click()
    await page.getByRole('menuitem', { name: 'Review' }).click()
    await visitor.isIn(handle, 'Review')
    await becomes(daemon, handle, { status: 'REVIEW' })
  })
})
