import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { until } from '../../testing/signals.ts'
import type { Command, Exec } from './exec.ts'
import { startedBeside } from './starter.ts'

const ENTRY = fileURLToPath(new URL('../../../dist/git-starter.js', import.meta.url))

/** Has a starter do a command, once more for every word that it is told, and says who did it. */
const PARENT = `
  const [, entry, command] = process.argv
  const starter = require('node:child_process').fork(entry, { serialization: 'advanced' })
  const ask = () => starter.send({ id: 1, command: JSON.parse(command) })
  starter.on('message', () => console.log(starter.pid))
  process.stdin.on('data', ask)
  ask()
`

/** `sh` as a command of git. */
function shell(line: string, more: Partial<Command> = {}): Command {
  return { cwd: '/', argv: ['-c', `alias.it=!${line}`, 'it'], env: { PATH: process.env.PATH ?? '' }, input: '', timeoutMs: 60_000, ...more }
}

async function starterOf(exec: Exec): Promise<number> {
  const { stdout, failed } = await exec(shell('ps -o ppid= -p $PPID'))
  const pid = Number(stdout)
  // A signal to 0 is for all of us.
  if (!(pid > 1)) throw new Error(`who started it was not told: ${failed}`)
  return pid
}

describe('[GS1] git is started by a small process of its own', () => {
  test('and answers as ever: what it printed, what it said, that it took too long, that it was stopped, what was cut off', async () => {
    const exec = startedBeside(ENTRY)
    const bytes = Buffer.from([0, 255, 10, 128])
    expect(await exec(shell('cat', { input: bytes }))).toEqual({ stdout: bytes })
    expect(await exec(shell('echo why >&2; exit 3'))).toMatchObject({ failed: 'why' })
    expect(await exec(shell('exec sleep 60', { timeoutMs: 50 }))).toMatchObject({ failed: 'it took longer than 0.05 s' })
    const stop = new AbortController()
    const stopped = exec(shell('exec sleep 60'), stop.signal)
    stop.abort()
    expect(await stopped).toMatchObject({ failed: expect.stringContaining('aborted') })
    const cut = await exec(shell('yes', { cutAfter: 1_000 }))
    expect([cut.failed, cut.stdout.length]).toEqual([undefined, 1_000])
    const id = createHash('sha1').update('blob 4\0').update(bytes).digest('hex')
    expect((await exec(shell('cat', { input: bytes, into: ['hash-object', '--stdin'] }))).stdout.toString().trim()).toBe(id)
    expect(await exec(shell('true', { cwd: '/not/there' }))).toMatchObject({ failed: expect.stringContaining('ENOENT') })
  })

  test('many at once get each their own answer, and only then it lets us end', async () => {
    const exec = startedBeside(ENTRY)
    const keepingUsAlive = () => process.getActiveResourcesInfo().filter((what) => what === 'ProcessWrap').length
    const before = keepingUsAlive()
    const texts = Array.from({ length: 40 }, (_, n) => `text ${n}`)
    const told = Promise.all(texts.map((input) => exec(shell('cat', { input }))))
    expect(keepingUsAlive()).toBe(before + 1)
    expect((await told).map(({ stdout }) => stdout.toString())).toEqual(texts)
    expect(keepingUsAlive()).toBe(before)
  })

  test('killed, it fails what was under way in words, and the next command has a new one', async () => {
    const exec = startedBeside(ENTRY)
    const first = await starterOf(exec)
    const underWay = exec(shell('exec sleep 5'))
    process.kill(first, 'SIGKILL')
    expect(await underWay).toMatchObject({ failed: 'the process that starts git is gone' })
    expect(await starterOf(exec)).not.toBe(first)
  })

  test('one that cannot be started is said in words', async () => {
    expect(await startedBeside('/not/there.js')(shell('true'))).toMatchObject({ failed: 'the process that starts git is gone' })
  })

  test('ends with whoever began it, also when that was killed; a Ctrl-C is not meant for it', async () => {
    const parent = spawn(process.execPath, ['-e', PARENT, ENTRY, JSON.stringify(shell('echo here'))])
    const answers = async () => Number((await once(parent.stdout, 'data'))[0])
    const starter = await answers()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(starter, signal)
    parent.stdin.write('again')
    expect(await answers()).toBe(starter)
    parent.kill('SIGKILL')
    await until(() => !isThere(starter))
  })
})

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
