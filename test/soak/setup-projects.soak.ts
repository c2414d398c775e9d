import { execFileSync } from 'node:child_process'
import { appendFileSync, chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { npmProject } from '../../src/testing/packages.ts'
import { OWN_FILE, Site, write } from '../e2e/setup-site.ts'
import { leftOut } from '../e2e/support.ts'

/** What it proposes is done as it says, then two begin: the second one gets a copy. Answers with their worktrees. */
async function begunTwice(site: Site, uses: Record<string, unknown>, proposed: string): Promise<{ tasks: string[]; places: string[] }> {
  const added = await site.register({ checks: 'sh test.sh' })
  expect(added.proposed).toMatchObject({ setup: proposed, files: [] })
  await site.register({ setup: added.proposed?.setup })
  const tasks: string[] = []
  for (let n = 0; n < 2; n++) {
    const task = await site.start(uses, OWN_FILE)
    await site.is(task, 'REVIEW')
    tasks.push(task)
  }
  expect((await site.setups()).map(({ how }) => how)).toEqual(['made', 'kept'])
  return { tasks, places: await Promise.all(tasks.map((task) => site.place(task))) }
}

describe('a project', () => {
  test('[SU1] [SU2] [SU6] [SU9] [SU11] of pnpm is worked in and lands, and who edits a package edits its own', async () => {
    const site = await Site.begin(pnpmProject)
    const { tasks, places } = await begunTwice(
      site,
      { run: { argv: ['sh', 'test.sh'] } },
      'pnpm install --frozen-lockfile --package-import-method=clone-or-copy',
    )
    const greet = (place: string) => readFileSync(join(place, 'node_modules/greet/index.js'), 'utf8')
    const before = places.map(greet)
    for (const edited of places) appendFileSync(join(edited, 'node_modules/greet/index.js'), `// edited in ${edited}\n`)
    expect(places.map(greet)).toEqual(places.map((place, n) => `${before[n]}// edited in ${place}\n`))
    // Neither in what is kept, nor in the store of the user.
    await site.daemon.call('setup_forget', {})
    for (const task of tasks) await site.lands(task)
    const after = await site.start({ run: { argv: ['sh', 'test.sh'] } }, OWN_FILE)
    await site.is(after, 'REVIEW')
    expect(greet(await site.place(after))).toBe(before[0])
  })

  test.skipIf(leftOut('python3', 'a Python project'))(
    '[SU1] [SU2] [SU6] [SU9] [SU12] of Python has its environment in each worktree, and lands',
    async () => {
      const site = await Site.begin(pythonProject)
      const { tasks, places } = await begunTwice(
        site,
        { run: { argv: ['sh', 'test.sh'] } },
        'python3 -m venv .venv && .venv/bin/pip install -r requirements.txt',
      )
      // Each by the path of its own: the first one is gone.
      const [first = '', second = ''] = places
      expect(greetedIn(first)).toBe(`hello from ${first}`)
      await site.lands(tasks[0] as string)
      rmSync(first, { recursive: true })
      expect(greetedIn(second)).toBe(`hello from ${second}`)
    },
  )
})

/** Its lockfile is pnpm's own. */
function pnpmProject(repo: string, site: Site): void {
  const pnpm = join(dirname(createRequire(import.meta.url).resolve('pnpm')), 'bin/pnpm.cjs')
  writeFileSync(join(site.programs, 'pnpm'), `#!/bin/sh\nexec '${process.execPath}' '${pnpm}' "$@"\n`)
  chmodSync(join(site.programs, 'pnpm'), 0o755)
  npmProject(repo, ['greet'], ['greet'])
  rmSync(join(repo, 'package-lock.json'))
  write(repo, { '.gitignore': 'node_modules\n', '.npmrc': 'offline=true\nupdate-notifier=false\n', 'test.sh': 'node test.js\n' })
  execFileSync(join(site.programs, 'pnpm'), ['install', '--lockfile-only'], { cwd: repo, env: site.daemon.env })
  expect([existsSync(join(repo, 'pnpm-lock.yaml')), existsSync(join(repo, 'node_modules'))]).toEqual([true, false])
}

const WHEEL = 'Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n'
const GREET = `import sys\n\ndef main():\n    print('hello from', sys.prefix.removesuffix('/.venv'))\n`

/** Depends on a wheel that lies in the repository, and on nothing else. */
function pythonProject(repo: string, site: Site): void {
  write(join(site.beside, 'wheel'), {
    'greet/__init__.py': GREET,
    'greet-1.0.dist-info/METADATA': 'Metadata-Version: 2.1\nName: greet\nVersion: 1.0\n',
    'greet-1.0.dist-info/WHEEL': WHEEL,
    'greet-1.0.dist-info/entry_points.txt': '[console_scripts]\ngreet = greet:main\n',
    'greet-1.0.dist-info/RECORD': '',
  })
  write(repo, {
    '.gitignore': '.venv\n',
    'requirements.txt': '--no-index\n--find-links vendor\ngreet==1.0\n',
    'test.sh': 'test "$(.venv/bin/greet)" = "hello from $(pwd -P)"\n',
    'vendor/README': 'Packed by hand.\n',
  })
  const packed = ['greet', 'greet-1.0.dist-info']
  execFileSync('python3', ['-m', 'zipfile', '-c', join(repo, 'vendor/greet-1.0-py3-none-any.whl'), ...packed], {
    cwd: join(site.beside, 'wheel'),
  })
}

function greetedIn(place: string): string {
  return execFileSync(join(place, '.venv/bin/greet'), { encoding: 'utf8' }).trim()
}
