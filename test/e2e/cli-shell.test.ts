import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command } from '../../src/daemon/cli-command.ts'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { fakeTerminal } from '../../src/testing/terminal.ts'
import { until } from './support.ts'

let daemon: TestDaemon
/** A folder with `signalbox` in it, as an installation has. */
let bin: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  bin = mkdtempSync(join(tmpdir(), 'signalbox-bin-'))
  writeFileSync(join(bin, 'signalbox'), `#!/bin/sh\nexec '${process.execPath}' '${BIN}' "$@"\n`)
  chmodSync(join(bin, 'signalbox'), 0o755)
  await daemon.call('project_create', { name: 'Web' })
  for (const title of ['First', 'Second']) await daemon.call('task_create', { title })
  await daemon.call('agent_invite', { role: 'worker', name: 'Ann' })
})
afterAll(async () => {
  rmSync(bin, { recursive: true })
  await daemon.remove()
})

const env = () => ({ ...daemon.env, SIGNALBOX_PORT: '', PATH: `${bin}:${process.env.PATH}` })

describe('completion', () => {
  /** The words that would be offered for the last one. */
  async function offered(line: string, home = daemon.home): Promise<string[]> {
    const terminal = fakeTerminal()
    expect(await command(['complete', '--', ...line.split(' ')], { SIGNALBOX_HOME: home }, terminal)).toBe(0)
    expect(terminal.stderr).toBe('')
    return terminal.stdout
      .split('\n')
      .filter(Boolean)
      .map((found) => found.split('\t')[0] as string)
  }

  test('[E51] nouns, verbs, flags, words to choose from and handles', async () => {
    expect(await offered('')).toEqual(expect.arrayContaining(['task', 'agent', 'status', 'serve', 'completion']))
    expect(await offered('ta')).toEqual(['task'])
    expect(await offered('task cr')).toEqual(['create'])
    expect(await offered('help task cr')).toEqual(['create'])
    expect(await offered('db c')).toEqual(['check', 'copy'])
    expect(await offered('task create --pr')).toEqual(['--priority', '--project-id'])
    expect(await offered('task create --priority low --pr')).toEqual(['--project-id'])
    expect(await offered('plan accept --no')).toEqual(['--no-accept'])
    expect(await offered('task create --priority ')).toEqual(['low', 'medium', 'high'])
    expect(await offered('task list --status RE')).toEqual(['REVIEW'])
    expect(await offered('task list --status=RE')).toEqual(['--status=REVIEW'])
    expect(await offered('task create --priority=low --pr')).toEqual(['--project-id'])
    expect(await offered('agent me --as=')).toEqual(['--as=ann'])
    expect(await offered('task get ')).toEqual(['T-2', 'T-1'])
    expect(await offered('task assign T-1 a')).toEqual(['ann'])
    expect(await offered('task list --project-id ')).toEqual(['web'])
    expect(await offered('agent me --as ')).toEqual(['ann'])
    expect(await offered('task create ')).toEqual([])
    expect(await offered('nothing like ')).toEqual([])
  })

  test('[E51] without a daemon it knows what the program knows, and is silent', async () => {
    expect(await offered('task ge', '/nowhere')).toEqual(['get'])
    expect(await offered('task get ', '/nowhere')).toEqual([])
  })

  test('[E51] bash asks the program and gets words without their notes', async () => {
    const script = `
      source <(signalbox completion bash)
      offer() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _signalbox; echo "\${COMPREPLY[*]}"; }
      complete -p signalbox
      offer signalbox task cre
      offer signalbox task get ''
      offer signalbox task create --priority ''
      offer signalbox task list --status = RE
      offer signalbox task create --title = x --priority =
      offer signalbox task list --status=RE
      offer signalbox task create --title = x --pri`
    let said = ''
    // A daemon that answers too late is not waited for: nothing is offered then.
    await until(() => {
      said = execFileSync('bash', ['--norc', '-c', script], { env: env(), encoding: 'utf8' })
      return said.includes('T-2')
    }, 'tasks are offered')
    expect(said.split('\n')).toEqual([
      'complete -o default -F _signalbox signalbox',
      'create',
      'T-2 T-1',
      'low medium high',
      'REVIEW',
      'low medium high',
      '--status=REVIEW',
      '--priority',
      '',
    ])
  })

  test('[E51] there is a script for each shell, and a question for another', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const terminal = fakeTerminal()
      expect(await command(['completion', shell], {}, terminal)).toBe(0)
      expect(terminal.stdout).toContain('complete -- ')
    }
    await expect(command(['completion', 'tcsh'], {}, fakeTerminal())).rejects.toThrow('bash|zsh|fish')
  })
})

describe.skipIf(process.platform === 'darwin')('in a real terminal', () => {
  /** Without what the runner of the tests says about its own colours. */
  function plainEnv() {
    const { FORCE_COLOR: _, NO_COLOR: __, ...rest } = env() as Record<string, string>
    return rest
  }

  /** Runs it on a pty of 80 columns; `type` answers when `prompt` is seen. */
  async function onTerminal(line: string, more: Record<string, string> = {}, prompt?: string, type?: string) {
    const child = spawn('script', ['-qefc', `stty cols 80; ${line}`, '/dev/null'], { env: { ...plainEnv(), TERM: 'xterm', ...more } })
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += String(chunk)
    })
    const closed = once(child, 'close')
    if (prompt) {
      await until(() => said.includes(prompt), 'it asks')
      child.stdin.write(`${type}\n`)
    }
    const [code] = (await closed) as [number]
    return { code, said: said.replaceAll('\r\n', '\n') }
  }

  test('[E44] [E46] it is a table in colours; NO_COLOR leaves them out', async () => {
    const coloured = await onTerminal('signalbox task list', {})
    expect(coloured.said).toContain('\u001b[1mT-1')
    const { said } = await onTerminal('signalbox task list', { NO_COLOR: '1' })
    expect(said).toMatch(/^TASK +TITLE .*\nT-1 +First .*\nT-2 +Second .*\n$/)
    expect(said).not.toContain('\u001b')
  })

  test('[E47] it asks, and does what the answer says', async () => {
    const no = await onTerminal('signalbox task delete T-2', {}, '[y/N]', 'n')
    expect([no.code, no.said]).toEqual([1, expect.stringContaining('Nothing was done.')])
    const yes = await onTerminal('signalbox task delete T-2', {}, '[y/N]', 'y')
    expect([yes.code, yes.said]).toEqual([0, expect.stringMatching(/handle.* T-2\n/)])
  })

  test('[E44] events are lines that read well, with handles for ids', async () => {
    const child = spawn('script', ['-qefc', 'signalbox events', '/dev/null'], { env: { ...plainEnv(), TERM: 'xterm', NO_COLOR: '1' } })
    const over = once(child, 'exit')
    onTestFinished(async () => {
      child.kill()
      await over
    })
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += String(chunk)
    })
    await until(async () => {
      await daemon.call('task_assign', { task_id: 'T-1', agent_id: 'ann' })
      return said.includes('\n')
    }, 'it has heard')
    expect(said).toMatch(/^\d\d:\d\d:\d\d {2}task\.assigned +T-1 {2}by owner {2}assignee_id=ann\r?\n/)
  })

  test('[E49] the verbs that look after the database say what they do and how long it took', async () => {
    const { said } = await onTerminal('signalbox db check')
    expect(said).toMatch(/^Reading every page of .*… \d+\.\d s\n.* is sound\.\n$/)
  })
})

test('[E44] a reader that has heard enough ends it without a word', () => {
  const script = 'signalbox tools 2>err | true; printf "%s " "$PIPESTATUS"; cat err'
  expect(execFileSync('bash', ['-c', script], { env: env(), cwd: bin, encoding: 'utf8' })).toBe('0 ')
})

test('[E55] `open` prints a link that signs one browser in', async () => {
  const terminal = fakeTerminal()
  expect(await command(['open', '--print'], env(), terminal)).toBe(0)
  const link = new URL(terminal.stdout.trim())
  expect(link.origin).toBe(daemon.url)
  const redeem = async () => {
    const headers = { authorization: `Bearer ${link.hash.replace('#link=', '')}`, 'content-type': 'application/json', connection: 'close' }
    return (await fetch(`${daemon.url}/api/tools/token_redeem`, { method: 'POST', headers, body: '{}' })).json()
  }
  expect(await redeem()).toMatchObject({ ok: true, result: { token: expect.stringMatching(/^sbx_person_/) } })
  expect(await redeem()).toMatchObject({ ok: false, error: { code: 'AUTH_STALE_TOKEN' } })
})

test.skipIf(process.platform === 'darwin')('[E55] `open` says that it opened a browser only where there is one', async () => {
  const said = async (PATH: string) => {
    const terminal = fakeTerminal({ person: true })
    expect(await command(['open'], { ...env(), PATH, DISPLAY: ':0' }, terminal)).toBe(0)
    return terminal.stderr
  }
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-bin-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  expect(await said(folder)).toMatch(/^Open it in a browser/)
  writeFileSync(join(folder, 'xdg-open'), '#!/bin/sh\n')
  chmodSync(join(folder, 'xdg-open'), 0o755)
  expect(await said(folder)).toMatch(/^Opened in your browser/)
})
