import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { until } from '../e2e/support.ts'
import { test as base, withoutBrowser } from './support.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const NEEDED = ['src', 'scripts', 'bin', 'package.json', 'package-lock.json', 'tsconfig.json']

const SCREEN = `
import { Bike } from 'lucide-react'
import { Page } from '../../ui/kit/page.tsx'
import { Loaded } from '../../ui/kit/states.tsx'
import { useTool } from '../../ui/live.tsx'
import { definePanels } from '../../ui/panel.ts'

function Errands() {
  const errands = useTool('errand_list', {}, { follows: ['errand', 'run'] })
  return (
    <Page title="Errands">
      <Loaded read={errands}>{(data) => <ul>{data.errands.map(({ id, words, state }) => <li key={id}>{words}: {state}</li>)}</ul>}</Loaded>
    </Page>
  )
}

export const panels = definePanels({ path: '/errands', title: 'Errands', component: Errands, nav: { icon: Bike, order: 9, key: 'z' } })
`

/** A checkout of ours to which a stranger has added a folder, and a line in the registry. */
function checkout(): string {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-stranger-'))
  for (const name of NEEDED) cpSync(join(ROOT, name), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const own = join(folder, 'src/capabilities/errand')
  mkdirSync(own)
  const index = readFileSync(join(ROOT, 'test/errand/index.ts'), 'utf8')
  writeFileSync(join(own, 'index.ts'), index.replaceAll('../../src/capabilities/', '../').replaceAll('../../src/', '../../'))
  writeFileSync(join(own, 'panel.tsx'), SCREEN)
  const registry = join(folder, 'src/capabilities/index.ts')
  const lines = readFileSync(registry, 'utf8')
  writeFileSync(registry, `import { errand } from './errand/index.ts'\n${lines.replace('  escalation,\n', '  escalation,\n  errand,\n')}`)
  execFileSync(process.execPath, ['scripts/build.mjs', '--quiet'], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
  return folder
}

const test = base.extend<{ daemon: TestDaemon }>({
  daemon: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
    async ({}, use) => {
      const folder = checkout()
      const daemon = await TestDaemon.start({ bin: join(folder, 'bin/signalbox.js') })
      await use(daemon)
      await daemon.remove()
      rmSync(folder, { recursive: true, force: true })
    },
    { scope: 'file' },
  ],
})

describe.skipIf(withoutBrowser('[RN5] a capability of a stranger'))('a capability of a stranger', () => {
  test('[RN5] starts real agents in a plain folder and has a screen, with a folder and a line', async ({ visitor, daemon }) => {
    const { page } = visitor
    await visitor.signIn('/errands')
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Errands' }).waitFor()
    const { project_id } = await daemon.call('project_create', { name: 'Errands' })
    const folder = join(daemon.home, 'errands')
    mkdirSync(folder)
    const script = JSON.stringify([{ write: { path: 'milk.txt', text: 'bought\n' } }, { call: { tool: 'agent_me' } }])
    const send = (words: string, more: object) => daemon.call('errand_start', { project_id, folder, words, harness: 'scripted', ...more })
    await send('Buy milk', { script })
    await page.getByText('Buy milk: done').waitFor()
    expect(readFileSync(join(folder, 'milk.txt'), 'utf8')).toBe('bought\n')
    await send('Fall over', { script: JSON.stringify([{ exit: { code: 3 } }]) })
    await page.getByText('Fall over: failed').waitFor()
    await until(async () => (await daemon.call('need_list')).total === 1, 'the errand needs somebody')
    await page.getByRole('link', { name: /^For you/ }).click()
    await page.getByRole('list', { name: 'Errands that failed' }).getByText('Fall over').waitFor()
    expect(existsSync(join(folder, '.git'))).toBe(false)
  })
})
