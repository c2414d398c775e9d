import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import type { CommittedFile } from '../../ports/packages.ts'
import { until } from '../../testing/signals.ts'
import { removeTree } from '../files-shared/remove.ts'
import { createPackages } from './index.ts'

const withoutPython = (process.env.SIGNALBOX_TEST_WITHOUT ?? '').split(',').includes('python3')

class Ground {
  readonly folder = mkdtempSync(join(tmpdir(), 'signalbox [packages] '))
  readonly packages = createPackages({
    folder: join(this.folder, 'kept'),
    privateFolder: (path) => mkdirSync(path, { recursive: true, mode: 0o700 }),
    env: process.env,
  })

  constructor() {
    onTestFinished(() => rmSync(this.folder, { recursive: true, force: true }))
  }

  checkout(name: string, files: Record<string, string> = {}): string {
    const path = join(this.folder, name)
    mkdirSync(path)
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(dirname(join(path, file)), { recursive: true })
      writeFileSync(join(path, file), text)
    }
    return path
  }

  async key(
    command = 'npm ci',
    files: CommittedFile[] = [{ path: 'package-lock.json', id: '1' }],
    checkout = this.folder,
    brought: string[] = [],
  ) {
    return (await this.packages.keysOf(command, checkout, files, brought))?.byFiles
  }
}

describe('the key', () => {
  test('[SU9] is decided by the command and by what package managers read, wherever it stands, and by nothing else', async () => {
    const ground = new Ground()
    const lock = { path: 'package-lock.json', id: '1' }
    const first = await ground.key()
    expect(first).toMatch(/^[0-9a-f]{40}$/)
    expect(await ground.key('npm ci', [lock, { path: 'src/main.ts', id: '7' }])).toBe(first)
    for (const other of [
      await ground.key('npm ci --omit=dev'),
      await ground.key('npm ci', [{ ...lock, id: '2' }]),
      await ground.key('npm ci', [lock, { path: 'packages/a/.npmrc', id: '1' }]),
      await ground.key('npm ci', [lock, { path: 'patches/a+1.0.0.diff', id: '1' }]),
    ])
      expect(other).not.toBe(first)
  })

  test('[SU9] is that of the whole tree where a script of the repository runs at the installation', async () => {
    const ground = new Ground()
    const keyWith = async (scripts: object, id: string) => {
      const checkout = ground.checkout(`c${Math.random()}`, { 'package.json': JSON.stringify({ scripts }) })
      return ground.key(
        'npm ci',
        [
          { path: 'package.json', id: '1' },
          { path: 'src/main.ts', id },
        ],
        checkout,
      )
    }
    expect(await keyWith({ test: 'x', prepare: 'husky' }, '1')).toBe(await keyWith({ test: 'x', prepare: 'husky' }, '2'))
    for (const name of ['postinstall', 'preprepare', 'postprepare', 'dependencies', 'pnpm:devPreinstall'])
      expect(await keyWith({ [name]: 'node make.js' }, '1')).not.toBe(await keyWith({ [name]: 'node make.js' }, '2'))
  })

  test('[SU9] waits for no pipe that a branch has in the place of a manifest, and believes no folder that is copied', async () => {
    const ground = new Ground()
    const checkout = ground.checkout('sly')
    execFileSync('mkfifo', [join(ground.folder, 'pipe')])
    symlinkSync(join(ground.folder, 'pipe'), join(checkout, 'package.json'))
    const files = [{ path: 'package.json', id: '1' }]
    const more = [...files, { path: 'lib/index.js', id: '7' }]
    expect(await ground.key('npm ci', files, checkout)).not.toBe(await ground.key('npm ci', more, checkout))
    const copied = ground.checkout('copied', { 'package.json': '{"dependencies":{"lib":"file:./lib"}}' })
    expect(await ground.key('yarn install', files, copied)).not.toBe(await ground.key('yarn install', more, copied))
    for (const [path, text] of [
      ['package.json', '{"devDependencies":{"lib":"./lib"}}'],
      ['package.json', '{"overrides":{"lib":{"deep":"file:lib"}}}'],
      ['package.json', '{"dependenciesMeta":{"lib":{"injected":true}}}'],
      ['.npmrc', 'inject-workspace-packages=true\n'],
      ['.pnpmfile.cjs', "module.exports = require('./lib')\n"],
      ['package.yaml', 'scripts: { prepare: node lib }\n'],
    ] as const) {
      const other = ground.checkout(`c${Math.random()}`, { [path]: text })
      const lone = [{ path, id: '1' }]
      expect(await ground.key('pnpm install', lone, other)).not.toBe(await ground.key('pnpm install', [...lone, ...more.slice(1)], other))
    }
    const plain = ground.checkout('plain', { 'package.json': '{"main":"./lib","dependencies":{"a":"file:vendor/a.tgz","b":"./b.tgz"}}' })
    expect(await ground.key('npm ci', files, plain)).toBe(await ground.key('npm ci', more, plain))
    expect(await ground.key('npm ci', [{ path: 'node_modules/own/index.js', id: '1' }])).toBeUndefined()
  })

  test('[SU9] [SU10] is decided by the names of files that were copied into it, and by what those say that package managers read', async () => {
    const ground = new Ground()
    const keyWith = (brought: Record<string, string>) =>
      ground.key('npm ci', undefined, ground.checkout(`c${Math.random()}`, brought), Object.keys(brought))
    const first = await keyWith({ '.env': 'A=1' })
    expect(await keyWith({ '.env': 'A=2' })).toBe(first)
    expect(await keyWith({})).not.toBe(first)
    expect(await keyWith({ '.env.test': 'A=1' })).not.toBe(first)
    expect(await keyWith({ '.npmrc': 'registry=https://a' })).not.toBe(await keyWith({ '.npmrc': 'registry=https://b' }))
  })

  test('[SU9] there is one for the packages of several folders', async () => {
    const ground = new Ground()
    expect(await ground.key('npm ci --prefix web && npm ci --prefix apps/api --omit=dev')).toMatch(/^[0-9a-f]{40}$/)
  })

  test('[SU9] there is none for a command that may do more than install', async () => {
    const ground = new Ground()
    for (const command of [
      'npm ci && createdb shop',
      'npm ci; rm -rf x',
      'npm ci $(id)',
      './setup.sh',
      'npm run build',
      'npm ci --prefix `id`',
      'npm ci --prefix ../other',
      'npm ci --prefix /usr/local',
      'npm ci web',
      'npm ci > log',
      'npm ci --prefix=web;createdb shop',
      'npm ci --loglevel=$(createdb)',
      '.venv/bin/pip install -r $(id).txt',
      '.venv/bin/pip install x;y.txt',
      'make deps',
    ])
      expect(await ground.key(command)).toBeUndefined()
    for (const command of [
      'pnpm install --frozen-lockfile --package-import-method=clone-or-copy',
      'python3 -m venv .venv && .venv/bin/pip install -r requirements.txt',
      'uv sync --frozen --link-mode=copy',
    ])
      expect(await ground.key(command)).toBeDefined()
  })
})

describe('the key of a tree', () => {
  test('[SU10] is that of no other tree', async () => {
    const { packages, folder } = new Ground()
    const lock = { path: 'package-lock.json', id: '1' }
    const keys = await packages.keysOf('npm ci', folder, [lock], [])
    expect(await packages.keysOf('npm ci', folder, [lock], [])).toEqual(keys)
    expect((await packages.keysOf('npm ci', folder, [lock, { path: 'src/main.ts', id: '7' }], []))?.byTree).not.toBe(keys?.byTree)
    expect(keys?.byTree).not.toBe(keys?.byFiles)
  })
})

describe('what is kept', () => {
  test('[SU9] is there for whoever comes next, and replaces what an attempt before left half done', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { 'node_modules/a/index.js': 'a', 'packages/p/node_modules/b.js': 'b' })
    chmodSync(join(made, 'node_modules/a/index.js'), 0o755)
    expect(await ground.packages.give(key, ground.checkout('nothing'))).toBe(false)
    await ground.packages.keep(key, made, ['node_modules', 'packages/p/node_modules'])
    const next = ground.checkout('next', { 'node_modules/half.js': 'x', 'packages/p/package.json': '{}' })
    expect(await ground.packages.give(key, next)).toBe(true)
    expect(readFileSync(join(next, 'packages/p/node_modules/b.js'), 'utf8')).toBe('b')
    expect(lstatSync(join(next, 'node_modules/a/index.js')).mode & 0o777).toBe(0o755)
    expect(readdirSync(join(next, 'node_modules'))).toEqual(['a'])
  })

  test('[SU9] is there as a whole or not at all: of a copy that was cut off nothing is left in the checkout', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    await ground.packages.keep(key, ground.checkout('made', { '.venv/lib/a.py': 'a' }), ['.venv'])
    const cp = ground.checkout('bin', { cp: '#!/bin/sh\nPATH=/usr/bin:/bin cp "$@"; exit 1\n' })
    chmodSync(join(cp, 'cp'), 0o755)
    vi.stubEnv('PATH', `${cp}:${process.env.PATH}`)
    onTestFinished(() => void vi.unstubAllEnvs())
    const next = ground.checkout('next')
    await expect(ground.packages.give(key, next)).rejects.toThrow('cp ')
    expect([readdirSync(next), readdirSync(join(ground.folder, 'kept'))]).toEqual([[], [key]])
  })

  test('[SU12] names the folder that it is in: programs, and links', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { '.venv/bin/tool': '', '.venv/lib/blob.bin': '' })
    const latin = (path: string) => Buffer.from(`# caf\xe9 ${path}\n`, 'latin1')
    writeFileSync(join(made, '.venv/lib/latin.py'), latin(made))
    writeFileSync(join(made, '.venv/bin/tool'), `#!${made}/.venv/bin/python3\n`)
    chmodSync(join(made, '.venv/bin/tool'), 0o755)
    writeFileSync(join(made, '.venv/lib/blob.bin'), Buffer.concat([Buffer.from([0, 1, 2]), Buffer.from(made)]))
    symlinkSync(`${made}/.venv/lib`, join(made, '.venv/lib64'))
    symlinkSync('/usr/bin/env', join(made, '.venv/bin/env'))
    await ground.packages.keep(key, made, ['.venv'])
    rmSync(made, { recursive: true })
    const next = ground.checkout('next')
    await ground.packages.give(key, next)
    expect(readFileSync(join(next, '.venv/bin/tool'), 'utf8')).toBe(`#!${next}/.venv/bin/python3\n`)
    expect(lstatSync(join(next, '.venv/bin/tool')).mode & 0o777).toBe(0o755)
    expect(readFileSync(join(next, '.venv/lib/latin.py'))).toEqual(latin(next))
    expect([readlinkSync(join(next, '.venv/lib64')), readlinkSync(join(next, '.venv/bin/env'))]).toEqual([
      `${next}/.venv/lib`,
      '/usr/bin/env',
    ])
  })

  test.skipIf(withoutPython)('[SU12] is a Python environment that works elsewhere', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made')
    // Without pip: Debian has that in a package of its own.
    execFileSync('python3', ['-m', 'venv', '--without-pip', '.venv'], { cwd: made })
    await ground.packages.keep(key, made, ['.venv'])
    rmSync(made, { recursive: true })
    const next = ground.checkout('next')
    await ground.packages.give(key, next)
    const prefix = execFileSync(join(next, '.venv/bin/python'), ['-c', 'import sys; print(sys.prefix)'], { encoding: 'utf8' })
    expect(prefix.trim()).toBe(join(next, '.venv'))
    expect(execFileSync('bash', ['-c', '. .venv/bin/activate && echo $VIRTUAL_ENV'], { cwd: next, encoding: 'utf8' }).trim()).toBe(
      join(next, '.venv'),
    )
  })

  test('[SU9] with a manifest that was cut off is as good as nothing, and is made again', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { 'node_modules/a.js': 'a' })
    await ground.packages.keep(key, made, ['node_modules'])
    const manifest = join(ground.folder, 'kept', key, 'manifest.json')
    const whole = readFileSync(manifest)
    for (const length of [0, 1, whole.length >> 1, whole.length - 1]) {
      truncateSync(manifest, length)
      const next = ground.checkout(`next${length}`)
      expect([await ground.packages.give(key, next), readdirSync(next), await ground.packages.list()]).toEqual([false, [], []])
      await ground.packages.keep(key, made, ['node_modules'])
      expect(await ground.packages.give(key, next)).toBe(true)
    }
  })

  test('[SU13] what a killed keep leaves behind is given to nobody, and goes when nobody can be at work there any more', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { 'node_modules/a.js': 'a' })
    const kept = join(ground.folder, 'kept')
    // As far as its packages, and as far as the step that makes it valid.
    for (const left of ['.one/tree/node_modules', '.two/tree/node_modules']) mkdirSync(join(kept, left), { recursive: true })
    writeFileSync(join(kept, '.two/manifest.json'), '{"command":"npm ci","paths":["node_modules"],"bytes":1,"kept_at":1}')
    expect([await ground.packages.list(), await ground.packages.give(key, ground.checkout('next'))]).toEqual([[], false])
    await ground.packages.keep(key, made, ['node_modules'])
    // Another daemon may be in the middle of it.
    expect(readdirSync(kept).sort()).toEqual(['.one', '.two', key])
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61 * 60_000 })
    onTestFinished(() => void vi.useRealTimers())
    await ground.packages.keep(key, made, ['node_modules'])
    expect(readdirSync(kept)).toEqual([key])
  })

  test('[SU9] [SU13] is given and goes, whatever its files and folders forbid', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { 'node_modules/a/x.js': '' })
    writeFileSync(join(made, 'node_modules/a/x.js'), made)
    chmodSync(join(made, 'node_modules/a/x.js'), 0o444)
    chmodSync(join(made, 'node_modules/a'), 0o555)
    await ground.packages.keep(key, made, ['node_modules'])
    const next = ground.checkout('next')
    expect(await ground.packages.give(key, next)).toBe(true)
    expect(readFileSync(join(next, 'node_modules/a/x.js'), 'utf8')).toBe(next)
    await ground.packages.drop(key)
    expect(readdirSync(join(ground.folder, 'kept'))).toEqual([])
    for (const path of [made, next]) await removeTree(path)
  })

  test('[SU13] a copy that is under way is not taken for a left one, though the machine slept in the middle of it', async () => {
    const ground = new Ground()
    const [one, two] = [(await ground.key('npm ci')) as string, (await ground.key('npm install')) as string]
    const [held, go] = [join(ground.folder, 'held'), join(ground.folder, 'go')]
    const real = `PATH='${process.env.PATH}' cp "$@"`
    const bin = ground.checkout('bin', {
      cp: `#!/bin/sh\n${real} || exit 1\nmkdir '${held}' || exit 0\nuntil test -e '${go}'; do sleep 0.02; done\n`,
    })
    chmodSync(join(bin, 'cp'), 0o755)
    vi.stubEnv('PATH', `${bin}:${process.env.PATH}`)
    onTestFinished(() => void vi.unstubAllEnvs())
    const made = ground.checkout('made', { 'node_modules/a.js': 'a' })
    const keeping = ground.packages.keep(one, made, ['node_modules'])
    await until(() => existsSync(held))
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61 * 60_000 })
    onTestFinished(() => void vi.useRealTimers())
    await ground.packages.keep(two, made, ['node_modules'])
    writeFileSync(go, '')
    await keeping
    const next = ground.checkout('next')
    expect([await ground.packages.give(one, next), existsSync(join(next, 'node_modules/a.js'))]).toEqual([true, true])
  })

  test('[SU9] has a copy ready, which the next checkout gets as it is, and the one after that another', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    const made = ground.checkout('made', { 'node_modules/a.js': 'a' })
    writeFileSync(join(made, 'node_modules/b.sh'), made)
    await ground.packages.keep(key, made, ['node_modules'])
    const [alone] = await ground.packages.list()
    expect(alone?.spare_bytes).toBe(alone?.bytes)
    for (let i = 0; i < 2; i++) await ground.packages.stock(key, new AbortController().signal)
    expect(await ground.packages.list()).toMatchObject([{ bytes: 2 * (alone?.bytes ?? 0), spare_bytes: 0 }])
    const inode = lstatSync(join(ground.folder, 'kept', key, 'spare/node_modules/a.js')).ino
    const given = ['one', 'two'].map((name) => ground.checkout(name))
    for (const path of given) expect(await ground.packages.give(key, path)).toBe(true)
    expect(given.map((path) => lstatSync(join(path, 'node_modules/a.js')).ino === inode)).toEqual([true, false])
    expect(given.map((path) => readFileSync(join(path, 'node_modules/b.sh'), 'utf8'))).toEqual(given)
    expect((await ground.packages.list())[0]?.spare_bytes).toBe(alone?.bytes)
  })

  test('[SU9] is not half ready when the copy is cut off', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    await ground.packages.keep(key, ground.checkout('made', { 'node_modules/a.js': 'a' }), ['node_modules'])
    await expect(ground.packages.stock(key, AbortSignal.abort())).rejects.toThrow()
    expect(readdirSync(join(ground.folder, 'kept'))).toEqual([key])
    expect((await ground.packages.list())[0]?.spare_bytes).toBeGreaterThan(0)
  })

  test('[SU8] leads nothing out of a checkout that has a link in the place of a folder', async () => {
    const ground = new Ground()
    const key = (await ground.key()) as string
    await ground.packages.keep(key, ground.checkout('made', { 'packages/p/node_modules/b.js': 'b' }), ['packages/p/node_modules'])
    const [outside, sly] = [ground.checkout('outside'), ground.checkout('sly')]
    symlinkSync(outside, join(sly, 'packages'))
    await expect(ground.packages.give(key, sly)).rejects.toThrow('leads out')
    expect(existsSync(join(outside, 'p', 'node_modules'))).toBe(false)
  })

  test('[SU13] is listed, the least recently used first, and goes in one step', async () => {
    const ground = new Ground()
    const keys = [(await ground.key('npm ci')) as string, (await ground.key('npm ci --omit=dev')) as string]
    for (const [n, key] of keys.entries())
      await ground.packages.keep(key, ground.checkout(`m${n}`, { 'node_modules/a.js': 'a' }), ['node_modules'])
    await ground.packages.give(keys[0] as string, ground.checkout('next'))
    expect((await ground.packages.list()).map(({ command }) => command)).toEqual(['npm ci --omit=dev', 'npm ci'])
    await ground.packages.drop(keys[0] as string)
    await ground.packages.drop(keys[0] as string)
    expect(await ground.packages.list()).toMatchObject([{ key: keys[1], command: 'npm ci --omit=dev' }])
    await expect(ground.packages.drop('../kept')).rejects.toThrow('is no key')
  })
})
