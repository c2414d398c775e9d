import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { leftOut } from '../e2e/support.ts'
import { agentTask } from './agents.ts'
import { launch, Visitor, withoutBrowser } from './support.ts'

const TUI = resolve(import.meta.dirname, '../../src/testing/tui.mjs')
const HOSTILE = '<img src=x onerror=hacked=1><script>hacked=1</script>'

describe.skipIf(withoutBrowser('the terminal of a task') || leftOut('tmux', 'the terminal on the page'))('the terminal of a task', () => {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-pair-'))
  let browser: Browser
  let daemon: TestDaemon

  beforeAll(async () => {
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin/claude'), `#!/bin/sh\nexec ${process.execPath} ${TUI} "$@"\n`)
    chmodSync(join(home, 'bin/claude'), 0o755)
    writeFileSync(join(home, 'tui.json'), JSON.stringify({ dialog: true, log: join(home, 'prompts') }))
    ;[browser, daemon] = await Promise.all([
      launch(),
      TestDaemon.start({ env: { HOME: home, PATH: `${join(home, 'bin')}:${process.env.PATH}` } }),
    ])
  })
  afterAll(async () => {
    await browser?.close()
    await daemon?.remove()
  })

  test('[U20] [U14] is opened, answered, watched, typed into and closed; whoever may only look only looks', async () => {
    const { task } = await agentTask(daemon)
    await daemon.call('task_update', { task_id: task, task_type: 'PAIR' })
    const visitor = await Visitor.open(browser, daemon)
    const { page } = visitor
    await visitor.signIn(`/task/${task}`)
    const terminal = page.locator('.terminal')
    const status = terminal.getByRole('status')
    await terminal.getByLabel('Program').selectOption('claude')
    await terminal.getByLabel('Message').fill('Say hello.')
    await terminal.getByRole('button', { name: 'Open terminal' }).click()
    await status.getByText('Open', { exact: true }).waitFor()
    const screen = terminal.getByRole('region', { name: 'Terminal screen' })
    await screen.getByText('Do you trust the files in this folder?').waitFor()
    await terminal.getByText('It asks whether you trust this folder.').waitFor()
    expect(await terminal.locator('.copy-line code').textContent()).toMatch(new RegExp(`^tmux -S \\S+ attach -t ${task}$`))

    const box = terminal.getByLabel('Type into the terminal')
    await box.fill('y')
    // Text alone would be enough for it; the Enter behind it finds an empty box.
    await box.press('Enter')
    await terminal.getByText('The agent was told its task.').waitFor()
    await screen.getByText(/took \d{3,} characters/).waitFor()
    const began = performance.now()
    await daemon.call('session_type', { task_id: task, text: HOSTILE })
    await screen.getByText(HOSTILE).waitFor()
    const tookMs = performance.now() - began
    expect(tookMs).toBeLessThan(40_000)
    await terminal.getByRole('button', { name: 'Enter', exact: true }).click()
    await screen.getByText(`took ${HOSTILE.length} characters`).waitFor()
    expect(await page.evaluate('window.hacked')).toBe(undefined)
    const prompts = readFileSync(join(home, 'prompts'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(prompts.at(-1)).toBe(HOSTILE)
    expect(prompts.some((prompt) => prompt.includes('Say hello.'))).toBe(true)

    const guest = await Visitor.open(browser, daemon)
    const { token } = await daemon.call('person_invite', { name: 'Guest', profile: 'viewer' })
    await guest.context.addInitScript(`localStorage.setItem('signalbox.session', ${JSON.stringify(JSON.stringify({ token }))})`)
    await guest.visit(`/task/${task}`)
    await guest.page.getByRole('region', { name: 'Terminal screen' }).getByText('took').first().waitFor()
    expect(
      await guest.page
        .locator('.terminal')
        .getByRole('button', { name: /Close|Send|Enter/ })
        .count(),
    ).toBe(0)
    expect(await guest.page.locator('.terminal').getByLabel('Type into the terminal').count()).toBe(0)
    await guest.leave()

    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    await terminal.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('alertdialog').getByRole('button', { name: 'Close' }).click()
    await status.getByText('Closed').waitFor()
    await terminal.getByRole('button', { name: 'Open terminal' }).waitFor()
    await box.waitFor({ state: 'detached' })
    await screen.getByText('took').first().waitFor()
    expect(visitor.problems).toEqual([])
    await visitor.leave()
  })
})
