import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { terminalContract } from '../../ports/terminal.contract.ts'
import type { Named, Signs } from '../../ports/terminal.ts'
import { FakeTerminal } from '../../testing/fakes/terminal.ts'
import { until } from '../../testing/signals.ts'
import { claude } from '../claude/interactive.ts'
import type { Patience } from './delivery.ts'
import { createTerminal } from './index.ts'
import { isRecent } from './tmux.ts'

const TUI = resolve(import.meta.dirname, '../../testing/tui.mjs')
const TOKEN = `sbx_agent_${'t'.repeat(43)}`
const withoutTmux = (process.env.SIGNALBOX_TEST_WITHOUT ?? '').split(',').includes('tmux')

let folder: string
let number = 0
const env = { ...process.env, MY_SECRET: 'hidden', SIGNALBOX_HOME: '/elsewhere' }
const session = (): Named => ({ id: `session_${process.pid}_${++number}`, name: `T-${number}` })
const every = () => Array.from({ length: number }, (_, i) => ({ id: `session_${process.pid}_${i + 1}`, name: `T-${i + 1}` }))
/** For what comes to nothing: nobody waits for it. */
const IMPATIENT: Patience = { takenMs: [300, 400, 600], drawnMs: 1_000 }
/** A program that stands still for a moment must not get a second Enter, which it would take for another prompt. */
const PATIENT: Patience = { takenMs: [60_000], drawnMs: 60_000 }
/** For one that swallows the first. */
const TWICE: Patience = { takenMs: [3_000, 60_000], drawnMs: 60_000 }
const makeFolder = (path: string) => void mkdirSync(path, { recursive: true, mode: 0o700 })
const make = (patience?: Patience) =>
  createTerminal({
    sockets: join(folder, 'run'),
    privateFolder: makeFolder,
    env,
    patience,
  })

beforeAll(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'signalbox-tmux-')))
  writeFileSync(join(folder, 'token'), TOKEN, { mode: 0o600 })
})

afterAll(async () => {
  // Of a test that failed.
  if (!withoutTmux) await Promise.all(every().map((one) => make().close(one, 0)))
  rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
})

/** A program that is told by files of a folder of its own. */
function place(plan: object = {}) {
  const home = mkdtempSync(join(folder, 'place-'))
  const log = join(home, 'log')
  writeFileSync(join(home, 'plan'), JSON.stringify({ log, ...plan }))
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  const { files, signs } = claude.launch({ folder: home, cwd, mcp: { url: 'http://127.0.0.1:9/mcp' } })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(home, name), text)
  const argv = [process.execPath, TUI, '--plan', join(home, 'plan'), '--settings', join(home, 'settings.json')] as [string, ...string[]]
  const spec = { argv, cwd, env: { OF_PLAN: 'yes' }, inherit: [], tokenFile: join(folder, 'token') }
  const prompts = () =>
    existsSync(log)
      ? readFileSync(log, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as string)
      : []
  return { home, spec, prompts, signs: signs as Signs }
}

async function opened(plan: object = {}, patience = PATIENT) {
  const terminal = make(patience)
  const one = session()
  const at = place(plan)
  const { attach } = await terminal.open(one, at.spec)
  onTestFinished(() => terminal.close(one, 100))
  const server = (...command: string[]) => execFileSync('tmux', ['-S', attach[2] as string, ...command], { encoding: 'utf8' })
  const ready = (onDialog = (_: string) => {}, signs = at.signs) => terminal.ready(one, signs, onDialog, AbortSignal.timeout(60_000))
  return { terminal, one, attach, server, ready, ...at }
}

const QUIET: Signs = { dialogs: [] }

describe('the fake', () => {
  const terminal = new FakeTerminal()
  terminalContract(() => ({
    terminal,
    session,
    spec: place().spec,
    shows: async ({ id }, text) => terminal.change(id, { text }),
    ends: async ({ id }) => terminal.change(id, { state: { state: 'ended', how: 'code 0', screen: '' } }),
    vanishes: async ({ id }) => terminal.change(id, { state: { state: 'absent' } }),
  }))
})

describe.skipIf(withoutTmux)('tmux', () => {
  const shared = { terminal: undefined as ReturnType<typeof make> | undefined }
  const real = () => {
    shared.terminal ??= make()
    return shared.terminal
  }
  terminalContract(() => ({
    terminal: real(),
    session,
    spec: place().spec,
    shows: (one, text) => real().type(one, text, []),
    ends: (one) => real().type(one, '', ['C-c']),
    async vanishes(one) {
      const { attach } = await real().open(one, place().spec)
      const pid = execFileSync('tmux', ['-S', attach[2] as string, 'display-message', '-p', '#{pid}'], { encoding: 'utf8' })
      expect(Number(pid)).toBeGreaterThan(1)
      process.kill(Number(pid), 'SIGKILL')
    },
  }))

  test('[TM1] a later daemon finds it; one under the same path with another marker is not it', async () => {
    const { one, spec, attach, server } = await opened()
    const later = make()
    expect(await later.look(one)).toMatchObject({ state: 'running' })
    expect(await later.open(one, spec)).toEqual({ attach })
    server('set-option', '-g', '@signalbox', 'session_of_another')
    expect(await later.look(one)).toEqual({ state: 'absent' })
    server('set-option', '-g', '@signalbox', one.id)
  })

  test('[TM1] one of an older version, which had its socket elsewhere, is found', async () => {
    const { one, spec, attach } = await opened()
    const later = createTerminal({ sockets: join(folder, 'run', 'own'), olderSockets: join(folder, 'run'), privateFolder: makeFolder, env })
    expect(await later.look(one)).toMatchObject({ state: 'running' })
    expect(await later.open(one, spec)).toEqual({ attach })
  })

  test('[TM2] has a server of its own, an environment from a list, and the token in the program alone', async () => {
    const { one, server, attach, spec } = await opened()
    expect(statSync(join(folder, 'run')).mode & 0o777).toBe(0o700)
    const [pid, pane] = server('display-message', '-p', '-t', '%0', '#{pid} #{pane_pid}').trim().split(' ')
    const environ = (of: string | undefined) => readFileSync(`/proc/${of}/environ`, 'utf8').split('\0')
    await until(() => environ(pane).includes(`SIGNALBOX_TOKEN=${TOKEN}`))
    expect(environ(pane)).toEqual(expect.arrayContaining([`SIGNALBOX_RUN=${one.id}`, 'OF_PLAN=yes']))
    expect(environ(pane).join('\n')).not.toMatch(/MY_SECRET|SIGNALBOX_HOME/)
    expect(environ(pid).join('\n')).not.toContain(TOKEN)
    expect(server('show-environment', '-g')).not.toContain(TOKEN)
    for (const of of [pid, pane]) expect(readFileSync(`/proc/${of}/cmdline`, 'utf8')).not.toContain(TOKEN)
    expect(server('list-sessions', '-F', '#S').trim()).toBe(one.name)
    expect(server('show-options', '-s', 'set-clipboard')).toContain('off')
    expect(attach).toEqual(['tmux', '-S', expect.stringContaining(folder), 'attach', '-t', one.name])
    expect(readFileSync(`/proc/${pane}/environ`, 'utf8')).toContain(`PWD=${spec.cwd}`)
  })

  test('[TM3] [TM10] a program that cannot be started says so on its last screen', async () => {
    const terminal = make()
    const one = session()
    await terminal.open(one, { ...place().spec, argv: ['/no/such/program', '$(touch /tmp/never)'] })
    onTestFinished(() => terminal.close(one, 100))
    expect(await terminal.ended(one, new AbortController().signal)).toMatchObject({
      state: 'ended',
      // On a busy machine tmux never hears how some programs ended, and we say so.
      how: expect.stringMatching(/^code 127$|nobody saw/),
      screen: expect.stringContaining('/no/such/program'),
    })
  })

  test.for([17, 60, 130])('[TM4] (F9) a prompt of %i KB arrives whole, and is sent', async (kilobytes) => {
    const { terminal, one, ready, signs, prompts } = await opened({ startMs: 200 })
    expect(await ready()).toBe('ready')
    const text = `${'Zeile mit Ümläuten, "Anführung" und $(nichts) `#{pid}` \\ ;\n'.repeat(3_000)}`
      .slice(0, kilobytes * 1024 - 20)
      .concat('\nthe end;')
    expect(await terminal.deliver(one, text, signs)).toEqual({ state: 'sent' })
    expect(prompts()).toEqual([text])
    expect(await terminal.taken(one, text, signs)).toBe(true)
    expect(await terminal.taken(one, `${text}.`, signs)).toBe(false)
  })

  test('[TM4] a line that the system would cut is refused; a program that reads by itself gets it whole', async () => {
    const terminal = make()
    const shows = (one: Named, text: string) => until(async () => (await terminal.screen(one))?.text.includes(text) ?? false)
    const running = async (mode: string) => {
      const one = session()
      await terminal.open(one, { ...place().spec, argv: ['/bin/sh', '-c', `stty ${mode}; echo ready; exec cat`] })
      onTestFinished(() => terminal.close(one, 100))
      await shows(one, 'ready')
      return one
    }
    const byLine = await running('icanon')
    await expect(terminal.type(byLine, `short\n${'é'.repeat(2_048)}`, [])).rejects.toThrow('4095 bytes')
    await terminal.type(byLine, `${'y'.repeat(4_000)}\n${'z'.repeat(4_000)}END`, ['Enter'])
    await shows(byLine, 'END')
    const byItself = await running('-icanon')
    await terminal.type(byItself, `${'w'.repeat(10_000)}END`, [])
    await shows(byItself, 'END')
  })

  test('[TM4] what would be a key in a text is left out of it', async () => {
    const { terminal, one, ready, signs, prompts } = await opened()
    await ready()
    const text = 'a\x1b[201~\rrm -rf\x03 b\u0090c'
    expect(await terminal.deliver(one, text, signs)).toEqual({ state: 'sent' })
    expect(prompts()).toEqual(['a[201~rm -rf bc'])
  })

  test('[TM5] (F10) an Enter that is swallowed is pressed again', async () => {
    const { terminal, one, ready, signs, prompts } = await opened({ swallow: 1 }, TWICE)
    await ready()
    expect(await terminal.deliver(one, 'do it', signs)).toEqual({ state: 'sent' })
    expect(prompts()).toEqual(['do it'])
  })

  test('[TM5] (F10) one that is swallowed for ever is not called sent', async () => {
    const { terminal, one, ready, signs, prompts } = await opened({ swallow: 100 }, IMPATIENT)
    await ready()
    expect(await terminal.deliver(one, 'do it', signs)).toMatchObject({ state: 'not_verified' })
    expect(prompts()).toEqual([])
  })

  test('[TM5] (F10) a draft that stood in the box is noticed: what was taken is another text', async () => {
    const { terminal, one, ready, signs, prompts } = await opened({ draft: 'half a thought ' })
    await ready()
    expect(await terminal.deliver(one, 'do it', signs)).toEqual({
      state: 'not_verified',
      detail: 'It took another text: 20 characters instead of 5.',
    })
    expect(prompts()).toEqual(['half a thought do it'])
  })

  test('[TM5] (F10) two prompts at once come one after the other, each whole', async () => {
    const { terminal, one, ready, signs, prompts } = await opened()
    await ready()
    const texts = ['first '.repeat(2_000).trim(), 'second '.repeat(2_000).trim()]
    expect(await Promise.all(texts.map((text) => terminal.deliver(one, text, signs)))).toEqual([{ state: 'sent' }, { state: 'sent' }])
    expect(prompts()).toEqual(texts)
  })

  test('[TM5] a program that says nothing is believed nothing; one that ended took nothing', async () => {
    const { terminal, one, ready, prompts } = await opened({ silent: true }, { takenMs: [60_000], drawnMs: 1_000 })
    await ready(() => {}, { ...QUIET, ready: { shows: /ready/ } })
    expect(await terminal.deliver(one, 'do it', QUIET)).toMatchObject({ state: 'not_verified' })
    expect(prompts()).toEqual(['do it'])
    expect(await terminal.deliver(one, 'and this', { dialogs: [], submitted: { shows: /took 8 characters/ } })).toEqual({ state: 'sent' })
    await terminal.type(one, '', ['C-c'])
    await terminal.ended(one, AbortSignal.timeout(10_000))
    expect(await terminal.deliver(one, 'do it', QUIET)).toEqual({ state: 'failed', detail: 'Nothing runs in that terminal.' })
  })

  test('[TM5] a program that has no other sign, but shows what it took, is believed that', async () => {
    const signs: Signs = { dialogs: [], ready: { shows: /ready/ }, submitted: { shows: /never shown/ }, holds: /\[Pasted text/ }
    const text = `${'line\n'.repeat(100)}the last line of it`
    const shows = await opened({ silent: true, unfolds: true, swallow: 1 }, TWICE)
    await shows.ready(() => {}, signs)
    expect(await shows.terminal.deliver(shows.one, text, signs)).toEqual({ state: 'sent' })
    expect(shows.prompts()).toEqual([text])
  })

  test('[TM6] (F11) a dialog is told, not answered; when a person has answered it, it goes on', async () => {
    const { terminal, one, ready, signs, prompts } = await opened({ dialog: true, startMs: 100 })
    const dialogs: string[] = []
    const readied = ready((what) => dialogs.push(what))
    await until(() => dialogs.length === 1)
    expect(dialogs).toEqual(['whether you trust this folder'])
    expect(await terminal.deliver(one, 'do it', signs)).toMatchObject({ state: 'failed', detail: expect.stringContaining('trust') })
    expect(await terminal.look(one)).toMatchObject({ state: 'running' })
    await terminal.type(one, 'y', [])
    expect(await readied).toBe('ready')
    expect(await terminal.deliver(one, 'do it', signs)).toEqual({ state: 'sent' })
    expect(prompts()).toEqual(['do it'])
  })

  test('[TM6] a program without a sign is ready when it stands still, and gone when it ended', async () => {
    const { terminal, one, ready } = await opened({ silent: true })
    expect(await ready(() => {}, QUIET)).toBe('ready')
    expect((await terminal.screen(one))?.text).toContain('ready')
    const limit = AbortSignal.timeout(60_000)
    const waiting = terminal.ready(one, { dialogs: [], ready: { shows: /never/ } }, () => {}, limit)
    await terminal.type(one, '', ['C-c'])
    expect(await waiting).toBe('gone')
    expect(limit.aborted).toBe(false)
  })

  test('[TM7] a screen is text without colours; its history comes on demand, cut at its limit', async () => {
    const terminal = make()
    const one = session()
    const many =
      'i=0; while [ $i -lt 9000 ]; do printf "\\033[31mline %s\\033[0m %0100d\\007\\033]52;c;aGk=\\007\\n" $i 0; i=$((i+1)); done; echo END; sleep 600'
    await terminal.open(one, { ...place().spec, argv: ['/bin/sh', '-c', many] })
    onTestFinished(() => terminal.close(one, 100))
    let screen = await terminal.screen(one)
    while (!screen?.text.endsWith('END')) screen = await terminal.changed(one, screen?.mark ?? '', AbortSignal.timeout(20_000))
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(screen.text).not.toMatch(/[\x00-\x09\x0b-\x1f]/)
    expect(screen.text.split('\n').length).toBeLessThan(60)
    expect(screen).toMatchObject({ cut: false, columns: 160 })
    const some = await terminal.screen(one, 500)
    expect(some?.text.split('\n').length).toBeGreaterThan(500)
    const all = await terminal.screen(one, 20_000)
    expect(all).toMatchObject({ cut: true })
    expect(all?.text.length).toBeLessThan(400_001)
    expect(all?.text.endsWith('END')).toBe(true)
  })

  test('[TM8] close leaves nothing of the tree alive, and touches nothing else', async () => {
    const bystander = spawn('sleep', ['600'])
    onTestFinished(() => void bystander.kill('SIGKILL'))
    const { terminal, one, ready } = await opened({ strays: true })
    await ready()
    const marked = () => living(`SIGNALBOX_RUN=${one.id}`)
    await until(() => marked().length >= 4)
    await terminal.close(one, 300)
    expect(marked()).toEqual([])
    expect(isAlive(bystander)).toBe(true)
    expect(readdirSync(join(folder, 'run')).filter((name) => name.includes(one.id))).toEqual([])
  })

  test('[TM9] nothing that is hostile is read by a shell, by tmux as a command, or as a format', async () => {
    const terminal = make()
    const one = session()
    const hostile = '$(touch x) `touch x` #{pid} #(touch x) ; kill-server ;'
    const cwd = join(folder, 'place #(touch x) $(touch x);')
    mkdirSync(cwd)
    const script = 'process.stdout.write(JSON.stringify([process.argv[1], process.cwd()])); setInterval(() => {}, 1e6)'
    await terminal.open(one, { ...place().spec, cwd, argv: [process.execPath, '-e', script, hostile] })
    onTestFinished(() => terminal.close(one, 100))
    const expected = JSON.stringify([hostile, cwd])
    let screen = await terminal.screen(one)
    while (!screen?.text.replaceAll('\n', '').includes(expected))
      screen = await terminal.changed(one, screen?.mark ?? '', AbortSignal.timeout(10_000))
    await terminal.type(one, hostile, [])
    expect(readdirSync(cwd)).toEqual([])
    expect(await terminal.look(one)).toMatchObject({ state: 'running' })
    for (const name of ['T-1; kill-server', '-x', '#(id)', 'a:b', ''])
      await expect(terminal.open({ id: 'x', name }, place().spec), name).rejects.toThrow('cannot be the name')
  })

  test('[TM11] says what it is, or how to get it', async () => {
    expect(await make().probe()).toMatchObject({ found: true, version: expect.stringMatching(/\d/) })
    const nowhere = createTerminal({ sockets: folder, privateFolder: () => {}, env: { PATH: folder } })
    expect(await nowhere.probe()).toMatchObject({ found: false, install: expect.stringContaining('install tmux') })
    const old = join(folder, 'old')
    mkdirSync(old)
    writeFileSync(join(old, 'tmux'), '#!/bin/sh\necho tmux 2.8\n', { mode: 0o755 })
    expect(await createTerminal({ sockets: folder, privateFolder: () => {}, env: { PATH: old } }).probe()).toMatchObject({
      why: expect.stringContaining('too old'),
    })
    expect(['3.2', '3.3a', '4.0', 'master'].every(isRecent)).toBe(true)
    expect(['3.1c', '2.9', '1.8'].some(isRecent)).toBe(false)
  })
})

function living(line: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      const state = /\) (\w)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]
      return state !== 'Z' && readFileSync(`/proc/${name}/environ`, 'utf8').split('\0').includes(line)
    } catch {
      return false
    }
  })
}

function isAlive({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}
