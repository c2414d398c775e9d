import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { git, repository } from '../chaos/kill-runs.ts'
import { test, withoutBrowser } from './support.ts'

describe.skipIf(withoutBrowser('proposals'))('what a repository needs', () => {
  test('[SU15] is offered where it is added, and later where it is edited; a file with an error says so', async ({ daemon, visitor }) => {
    await daemon.call('project_create', { name: 'Web' })
    const repo = repository()
    const config = (text: string) => {
      writeFileSync(join(repo, '.signalbox.yaml'), text)
      git(repo, 'add', '--all')
      git(repo, 'commit', '--quiet', '--message=config')
    }
    config('settup: npm ci\n')
    const { page } = visitor
    await visitor.signIn('/projects')
    await page.getByRole('button', { name: 'Add a repository' }).click()
    const adding = page.getByRole('dialog', { name: /^Add a repository/ })
    await adding.getByLabel('Path').fill(repo)
    await adding.getByRole('button', { name: 'Add', exact: true }).click()
    const proposed = page.getByRole('dialog', { name: /^Set up/ })
    await proposed.getByText('.signalbox.yaml, line 1: "settup" is not known.').waitFor()
    await proposed.getByRole('button', { name: 'Close', exact: true }).last().click()
    await proposed.waitFor({ state: 'detached' })

    config('setup: npm ci\nfiles: [.env, .env.local]\n')
    await page.getByRole('button', { name: /^Edit / }).click()
    const editing = page.getByRole('dialog', { name: /^Edit / })
    await editing.getByText('More is suggested by .signalbox.yaml.').waitFor()
    await editing.getByRole('button', { name: 'Fill it in' }).click()
    await editing.getByRole('button', { name: 'Save' }).click()
    await editing.waitFor({ state: 'detached' })
    expect((await daemon.call('repo_list', {})).repos).toMatchObject([{ setup: 'npm ci', files: ['.env', '.env.local'] }])
  })
})
