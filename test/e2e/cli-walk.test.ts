import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import stringWidth from 'string-width'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command } from '../../src/daemon/cli-command.ts'
import { CODES, EXITS } from '../../src/kernel/error.ts'
import type { Tool } from '../../src/kernel/tool.ts'
import { BUILT_IN } from '../../src/surfaces/cli/built-in.ts'
import { OWN_FLAGS } from '../../src/surfaces/cli/flags.ts'
import { commandOf, nouns, tools } from '../../src/surfaces/cli/names.ts'
import { argumentsOf, flagOf } from '../../src/surfaces/cli/schema.ts'
import { commandLine, flagsFor } from '../../src/surfaces/cli/shell.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { realGit } from '../../src/testing/git.ts'
import { fakeTerminal } from '../../src/testing/terminal.ts'
import { databaseOf, leftOut, rows, until } from './support.ts'

const withoutTmux = leftOut('tmux', 'the verbs of terminals, with one that is open')

let daemon: TestDaemon
/** Real things for the ids that examples make up. */
let real: Record<string, unknown>

beforeAll(async () => {
  daemon = await TestDaemon.start()
  const path = repository('web-shop')
  await daemon.call('project_create', { name: 'Web shop' })
  for (const title of ['One', 'Two']) await daemon.call('task_create', { title })
  const { token_id, token } = await daemon.call('agent_invite', { role: 'worker', name: 'Ann' })
  const { mail_id } = await daemon.call('mail_send', { to_human: true, subject: 'Which port?', body: 'The tests expect 3001.' }, token)
  const { plan_id } = await daemon.call('plan_propose', { tasks: [{ title: 'planned' }] })
  await prepareWork('T-1')
  await daemon.call('epic_create', { title: 'Passkeys', start: false })
  const { handle } = await daemon.call('task_create', { title: 'Three', task_type: 'PAIR' })
  expect(handle).toBe('T-3')
  if (!withoutTmux) await daemon.call('session_open', { task_id: handle, program: 'shell' })
  real = { token_id, plan_id, mail_id, path, timeout_seconds: 0.2 }
})

function repository(name: string): string {
  const path = join(daemon.home, name)
  mkdirSync(path)
  writeFileSync(join(path, 'README.md'), 'Read me\n')
  for (const args of [
    ['init', '-q', '-b', 'main'],
    ['add', '-A'],
    ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '-m', 'x'],
  ])
    execFileSync('git', args, { cwd: path })
  return path
}

/** An agent has worked on it, and something of it was saved. */
async function prepareWork(task_id: string): Promise<void> {
  const repo = repository('prepared')
  await daemon.call('repo_add', { path: repo, checks: 'true' })
  const steps = [{ write: { path: 'draft.txt', text: 'x' } }, { commit: { message: 'x' } }, { review: { summary: 'x' } }]
  const given = { harness: 'scripted', options: { script: JSON.stringify(steps) } }
  const { job_id } = await daemon.call('job_submit', { task_id, action: 'start_agent', ...given })
  expect((await daemon.call('job_wait', { job_id, timeout_seconds: 100 })).job.state).toBe('succeeded')
  await daemon.call('task_move', { task_id, status: 'IN_PROGRESS' })
  const { works } = await daemon.call('work_list')
  const [{ path, branch, name }] = works
  writeFileSync(join(path, 'README.md'), 'Changed\n')
  await realGit({ worktrees: join(daemon.home, 'worktrees') }).rescue({ repo, path, branch }, name ?? basename(path))
}
afterAll(() => daemon.remove())

const env = () => ({ SIGNALBOX_HOME: daemon.home })
const order = { read: 0, write: 1, destructive: 2 }
const inOrder = [...tools].sort((a, b) => order[a.impact] - order[b.impact])

/** The example with real ids, as words. */
function wordsFor(tool: Tool): string[] {
  const given = Object.entries(tool.example ?? {}).map(([name, value]) => [name, real[name] ?? value])
  return [...commandOf(tool).split(' '), ...flagsFor(tool, Object.fromEntries(given)), ...(tool.impact === 'destructive' ? ['--yes'] : [])]
}

const REACHED = [0, 3, 4, 5, 6]

/** For as long as the test lasts. */
function inFolder(path: string): void {
  const here = process.cwd()
  onTestFinished(() => process.chdir(here))
  process.chdir(path)
}

describe('every tool', () => {
  test('[E40] is called by nothing but its flags: it answers, or refuses for a reason of its own', async () => {
    inFolder(daemon.home)
    const codes: Record<string, number> = {}
    for (const tool of inOrder) {
      const terminal = fakeTerminal()
      codes[tool.name] = await command(wordsFor(tool), env(), terminal)
      expect([tool.name, terminal.stdout + terminal.stderr, REACHED.includes(codes[tool.name] as number)]).toEqual([
        tool.name,
        expect.any(String),
        true,
      ])
    }
    const counted = Object.entries(codes).filter(([name]) => !(withoutTmux && name.startsWith('session_')))
    expect(counted.filter(([, code]) => code === 0).length / counted.length).toBeGreaterThan(0.75)
    const called = () => new Set(rows(databaseOf(daemon), `SELECT DISTINCT tool FROM calls WHERE surface = 'cli'`).map((row) => row.tool))
    await until(
      () => tools.every((tool) => called().has(tool.name)),
      () => `reached were ${[...called()].join(', ')}`,
    )
  })

  test('[E40] no argument of a tool hides a flag of the command line', () => {
    for (const tool of tools) expect(Object.keys(argumentsOf(tool)).filter((name) => flagOf(name) in OWN_FLAGS)).toEqual([])
  })

  test('[E41] explains itself with every flag and its example, without a daemon', async () => {
    for (const tool of tools) {
      const terminal = fakeTerminal({ columns: 400 })
      expect(await command([...commandOf(tool).split(' '), '--help'], { SIGNALBOX_HOME: '/nowhere' }, terminal)).toBe(0)
      const shown = terminal.stdout
      for (const name of Object.keys(argumentsOf(tool)))
        expect([tool.name, shown]).toEqual([tool.name, expect.stringMatching(`--(no-)?${flagOf(name)}\\b`)])
      expect(shown).toContain(commandLine(tool, (tool.example ?? {}) as Record<string, unknown>))
      expect(shown.includes('--watch')).toBe(tool.look !== undefined && !['audit_verify', 'audit_export'].includes(tool.name))
      expect(shown.includes('--yes')).toBe(tool.impact === 'destructive')
    }
    for (const noun of nouns) {
      const terminal = fakeTerminal({ columns: 400 })
      expect(await command([noun], { SIGNALBOX_HOME: '/nowhere' }, terminal)).toBe(0)
      for (const tool of tools.filter((t) => t.name.startsWith(`${noun}_`)))
        expect(terminal.stdout).toContain(`signalbox ${commandOf(tool)} `)
    }
  })

  test('[E41] the whole names every noun, every command of its own and every exit code', async () => {
    const terminal = fakeTerminal({ columns: 400 })
    expect(await command(['help'], { SIGNALBOX_HOME: '/nowhere' }, terminal)).toBe(0)
    for (const [code, meaning] of Object.entries(EXITS)) expect(terminal.stdout).toMatch(new RegExp(`^ +${code} +${meaning}$`, 'm'))
    for (const name of [...nouns, ...Object.keys(BUILT_IN)]) expect(terminal.stdout).toContain(name)
    const unused = Object.keys(EXITS).filter((code) => !Object.values(CODES).some(({ exit }) => exit === Number(code)))
    expect(unused).toEqual(['0', '1', '8'])
  })

  test('[E44] that reads prints on a terminal what is no wider than it', async () => {
    inFolder(daemon.home)
    for (const columns of [60, 80, 140]) {
      for (const tool of inOrder.filter(({ impact }) => impact === 'read')) {
        const terminal = fakeTerminal({ person: true, columns })
        await command(wordsFor(tool), env(), terminal)
        // What is made to be copied is not broken.
        const lines = terminal.stdout.split('\n').filter((line) => !/signalbox |Exported to|Its head|^head|^ *url|^ +path /.test(line))
        expect([tool.name, columns, lines.filter((line) => stringWidth(line) > columns)]).toEqual([tool.name, columns, []])
      }
    }
  })
})
