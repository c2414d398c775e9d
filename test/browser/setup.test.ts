import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished } from 'vitest'
import { git, repository } from '../chaos/kill-runs.ts'
import { scriptOf, start } from './agents.ts'
import { someTasks, test, withoutBrowser } from './support.ts'

const SERVER = "require('http').createServer((_, answer) => answer.end('hello')).listen(process.env.PORT, 'localhost')\n"

describe.skipIf(withoutBrowser('[U28] setups and previews'))('a repository that needs more than git carries', () => {
  test('[U28] is added as it is proposed, and a task of it is seen to be set up and to be shown', async ({ visitor, daemon }) => {
    const { page } = visitor
    const { project, handles } = await someTasks(daemon, 'Show me')
    const [task = ''] = handles
    // Daemons of other tests give out the same first ports, on the same machine.
    await daemon.call('setting_update', { key: 'setup.first_port', value: 27_000 })
    const repo = repository()
    const go = `${repo}.go`
    onTestFinished(() => rmSync(go, { force: true }))
    writeFileSync(join(repo, 'server.cjs'), SERVER)
    writeFileSync(join(repo, '.signalbox.yaml'), `setup: npm ci\ndev: node server.cjs\n`)
    git(repo, 'add', '--all')
    git(repo, 'commit', '--quiet', '--message=site')

    await visitor.signIn('/projects')
    await page.locator('.card', { hasText: project }).getByRole('button', { name: 'Add a repository' }).click()
    const adding = page.getByRole('dialog', { name: /^Add a repository to / })
    await adding.getByLabel('Path', { exact: true }).fill(repo)
    await adding.getByLabel('Checks', { exact: true }).fill('true')
    await adding.getByRole('button', { name: 'Add' }).click()
    const proposed = page.getByRole('dialog', { name: /^Set up / })
    await proposed.getByText('Suggested by .signalbox.yaml').waitFor()
    const [setup, dev] = [proposed.getByLabel('Setup', { exact: true }), proposed.getByLabel('Preview', { exact: true })]
    expect([await setup.inputValue(), await dev.inputValue()]).toEqual(['npm ci', 'node server.cjs'])
    const registered = async () => (await daemon.call('repo_list', { project_id: project })).repos[0]
    expect(await registered()).toMatchObject({ setup: null, dev: null, checks: 'true' })
    const waits = `echo fetching packages; until test -e '${go}'; do sleep 0.1; done`
    await setup.fill(waits)
    await proposed.getByRole('button', { name: 'Use it' }).click()
    await proposed.waitFor({ state: 'detached' })
    expect(await registered()).toMatchObject({ setup: waits, dev: 'node server.cjs', files: [] })

    await daemon.call('task_update', { task_id: task, description: scriptOf({ exit: { code: 0 } }) })
    await visitor.walk(`/task/${task}`)
    await start(daemon, task)
    await page.getByRole('status').getByText('The worktree is being set up:').waitFor()
    await page.getByRole('region', { name: 'Output of the setup' }).getByText('fetching packages').waitFor()
    writeFileSync(go, '')
    await page.getByText('The worktree is being set up:').waitFor({ state: 'detached' })

    await page.getByRole('button', { name: 'Start preview' }).click()
    const link = page.getByRole('link', { name: /^http:\/\/localhost:\d+/ })
    const shown = await link.getAttribute('href')
    expect(await fetch(shown as string).then((answer) => answer.text())).toBe('hello')
    await page.getByRole('button', { name: 'Stop' }).last().click()
    await link.waitFor({ state: 'detached' })
  })
})
