import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { startedPid } from '../mcp/pipe.ts'
import { bearer, databaseOf, JSON_BODY, Mcp, rowCounts, rows, send, socketOf, until } from './support.ts'

let daemon: TestDaemon
let place: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  place = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-e2e-paths-')))
  await daemon.call('project_create', { name: 'Web' })
})
afterAll(async () => {
  await daemon.remove()
  rmSync(place, { recursive: true, force: true, maxRetries: 10 })
})

function repository(name: string, ...init: string[]): string {
  const path = join(place, name)
  mkdirSync(join(path, 'sub', 'deep'), { recursive: true })
  const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=ann', '-c', 'user.email=ann@x', ...args], { cwd: path })
  git('init', '-q', '-b', 'main', ...init)
  // One without a commit is refused for that already.
  if (!init.includes('--bare')) git('commit', '-q', '--allow-empty', '-m', 'begin')
  return path
}

describe('[S8] repositories', () => {
  test('[S8] one repository is one row under its real path, whatever name it is called by', async () => {
    const real = repository('one')
    symlinkSync(real, join(place, 'link'))
    symlinkSync(join(real, 'sub'), join(place, 'link-to-sub'))
    symlinkSync(place, join(real, 'sub', 'out'))
    const names = [
      `${real}/`,
      `${place}//one`,
      `${place}/./one`,
      `${real}/sub/..`,
      `${real}/sub/deep/../..`,
      `${real}/../one`,
      `${place}/nowhere/../one`,
      `${place}/link`,
      `${place}/link/sub`,
      `${place}/link-to-sub/deep`,
      `${real}/sub/out/one`,
      `${real}/sub`,
    ]
    if (existsSync('/proc/self/root')) names.push(`/proc/self/root${real}`)
    const { repo } = await daemon.call('repo_add', { path: `${place}/link/sub/../sub` })
    expect(repo.path).toBe(real)
    for (const path of names) {
      const { error } = await daemon.post('repo_add', { path })
      // A name through a folder that is not there is no name at all.
      expect([path, error.code]).toEqual([path, path.includes('nowhere') ? 'INVALID_INPUT' : 'ALREADY_EXISTS'])
    }
    expect(rows(databaseOf(daemon), 'SELECT path FROM repos')).toEqual([{ path: real }])
  })

  test('[S8] what is no work tree is refused, and nothing is written', async () => {
    const real = repository('two')
    repository('bare', '--bare')
    mkdirSync(join(place, 'plain'))
    writeFileSync(join(place, 'file'), 'x')
    symlinkSync(join(place, 'nowhere'), join(place, 'dangling'))
    symlinkSync(join(real, '.git'), join(place, 'link-to-git'))
    const bad = [
      ...[`${real}/.git`, `${real}/.git/hooks`, `${real}/sub/../.git/refs`, `${place}/link-to-git`],
      ...[`${place}/bare`, `${place}/plain`, `${place}/file`, `${place}/dangling`, `${place}/nowhere`, '/', '/etc/passwd', '/dev/null'],
      ...[
        `${place}/%74wo`,
        `${place}/two%2f`,
        `${place}/plain/..%2ftwo`,
        `${place}/%2e%2e/two`,
        `${place}/TWO`,
        `${place}/two\n`,
        `${place}/t*o`,
      ],
      ...['two', './two', '../two', '~/two', '', `file://${real}`, `${real}\0/etc`, `--upload-pack=${real}`, `$(echo ${real})`],
    ]
    const before = rowCounts(databaseOf(daemon))
    for (const path of bad.filter((name) => name !== `${place}/TWO` || !existsSync(name))) {
      const { error } = await daemon.post('repo_add', { path })
      expect([path, error?.code]).toEqual([path, 'INVALID_INPUT'])
    }
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[S8] a repository that claims another folder as its work tree is not taken at its word', async () => {
    const liar = repository('liar')
    for (const claimed of ['/', place, join(place, 'one')]) {
      execFileSync('git', ['config', 'core.worktree', claimed], { cwd: liar })
      const { ok, error } = await daemon.post('repo_add', { path: liar })
      expect([claimed, ok, error?.code]).toEqual([claimed, false, expect.stringMatching(/INVALID_INPUT|ALREADY_EXISTS/)])
    }
    expect(rows(databaseOf(daemon), 'SELECT path FROM repos')).toEqual([{ path: join(place, 'one') }])
  })
})

describe('[S8] addresses', () => {
  test('[S8] a tool is a name, not a path', async () => {
    const names = [
      '%2e%2e',
      '..',
      '../tools',
      '..%2f..%2fhealthz',
      '%2fetc%2fpasswd',
      'task_create%00',
      'task_create%2f..',
      '%252e%252e',
      'TASK_CREATE',
    ]
    names.push('task_create/', '.%2ftask_create', '__proto__', 'constructor', '%ff', '%', 'task_create;x', 'a'.repeat(5_000))
    const before = rowCounts(databaseOf(daemon))
    for (const name of names) {
      const path = `/api/tools/${name}`
      const answer = await send(daemon.url, {
        method: 'POST',
        path,
        headers: { ...bearer(daemon.token), ...JSON_BODY },
        body: '{"title":"x"}',
      })
      expect([name, answer.status, answer.json?.error?.code]).toEqual([
        name,
        404,
        expect.stringMatching(/TOOL_NOT_FOUND|RESOURCE_NOT_FOUND/),
      ])
    }
    for (const path of ['/API/TOOLS', '/api//tools', '/api/tools/..', '/healthz/..%2fmetrics', '//metrics', '/metrics/'])
      expect([path, (await send(daemon.url, { path, headers: bearer(daemon.token) })).status]).toEqual([path, 404])
    expect(rowCounts(databaseOf(daemon))).toEqual(before)
  })

  test('[S8] a resource is what its template says, and nothing beside it', async () => {
    const { handle } = await daemon.call('task_create', { title: 'x' })
    const mcp = await Mcp.begin(daemon)
    const read = (uri: string) => mcp.rpc('resources/read', { uri })
    expect((await read(`signalbox://task/${handle}`)).json.result.contents).toHaveLength(1)
    const bad = [
      '../..',
      '..%2f..',
      '',
      `${handle}/../${handle}`,
      `${handle}?x`,
      `${handle}#x`,
      `${handle}/`,
      `./${handle}`,
      '%2e%2e',
      `${handle}%00`,
      '{id}',
    ]
    const uris = bad.map((name) => `signalbox://task/${name}`)
    uris.push(
      'file:///etc/passwd',
      'signalbox://../etc/passwd',
      `SIGNALBOX://task/${handle}`,
      `signalbox://tasks/${handle}`,
      'signalbox://owner.token',
    )
    for (const uri of uris) {
      for (const answer of [
        await read(uri),
        await mcp.modern('resources/read', { uri }, uri),
        await mcp.rpc('resources/subscribe', { uri }),
      ])
        expect([uri, typeof answer.json?.error?.code, answer.json?.result]).toEqual([uri, 'number', undefined])
    }
    expect((await read('signalbox://task/T-999')).json.error.data).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })
})

describe('[S8] where backups go', () => {
  test('[S8] a backup never writes over anything, and never through a link', async () => {
    const existing = join(place, 'precious')
    const outside = join(place, 'not-yet-there')
    writeFileSync(existing, 'precious')
    symlinkSync(existing, join(place, 'link-to-precious'))
    symlinkSync(outside, join(place, 'dangling-target'))
    for (const target of [existing, join(place, 'link-to-precious'), place, join(place, 'nowhere', 'x.db'), '/proc/x.db']) {
      const { code, stderr } = await daemon.cli(['db', 'backup', target])
      expect([target, code, stderr]).toEqual([target, 2, expect.stringContaining('No backup was made')])
    }
    expect(readFileSync(existing, 'utf8')).toBe('precious')
    expect((await daemon.cli(['db', 'backup', join(place, 'dangling-target')])).code).toBe(0)
    expect(existsSync(outside)).toBe(false)
    expect(modes(place)).toMatchObject({ 'dangling-target': '600' })
    expect(readdirSync(place).filter((name) => name.includes('partial'))).toEqual([])
  })

  test('[S8] only a whole database of ours is restored; else nothing is changed', async () => {
    const stopped = await TestDaemon.start()
    await stopped.call('project_create', { name: 'Kept' })
    const backup = join(place, 'good.db')
    expect((await stopped.cli(['db', 'backup', backup])).code).toBe(0)
    expect(await stopped.cli(['db', 'restore', backup])).toMatchObject({ code: 2, stderr: expect.stringContaining('already uses') })
    await stopped.end()

    writeFileSync(join(place, 'text'), 'not a database')
    writeFileSync(join(place, 'empty'), '')
    writeFileSync(join(place, 'half'), readFileSync(backup).subarray(0, 20_000))
    const foreign = new DatabaseSync(join(place, 'foreign'))
    foreign.exec('CREATE TABLE meta (name TEXT, value TEXT)')
    foreign.close()
    symlinkSync(join(place, 'text'), join(place, 'link-to-text'))
    const before = readFileSync(databaseOf(stopped))
    for (const name of ['text', 'half', 'foreign', 'nowhere', '.'])
      expect([name, (await stopped.cli(['db', 'restore', join(place, name)])).code]).toEqual([name, 2])
    expect(readFileSync(databaseOf(stopped)).equals(before)).toBe(true)
    expect(readdirSync(stopped.home).filter((name) => /restor/.test(name))).toEqual([])

    symlinkSync(backup, join(place, 'link-to-backup'))
    expect((await stopped.cli(['db', 'restore', join(place, 'link-to-backup')])).code).toBe(0)
    await stopped.start()
    expect((await stopped.call('project_list')).projects).toMatchObject([{ name: 'Kept' }])
    await stopped.remove()
  })
})

/** Permission bits of everything below a folder. */
function modes(folder: string): Record<string, string> {
  const found = readdirSync(folder, { recursive: true, withFileTypes: true })
  return Object.fromEntries(
    found
      .filter((entry) => !entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
      .flatMap((path) => {
        // What was only there for a moment is gone by now.
        const found = lstatSync(path, { throwIfNoEntry: false })
        return found ? [[relative(folder, path), (found.mode & 0o7777).toString(8)]] : []
      }),
  )
}

/** As a careless shell starts it: whatever it makes is open to all unless it takes care. */
const CARELESS = ['sh', '-c', 'umask 000; exec "$@"', 'sh']

describe('[S17] what lies on disk', () => {
  test('[S17] folder 0700, every file and socket in it 0600, also under umask 000', async () => {
    const home = join(place, 'new', 'home')
    const open = new TestDaemon({ home, wrapper: CARELESS })
    mkdirSync(dirname(home))
    await open.start()
    await open.call('project_create', { name: 'x' })
    const own = await open.call('token_list')
    await open.call('token_rotate', { token_id: own.tokens[0].id })
    await open.cli(['db', 'backup'])
    const check = () => {
      expect(modes(dirname(home))).toMatchObject({ home: '700' })
      const found = modes(home)
      const folders = Object.keys(found).filter((name) => found[name] === '700')
      expect(folders.sort()).toEqual(['backups', basename(dirname(socketOf(open)))])
      for (const [name, mode] of Object.entries(found)) if (!folders.includes(name)) expect([name, mode]).toEqual([name, '600'])
      return Object.keys(found)
    }
    expect(check()).toEqual(
      expect.arrayContaining(['owner.token', 'daemon.json', 'daemon.lock', 'signalbox.db', 'signalbox.db-wal', 'signalbox.db-shm']),
    )
    await open.end('SIGKILL')
    await open.start()
    check()
    await open.end()
    check()
    await open.remove()
  })

  test('[S17] the database is private wherever it is put', async () => {
    const folder = join(place, 'elsewhere')
    mkdirSync(folder)
    const apart = await TestDaemon.start({ wrapper: CARELESS, env: { SIGNALBOX_DATABASE_URL: `sqlite:${folder}/other.db` } })
    await apart.call('project_create', { name: 'x' })
    const files = ['other.db', 'other.db-wal', 'other.db-shm', 'other.db.lock']
    expect(modes(folder)).toEqual(Object.fromEntries(files.map((name) => [name, '600'])))
    await apart.remove()
  })

  test('[S17] the log of a daemon that a client started is private too', async () => {
    const home = join(place, 'by-client')
    const client = new TestDaemon({ home })
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const env = { ...client.env, SIGNALBOX_PORT: '0' }
    mkdirSync(home)
    // Without a token yet the pipe cannot prove who it is, so the daemon makes one first.
    const first = new TestDaemon({ home })
    await first.start()
    await first.end()
    execFileSync('sh', ['-c', 'umask 000; exec "$@"', 'sh', process.execPath, join(import.meta.dirname, '../../bin/signalbox.js'), 'mcp'], {
      env,
      input: `${ping}\n`,
    })
    await until(() => ![undefined, first.pid].includes(startedPid(home)), 'it has started one')
    const pid = startedPid(home) as number
    try {
      expect(modes(home)).toMatchObject({ 'daemon.log': '600', 'daemon.json': '600', 'owner.token': '600', 'daemon.lock': '600' })
    } finally {
      process.kill(pid, 'SIGKILL')
    }
  })

  test('[S17] a folder and a token file that were open to others are closed to them', async () => {
    const home = join(place, 'open')
    const daemon = await TestDaemon.start({ home })
    await daemon.end()
    chmodSync(home, 0o777)
    chmodSync(join(home, 'owner.token'), 0o644)
    await daemon.start()
    expect(modes(place).open).toBe('700')
    expect(modes(home)['owner.token']).toBe('600')
    await daemon.remove()
  })

  const refuses = async (home: string, what: string) => {
    const { code, stderr } = await new TestDaemon({ home }).cli(['serve', '--quiet'], '', { SIGNALBOX_PORT: '0' })
    expect([what, code, stderr]).toEqual([what, 2, expect.stringMatching(/link|real folder/)])
    expect(stderr).not.toContain('    at ')
  }

  test('[S17] a link in place of the state folder, the socket folder or any file of its own is refused', async () => {
    const victim = join(place, 'victim')
    writeFileSync(victim, 'untouched')
    const folder = join(place, 'victims-folder')
    mkdirSync(folder)

    const linked = join(place, 'linked-home')
    symlinkSync(folder, linked)
    await refuses(linked, 'the state folder')

    const home = join(place, 'planted')
    mkdirSync(home)
    const socketFolder = dirname(socketOf({ home }))
    for (const [name, target] of [
      ['owner.token', victim],
      ['owner.token.next', victim],
      ['daemon.lock', victim],
      ['daemon.json', victim],
      ['signalbox.db', join(place, 'nothing-there')],
      [basename(socketFolder), folder],
    ] as const) {
      rmSync(home, { recursive: true })
      mkdirSync(home)
      symlinkSync(target, join(home, name))
      await refuses(home, name)
    }
    expect(readFileSync(victim, 'utf8')).toBe('untouched')
    expect(readdirSync(folder)).toEqual([])
    expect(existsSync(join(place, 'nothing-there'))).toBe(false)
  })

  test('[S17] a state folder that is a file, or cannot be made, is one line and exit code 2', async () => {
    const file = join(place, 'a-file')
    writeFileSync(file, 'mine')
    for (const home of [file, join(file, 'home'), '/proc/no-such-place/home']) {
      for (const args of [['serve'], ['db', 'backup'], ['db', 'restore', file]]) {
        const { code, stderr } = await daemon.cli(args, '', { SIGNALBOX_HOME: home, SIGNALBOX_PORT: '1' })
        expect([args, home, code, stderr.trimEnd().split('\n').length]).toEqual([args, home, 2, 1])
        expect(stderr).toContain(home)
        expect(stderr).toContain('SIGNALBOX_HOME')
      }
      for (const args of [['task', 'list'], ['status']]) {
        const { code, stderr } = await daemon.cli(args, '', { SIGNALBOX_HOME: home, SIGNALBOX_PORT: '1' })
        expect([args, home, [2, 7].includes(code)]).toEqual([args, home, true])
        expect(stderr).not.toContain('    at ')
      }
    }
    expect(readFileSync(file, 'utf8')).toBe('mine')
  })

  test('[S17] a link where the socket belongs is taken away, not followed', async () => {
    const home = join(place, 'planted-socket')
    const path = socketOf({ home })
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(join(place, 'victim-2'), 'untouched')
    symlinkSync(join(place, 'victim-2'), path)
    const started = await TestDaemon.start({ home })
    expect(execFileSync('stat', ['-c', '%F %a', path], { encoding: 'utf8' }).trim()).toBe('socket 600')
    expect(readFileSync(join(place, 'victim-2'), 'utf8')).toBe('untouched')
    await started.remove()
  })

  test.runIf(process.getuid?.() === 0)("[S17] another user's folder is refused", async () => {
    const home = join(place, 'theirs')
    mkdirSync(home)
    execFileSync('chown', ['65534', home])
    const { code, stderr } = await new TestDaemon({ home }).cli(['serve', '--quiet'], '', { SIGNALBOX_PORT: '0' })
    expect([code, stderr]).toEqual([2, expect.stringContaining('belongs to another user')])
    expect(readdirSync(home)).toEqual([])
  })
})
