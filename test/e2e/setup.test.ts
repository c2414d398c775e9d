import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { dependenciesOf, INSTALL, npmProject } from '../../src/testing/packages.ts'
import { git } from '../chaos/kill-runs.ts'
import { OWN_FILE, Site, write } from './setup-site.ts'
import { until } from './support.ts'

/** Uses a package and a file that git does not carry. */
const USES = { run: { argv: ['node', '-e', "if (require('greet') !== 'greet') process.exit(1); require('fs').readFileSync('.env')"] } }

/** An npm project that depends on one of its two packages. */
function shop(repo: string): void {
  npmProject(repo, ['greet', 'leave'], ['greet'])
  write(repo, { '.gitignore': 'node_modules\n.env*\n', '.env': 'A=1\n', '.env.test': 'A=1\n' })
}

const FILES = { files: ['.env'], check_files: ['.env.test'] }

describe('a project with packages', () => {
  test('[SU2] [SU6] [SU8] [SU9] is worked in by ten at once, and what they did lands with npm test as its checks', async () => {
    const site = await Site.open(shop, { checks: 'npm test', setup: INSTALL, ...FILES })
    const tasks = await Promise.all(Array.from({ length: 10 }, () => site.start(USES, OWN_FILE)))
    for (const task of tasks) await site.is(task, 'REVIEW')
    const ended = await site.setups()
    expect([ended.length, ended.filter(({ how }) => how === 'made').length]).toEqual([10, 1])
    for (const task of tasks.slice(0, 2)) {
      await site.lands(task)
      expect((await site.daemon.call('diff_get', { task_id: tasks[2] })).files).toHaveLength(1)
    }
    expect(git(site.repo, 'status', '--porcelain')).toBe('')
    expect(site.setupsAtWork()).toEqual([])
  })

  test('[SU9] [SU10] whose lockfile a branch changes is installed anew for it; what others get stays as it was', async () => {
    const site = await Site.open(shop, { checks: 'npm test', setup: INSTALL, ...FILES })
    await site.is(await site.start(OWN_FILE), 'REVIEW')
    const kept = async () => (await site.daemon.call('setup_kept')).kept as { key: string }[]
    const [first] = await kept()
    const contents = () =>
      execFileSync('sh', ['-c', 'find . -type f | sort | xargs sha256sum'], {
        cwd: join(site.daemon.home, 'packages', first?.key ?? '', 'tree'),
      })
    const before = contents()
    const changes = Object.entries(dependenciesOf('greet', 'leave')).map(([path, text]) => ({ write: { path, text } }))
    const test_js = "if (require('leave') !== 'leave') process.exit(1)\n"
    const changed = await site.start(...changes, { write: { path: 'test.js', text: test_js } })
    const other = await site.start(OWN_FILE)
    await site.lands(changed)
    expect((await kept()).length).toBeGreaterThan(1)
    expect(contents()).toEqual(before)
    await site.is(other, 'REVIEW')
    expect(existsSync(join(await site.place(other), 'node_modules/leave'))).toBe(false)
    // What begins after it has what it brought.
    const after = await site.start({ run: { argv: ['node', 'test.js'] } }, OWN_FILE)
    await site.lands(after)
  })

  test('[SU11] whose packages a worker edits are whole for everybody else; it cannot see what is kept', async () => {
    const site = await Site.open(shop, { checks: 'npm test', setup: INSTALL, ...FILES })
    const before = await site.start(OWN_FILE)
    await site.is(before, 'REVIEW')
    const edit = `echo "module.exports = 'edited'" > node_modules/greet/index.js && ! ls '${site.daemon.home}/packages'`
    const sly = await site.start({ run: { argv: ['sh', '-c', edit] } }, OWN_FILE)
    await site.is(sly, 'REVIEW')
    const greet = async (task: string) => readFileSync(join(await site.place(task), 'node_modules/greet/index.js'), 'utf8')
    expect(await greet(sly)).toContain('edited')
    expect(await greet(before)).not.toContain('edited')
    // Its checks have packages of their own, and so has whoever begins after it.
    await site.lands(sly)
    await site.lands(await site.start(USES, OWN_FILE))
  })

  test('[SU4] daemon and runner are killed in the middle of the setup, and everything goes on', async () => {
    const site = await Site.open(shop, { checks: 'npm test', ...FILES })
    const go = join(site.beside, 'go')
    await site.register({ setup: `echo x >> .env.begun; until test -e ${go}; do sleep 0.05; done; ${INSTALL}` })
    const task = await site.start(USES, OWN_FILE)
    const begun = async () => {
      const path = await site.place(task)
      return path && existsSync(join(path, '.env.begun')) ? readFileSync(join(path, '.env.begun'), 'utf8') : ''
    }
    await until(async () => (await begun()) === 'x\n', 'the setup begins')
    await site.daemon.end('SIGKILL')
    await site.daemon.start()
    // The setup went on without its daemon. Without its runner it begins anew.
    expect(await begun()).toBe('x\n')
    execFileSync('pkill', ['-KILL', '-f', `${site.daemon.home}/runs/setup_`])
    await until(async () => (await begun()) === 'x\nx\n', 'it begins anew')
    writeFileSync(go, '')
    await site.lands(task)
  })
})

describe('a proposal', () => {
  test('[SU15] is read by the daemon as it is built, and says which line of the file is wrong', async () => {
    const config = (text: string) => (repo: string) => write(repo, { '.signalbox.yaml': text, 'package-lock.json': '{}' })
    const proposed = async (text: string) => {
      const site = await Site.open(config(text))
      return (await site.daemon.call('repo_propose', { repo_id: site.handle })).proposed
    }
    expect(await proposed('checks: npm test\nsetup: npm ci --ignore-scripts\n')).toMatchObject({
      setup: 'npm ci --ignore-scripts',
      problem: null,
    })
    expect(await proposed('setup: npm ci\nsettup: x\n')).toMatchObject({ problem: expect.stringContaining('.signalbox.yaml, line 2') })
  })
})

describe('a setup', () => {
  test('[SU3] that asks for input, hangs, or fills what it may use starts nobody and says why', async () => {
    const site = await Site.open(shop)
    const failure = async (setup: string) => {
      await site.register({ setup })
      return site.failure(await site.start(OWN_FILE))
    }
    expect(await failure('printf "Proceed? "; read answer && test "$answer" = y')).toMatch(
      /^Setup failed: `.*` ended with \d+\.\nProceed\?/s,
    )
    expect(await failure('ulimit -f 1; head -c 9000000 /dev/zero > node_modules.tar')).toMatch(/^Setup failed: `.*` ended with SIGXFSZ/s)
    await site.daemon.call('setting_update', { key: 'setup.minutes', value: 0.01 })
    expect(await failure('echo fetching; sleep 600')).toBe(
      'Setup failed: `echo fetching; sleep 600` was not over after 0.01 minutes.\nfetching',
    )
  })

  test('[SU3] that fills the disk of the daemon, too, is told when there is room again, and nothing is lost', async () => {
    const home = mkdtempSync(join(tmpdir(), 'signalbox-e2e-'))
    const script = `mount -t tmpfs -o size=24m,mode=0700 tmpfs '${home}' && exec "$@"`
    const wrapper = ['unshare', '-rm', 'sh', '-c', script, 'sh']
    const site = await Site.open(shop, { setup: 'echo filling; cat /dev/zero > filler' }, { home, wrapper, hasOwnMounts: true })
    const task = await site.start(OWN_FILE)
    const filler = async () => join(site.daemon.homeFromHere, (await site.place(task)).slice(home.length), 'filler')
    await until(() => statfsSync(site.daemon.homeFromHere).bfree === 0, 'the disk is full')
    rmSync(await filler())
    // Whichever meets the full disk first: the command, or its runner, which has to keep what it says of that.
    expect(await site.failure(task)).toMatch(/^Setup failed: `.*` (ended with 1\..*No space left on device|could not go on: .*ENOSPC)/s)
    await site.register({ setup: null })
    await site.lands(await site.start(OWN_FILE))
  })
})
