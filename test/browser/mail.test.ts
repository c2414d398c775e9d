import { describe, expect } from 'vitest'
import { someTasks, test, withoutBrowser } from './support.ts'

describe.skipIf(withoutBrowser('[U21] letters'))('letters', () => {
  test('[U21] what an agent writes is counted at once, read, acknowledged and answered; what is written to it is seen to be read', async ({
    visitor,
    daemon,
  }) => {
    const { project_id } = await someTasks(daemon)
    const { name } = (await daemon.call('project_list')).projects.find(({ id }: { id: string }) => id === project_id)
    const ann = await daemon.call('agent_invite', { role: 'worker', name: 'Ann', project_id })
    const { page } = visitor
    await visitor.signIn('/mail')
    const nav = page.getByRole('navigation', { name: 'Main' })
    await page.getByText('You have read everything.').waitFor()
    const letter = { to_human: true, subject: 'Port <b>3001</b>\u202e?', body: 'Which **one**? <img src=x onerror="window.hacked=1">' }
    await daemon.call('mail_send', { ...letter, importance: 'urgent', needs_ack: true }, ann.token)
    await nav.getByRole('link', { name: 'Mail 1 unread' }).waitFor()
    const row = page.getByRole('list', { name: 'Letters' }).getByRole('link')
    await row.getByText('urgent').waitFor()
    await row.getByText('Port <b>3001</b>⟨U+202E⟩?').click()
    await page.getByRole('heading', { name: 'Port <b>3001</b>⟨U+202E⟩?' }).waitFor()
    await page.locator('.letter strong', { hasText: 'one' }).waitFor()
    expect(await page.evaluate('window.hacked')).toBeUndefined()
    await nav.getByRole('link', { name: 'Mail', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Acknowledge' }).click()
    await page.getByText('acknowledged').waitFor()
    await page.getByLabel('Your answer').fill('It is 3001.')
    await page.getByRole('button', { name: 'Answer ann' }).click()
    const sent = page.locator('.letter-sent')
    await sent.getByText('It is 3001.').waitFor()
    await sent.getByText('Not read yet').waitFor()
    await expect.poll(() => page.getByLabel('Your answer').inputValue()).toBe('')
    const { letters } = await daemon.call('mail_inbox', {}, ann.token)
    await daemon.call('mail_read', { mail_id: letters[0].id }, ann.token)
    await sent.getByText('Read', { exact: true }).waitFor()

    await nav.getByRole('link', { name: 'Mail' }).click()
    await page.getByRole('button', { name: 'Write a letter' }).click()
    const dialog = page.getByRole('dialog', { name: 'Write a letter' })
    await dialog.getByLabel('To').selectOption(`All workers of ${name}`)
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('A letter needs a subject.').waitFor()
    await dialog.getByLabel('Subject').fill('Freeze')
    await dialog.getByLabel('Text').fill('No merges today.')
    await dialog.getByLabel('Importance').selectOption('high')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'Freeze' }).waitFor()
    expect((await daemon.call('mail_inbox', {}, ann.token)).letters).toMatchObject([
      { subject: 'Freeze', importance: 'high', from: 'owner' },
    ])

    // What cannot be delivered is refused in the daemon's words.
    visitor.expects(/status of 409 .*mail_send/)
    await nav.getByRole('link', { name: 'Mail' }).click()
    await page.getByRole('button', { name: 'Write a letter' }).click()
    await dialog.getByLabel('To').selectOption('ann (worker)')
    await dialog.getByLabel('Subject').fill('Freeze')
    await dialog.getByLabel('Text').fill('No merges today.')
    await daemon.call('token_revoke', { agent_id: ann.agent_id })
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.getByText('ann has ended: nobody would read it.').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Show what was read' }).click()
    await row.getByText('Port').waitFor()
  })
})
