import { describe, expect } from 'vitest'
import { loadConfig } from '../../src/daemon/config.ts'
import { serve } from '../../src/daemon/serve.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { askingHarness } from '../../src/testing/fakes/asking.ts'
import { harnessesOf } from '../../src/testing/fakes/runs.ts'
import { agentTask, said } from './agents.ts'
import { test as base, withoutBrowser } from './support.ts'

/** In this process: with a program that asks, which costs no money. All else is what `signalbox serve` is made of. */
const test = base.extend<{ daemon: TestDaemon }>({
  daemon: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
    async ({}, use) => {
      const daemon = new TestDaemon()
      const config = { ...loadConfig({ SIGNALBOX_HOME: daemon.home, SIGNALBOX_PORT: '0' }), logLevel: 'silent' }
      const running = await serve(config, { harnesses: harnessesOf(askingHarness), build: new URL('../../dist/', import.meta.url) })
      daemon.url = running.url
      await daemon.call('setting_update', { key: 'runs.default_harness', value: 'asking' })
      await use(daemon)
      await running.stop()
      await daemon.remove()
    },
    { scope: 'file' },
  ],
})

describe.skipIf(withoutBrowser('[U17] [U18] [U19] approvals and usage'))('approvals', () => {
  test('[U17] what an agent asks is shown at once, and the answer reaches it', async ({ visitor, daemon }) => {
    const { task } = await agentTask(daemon)
    const { page } = visitor
    await visitor.signIn(`/task/${task}`)
    const nav = page.getByRole('navigation', { name: 'Main' })
    await daemon.call('job_submit', { task_id: task, action: 'start_agent', options: { approvals: 'ask' } })
    await said(daemon, task, 'asks for permission')
    const shown = performance.now()
    const card = page.locator('.approval')
    await card.getByText('npm publish --tag <b>next</b>').waitFor()
    await nav.getByRole('link', { name: 'Approvals 1 waiting' }).waitFor()
    // By itself a page looks again only when it is looked at again.
    expect(performance.now() - shown).toBeLessThan(40_000)
    // Neither what it calls itself nor what it hides in its text is anything but text.
    await card.getByText('Publish⟨U+202E⟩ it').waitFor()
    expect(await card.getByText(/denied by itself in (59:\d\d|1:00:00)$/).count()).toBe(1)
    await page.getByText('needs you').waitFor()

    await card.getByRole('button', { name: 'Allow A-1' }).click()
    await said(daemon, task, 'ALLOWED publish')
    await card.getByText('NEWS.md').waitFor()
    await expect.poll(() => card.locator('pre', { hasText: 'second line' }).textContent()).toBe('first line\nsecond line')

    await nav.getByRole('link', { name: /^Approvals/ }).click()
    const listed = page.locator('.approval')
    await listed.getByText('NEWS.md').waitFor()
    await listed.getByLabel('Message to the agent').fill('Not in this release.')
    await listed.getByRole('button', { name: 'Deny A-2' }).click()
    await page.getByText('No agent waits for permission.').waitFor()
    await said(daemon, task, 'DENIED write Not in this release.')
    await nav.getByRole('link', { name: 'Approvals', exact: true }).waitFor()

    await visitor.walk(`/task/${task}`)
    await page.getByText('Permissions asked before').click()
    const before = page.locator('.approvals-before')
    await before.getByText('Bash: npm publish --tag <b>next</b>').waitFor()
    await before.getByText('Not in this release.').waitFor()
    await before.getByText('owner').first().waitFor()
    await page.locator('.agent').getByRole('status').getByText('Running').waitFor()
    expect((await daemon.call('task_get', { task_id: task })).task).toMatchObject({ status: 'IN_PROGRESS', attention: 'running' })
    await daemon.call('job_submit', { task_id: task, action: 'stop_agent' })
  })

  test('[U17] what is decided elsewhere, or too late, is said', async ({ visitor, daemon }) => {
    const { task, board } = await agentTask(daemon)
    await daemon.call('job_submit', { task_id: task, action: 'start_agent', options: { approvals: 'ask' } })
    await said(daemon, task, 'asks for permission')
    const { page } = visitor
    await visitor.signIn(board)
    const jobs = page.waitForResponse(/job_list/)
    await visitor.card(task).locator('.task-card-menu').click()
    await (await jobs).finished()
    await page.getByRole('menuitem').first().waitFor()
    await page.getByRole('menuitem', { name: 'Start agent' }).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await visitor.visit(`/task/${task}`)
    const allow = page.locator('.approval').getByRole('button', { name: /^Allow/ })
    await allow.waitFor()
    await visitor.context.route('**/api/tools/approval_decide', async (route) => {
      const { approvals } = await daemon.call('approval_list', { task_id: task })
      await daemon.call('approval_decide', { approval_id: approvals[0].id, decision: 'deny', message: 'I was first.' })
      await route.continue()
    })
    visitor.expects(/status of 409/)
    await allow.click()
    await page.getByText(/A-\d+ was denied already/).waitFor()
    await said(daemon, task, 'DENIED publish I was first.')
    await page.locator('.approval', { hasText: 'npm publish' }).waitFor({ state: 'detached' })
    await daemon.call('job_submit', { task_id: task, action: 'stop_agent' })
  })

  test('[U19] what agents have used is shown by program, run and turn, of a project and of a task', async ({ visitor, daemon }) => {
    const { task, project_id } = await agentTask(daemon)
    await daemon.call('job_submit', { task_id: task, action: 'start_agent', model: 'small', options: { approvals: 'ask' } })
    await said(daemon, task, 'asks for permission')
    const { name } = (await daemon.call('project_list')).projects.find(({ id }: { id: string }) => id === project_id)
    const { page } = visitor
    await visitor.signIn('/usage')
    await page.getByLabel('Project').selectOption(name)
    const programs = page.getByRole('table', { name: 'By program' })
    await programs.getByRole('row', { name: 'asking small 1 1 1.2K in (1K cached), 300 out ≈ $0.25' }).waitFor()
    await page.getByRole('table', { name: 'Runs' }).getByRole('link', { name: task }).click()
    const turns = page.getByRole('table', { name: 'Turns of the newest run' })
    await turns.getByRole('row', { name: '1 1.2K in (1K cached), 300 out ≈ $0.25' }).waitFor()
    await daemon.call('job_submit', { task_id: task, action: 'stop_agent' })
  })

  test('[U18] how an agent is started says what it may do, the setting is one line for each program, and it is interrupted', async ({
    visitor,
    daemon,
  }) => {
    const { task } = await agentTask(daemon)
    const { page } = visitor
    await visitor.signIn('/settings')
    const setting = page.getByLabel('runs.approvals', { exact: true })
    visitor.expects(/status of 4\d\d .*setting_update/)
    await setting.fill('asking: ask')
    await page.getByRole('button', { name: 'Save runs.approvals' }).click()
    await page.getByText('each is like claude=ask').waitFor()
    await setting.fill('*=deny\nasking=ask')
    await page.getByRole('button', { name: 'Save runs.approvals' }).click()
    await page.getByRole('button', { name: 'Back to default: runs.approvals' }).waitFor()
    expect((await daemon.call('setting_get', { key: 'runs.approvals' })).settings[0].value).toEqual(['*=deny', 'asking=ask'])

    await visitor.walk(`/task/${task}`)
    const agent = page.locator('.agent')
    await agent.getByRole('button', { name: 'Start agent' }).click()
    const dialog = page.getByRole('dialog', { name: `Start an agent on ${task}` })
    await dialog.getByLabel('What it needs permission for, it should').selectOption('Do everything without asking')
    await dialog.getByRole('button', { name: 'Start the agent' }).click()
    await said(daemon, task, 'NOBODY ASKED')
    expect((await daemon.call('run_list', { task_id: task })).runs).toMatchObject([{ approvals: 'allow' }])
    await agent.getByRole('button', { name: 'Interrupt' }).click()
    await agent.getByRole('status').getByText('Interrupted, waits for your word').waitFor()
    await page.getByText('needs you').waitFor()
    await agent.getByRole('button', { name: 'Interrupt' }).waitFor({ state: 'detached' })
    await agent.getByRole('button', { name: 'Stop' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).click()
    await agent.getByRole('status').getByText('Stopped').waitFor()

    await agent.getByRole('button', { name: 'Start anew' }).click()
    await dialog.getByRole('button', { name: 'Start the agent' }).click()
    await page.locator('.approval').getByText('npm publish').waitFor()
    await daemon.call('job_submit', { task_id: task, action: 'stop_agent' })
    await page.locator('.approval').waitFor({ state: 'detached' })
  })
})
