import { describe, expect } from 'vitest'
import { until } from '../e2e/support.ts'
import { agentTask, said, startWith } from './agents.ts'
import { test, Visitor, withoutBrowser } from './support.ts'

const HOSTILE = [
  '<img src=x onerror=hacked=1>',
  '<script>hacked=1</script>',
  '[go](javascript:hacked=1)',
  '\u001b[31mred\u001b[0m \u001b]8;;http://evil.example\u0007link',
  'user\u202etxt.exe',
].join('\n')

describe.skipIf(withoutBrowser('[U12] [U13] [U14] [U15] [U16] [S13] agents at work'))('agents at work', () => {
  test('[U12] [U13] [U16] an agent is started, followed, written to, stopped and resumed on the page of its task', async ({
    visitor,
    daemon,
  }) => {
    const { task } = await agentTask(
      daemon,
      {
        if_resumed: {
          steps: [{ say: 'I am back.' }, { commit: { message: 'Add a' } }, { review: { summary: 'All **done**.' } }, { exit: {} }],
        },
      },
      { think: 'Hm.' },
      { write: { path: 'a.txt', text: 'a\n' } },
      { write: { path: 'large.txt', text: 'line\n'.repeat(400) } },
      { usage: { input_tokens: 1_200, output_tokens: 300, cost_usd: 0.25 } },
      { say: 'READY' },
      { wait_message: { save: 'heard' } },
      { say: 'They said {{heard.text}}.' },
      { sleep: { ms: 600_000 } },
    )
    const { page } = visitor
    await visitor.signIn(`/task/${task}`)
    const agent = page.locator('.agent')
    const status = agent.getByRole('status')
    await expect.poll(() => status.textContent()).toBe('Not started')
    await agent.getByRole('button', { name: 'Start agent' }).click()
    const dialog = page.getByRole('dialog', { name: `Start an agent on ${task}` })
    await expect.poll(() => dialog.getByRole('radio', { name: /Scripted agent/ }).isChecked()).toBe(true)
    visitor.expects(/status of 4\d\d .*job_submit/)
    await dialog.getByRole('radio', { name: /Any command/ }).check()
    await dialog.getByRole('button', { name: 'Start the agent' }).click()
    await dialog.getByRole('alert').getByText('options of command').waitFor()
    await dialog.getByRole('radio', { name: /Scripted agent/ }).check()
    await dialog.getByRole('button', { name: 'Start the agent' }).click()

    const transcript = page.getByRole('region', { name: 'Transcript', exact: true })
    await transcript.getByText('READY').waitFor()
    await status.getByText('Running').waitFor()
    await agent.getByText('1.5K tokens').waitFor()
    await expect.poll(() => agent.locator('.agent-facts').textContent()).toMatch(/scripted.*turn 1.*\$0\.25/)
    const call = transcript.getByRole('button', { name: /^write .*a\.txt/ })
    expect(await call.getAttribute('aria-expanded')).toBe('false')
    await call.click()
    await transcript.getByText('done', { exact: true }).waitFor()

    await page.getByRole('tab', { name: 'Changes' }).click()
    const added = page.getByRole('region', { name: 'Changes of a.txt' })
    await added.locator('.line-added', { hasText: 'a' }).waitFor()
    await expect.poll(() => page.locator('.totals').textContent()).toContain('2 files +401 lines −0')
    const large = page.getByRole('button', { name: /^large\.txt.*\+400/ })
    expect(await large.getAttribute('aria-expanded')).toBe('false')
    await large.click()
    await page.getByRole('region', { name: 'Changes of large.txt' }).locator('.line-added').nth(399).waitFor()
    await page.getByRole('tab', { name: 'Transcript' }).click()

    await agent.getByLabel('Message to the agent').fill('use tabs')
    await agent.getByLabel('Message to the agent').press('Enter')
    await transcript.getByText('They said use tabs.').waitFor()
    await transcript.getByText('Turn 2').waitFor()
    await expect.poll(() => agent.getByLabel('Message to the agent').inputValue()).toBe('')

    await agent.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click()
    await status.getByText('Stopped').waitFor()
    await agent.getByLabel('Message to the agent').waitFor({ state: 'detached' })

    await agent.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Resume the agent' }).click()
    await transcript.getByText('I am back.').waitFor()
    await status.getByText('Handed in').waitFor()
    await page.getByRole('tab', { name: 'Reviews' }).click()
    await page.locator('.rounds strong', { hasText: 'done' }).waitFor()
    await page.getByRole('tab', { name: 'Usage' }).click()
    await page.getByRole('table', { name: 'Runs' }).locator('tbody tr').nth(1).waitFor()
    const oldest = page.getByRole('table', { name: 'Runs' }).locator('tbody tr').last()
    await expect.poll(() => oldest.textContent()).toMatch(/scripted21.2K in, 300 out\$0\.25/)
  })

  test('[U13] a long transcript is read from its end; what is older comes when it is scrolled to, and words are found', async ({
    visitor,
    daemon,
  }) => {
    const steps = Array.from({ length: 240 }, (_, i) => ({ say: `line ${i + 1} of many` }))
    const { task } = await agentTask(daemon)
    await startWith(daemon, task, ...steps, { wait_message: {} }, { say: 'one more' }, { wait_message: {} })
    await said(daemon, task, 'line 240 of')
    const { page } = visitor
    await visitor.signIn(`/task/${task}?tab=Transcript`)
    const transcript = page.getByRole('region', { name: 'Transcript', exact: true })
    await transcript.getByText('line 240 of many').waitFor()
    expect(await transcript.getByRole('article').count()).toBeLessThan(60)
    await page.getByRole('button', { name: 'Jump to the newest' }).waitFor({ state: 'detached' })

    const top = async () => {
      await transcript.press('Home')
      // What was just read above is drawn first, and then moved out of sight, so that the place of whoever reads stays.
      await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))')
      return transcript.getByText('line 1 of many', { exact: true }).isVisible()
    }
    for (const time of ['first', 'second']) await until(top, `the first line, the ${time} time`)
    await daemon.call('job_submit', { task_id: task, action: 'message_agent', message: 'go on' })
    await said(daemon, task, 'one more')
    await transcript.getByText('line 1 of many', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Jump to the newest' }).click()
    await transcript.getByText('one more').waitFor()

    await page.getByLabel('Search the transcript').fill('line 117 of')
    await page.getByRole('region', { name: 'Found' }).locator('mark', { hasText: 'line 117 of' }).waitFor()
    await expect.poll(() => page.locator('.hit').count()).toBe(1)
  })

  test('[S13] whatever an agent prints is text, and stays in its place', async ({ visitor, daemon }) => {
    const { task, board } = await agentTask(daemon)
    await startWith(
      daemon,
      task,
      { say: HOSTILE },
      { think: HOSTILE },
      { note: { text: HOSTILE } },
      { say: `LONG${'x'.repeat(30_000)}` },
      { run: { argv: ['printf', '%s', HOSTILE] } },
      { write: { path: '<img src=x onerror=hacked=1>.txt', text: HOSTILE } },
      { limit: { message: `${HOSTILE} QUOTA`, resets_in_seconds: 3_600 } },
    )
    await said(daemon, task, 'QUOTA')
    const { page } = visitor
    await page.setViewportSize({ width: 390, height: 844 })
    await visitor.signIn(`/task/${task}?tab=Transcript`)
    await page.locator('.agent').getByRole('status').getByText('Parked').waitFor()
    const transcript = page.getByRole('region', { name: 'Transcript', exact: true })
    await transcript.getByText('QUOTA').waitFor()
    const unharmed = async (where: string) => {
      expect(await page.evaluate('window.hacked'), where).toBe(undefined)
      expect(await page.locator('img, script:not([src]), a[href*="javascript:" i]').count(), where).toBe(0)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${where} is as wide as the screen`).toBe(true)
      const unseen = `/(?![\\n\\t])[\\p{Cc}\\u202a-\\u202e\\u2066-\\u2069]/u.test(document.querySelector('.task-main')?.textContent ?? '')`
      expect(await page.evaluate(unseen), `${where} hides something`).toBe(false)
    }
    await unharmed('the end')
    await transcript.press('Home')
    await transcript.getByText('<script>hacked=1</script>').first().waitFor()
    await transcript.getByRole('button', { name: /^run/ }).click()
    await unharmed('the beginning')
    await page.getByLabel('Search the transcript').fill('onerror')
    await page.getByRole('region', { name: 'Found' }).locator('mark').first().waitFor()
    await unharmed('what was found')
    await page.getByRole('tab', { name: 'Changes' }).click()
    await page.locator('.line-added', { hasText: '<script>hacked=1</script>' }).waitFor()
    await unharmed('the changes')
    await page.getByRole('tab', { name: 'Usage' }).click()
    await page.getByRole('table', { name: 'Runs' }).getByText('onerror').waitFor()
    await unharmed('the runs')

    await visitor.visit(board)
    const badge = visitor.card(task).locator('.badge', { hasText: 'quota' })
    await badge.waitFor()
    expect(await badge.getAttribute('title')).toContain('goes on at')
    await page.locator('.agent').waitFor({ state: 'detached' })
    await unharmed('the board')
  })

  test('[U14] [U15] the board starts an agent and shows who runs and who waits; whoever may only look is offered nothing', async ({
    visitor,
    browser,
    daemon,
  }) => {
    const { task, project_id, board } = await agentTask(daemon, { say: 'READY' }, { wait_message: {} })
    const { handle: second } = await daemon.call('task_create', { project_id, title: 'Second in the line' })
    await daemon.call('setting_update', { key: 'runs.max_per_project', value: 1 })
    const { page } = visitor
    await visitor.signIn(board)
    for (const handle of [task, second]) {
      await visitor.card(handle).locator('.task-card-menu').click()
      await page.getByRole('menuitem', { name: 'Start agent' }).click()
      await visitor
        .card(handle)
        .locator('.badge', { hasText: handle === task ? 'running' : 'queued' })
        .waitFor()
    }
    await visitor.visit(`/task/${second}`)
    const agent = page.locator('.agent')
    await agent.getByText(/^Queued, place \d+ in the line/).waitFor()
    await agent.getByRole('button', { name: 'Cancel' }).click()
    await agent.getByRole('status').getByText('Stopped').waitFor()

    await page.getByRole('tab', { name: 'Usage' }).click()
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByRole('dialog').getByLabel('Turns').fill('7')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.locator('.budget').getByText('of 7').waitFor()

    const guest = await Visitor.open(browser, daemon)
    const { token } = await daemon.call('person_invite', { name: 'Guest', profile: 'viewer' })
    await guest.context.addInitScript(`localStorage.setItem('signalbox.session', ${JSON.stringify(JSON.stringify({ token }))})`)
    await guest.visit(`/task/${task}?tab=Transcript`)
    await guest.page.getByRole('region', { name: 'Transcript', exact: true }).getByText('READY').waitFor()
    await guest.page.locator('.agent').getByRole('status').getByText('Running').waitFor()
    expect(await guest.page.locator('.agent').getByRole('button').count()).toBe(0)
    await guest.leave()
  })
})
