import { describe } from 'vitest'
import { someTasks, test, withoutBrowser } from './support.ts'

describe.skipIf(withoutBrowser('[U30] what needs the reader'))('what needs the reader', () => {
  test('[U30] it is listed by kind and counted, with links to where it is seen to, and goes when it is', async ({ visitor, daemon }) => {
    const { page } = visitor
    await visitor.signIn('/needs')
    await page.getByText('Nothing needs you.').waitFor()
    const { project_id } = await someTasks(daemon, 'One')
    const ready = page.getByRole('list', { name: 'Ready to hand out' })
    await ready.getByRole('link').first().waitFor()
    const nav = page.getByRole('navigation', { name: 'Main' })
    const { handle } = await daemon.call('task_create', { project_id, title: 'Read <b>me</b>\u202e' })
    for (const status of ['IN_PROGRESS', 'REVIEW']) await daemon.call('task_move', { task_id: handle, status })
    const ann = await daemon.call('agent_invite', { role: 'worker', name: 'Ann', project_id })
    await daemon.call('mail_send', { to_human: true, subject: 'Which port?', body: 'x', importance: 'urgent' }, ann.token)
    await page.getByRole('list', { name: 'Unread letters' }).getByText('urgent').waitFor()
    await nav.getByRole('link', { name: /^For you \d+ to see to$/ }).waitFor()
    await page
      .getByRole('list', { name: 'To review' })
      .getByRole('link', { name: `${handle} Read <b>me</b>⟨U+202E⟩` })
      .click()
    await page.getByRole('heading', { name: 'Read <b>me</b>' }).waitFor()
    await daemon.call('task_close', { task_id: handle, reason: 'read' })
    await nav.getByRole('link', { name: /^For you/ }).click()
    await page.getByRole('list', { name: 'Unread letters' }).waitFor()
    await page.getByRole('list', { name: 'To review' }).getByText('Read').waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Which port?' }).click()
    await page.getByRole('heading', { name: 'Mail' }).waitFor()
  })
})
