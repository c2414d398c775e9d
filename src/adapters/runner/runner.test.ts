import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createConnection, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { ensurePrivateFolder } from '../../daemon/home.ts'
import { runnerContract } from '../../ports/runner.contract.ts'
import type { Exit, Frame, Runner, RunSpec } from '../../ports/runner.ts'
import { bootId, processAt } from '../../runner/system.ts'
import { FakeRunner } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { agentEnvironment } from './environment.ts'
import { createRunner, type RunnerOptions } from './index.ts'

const ENTRY = resolve(import.meta.dirname, '../../../dist/runner.js')
const base = mkdtempSync(join(realpathSync(tmpdir()), 'run-'))
afterAll(() => rmSync(base, { recursive: true, force: true }))

/** A folder that agents do not see. */
const home = mkdtempSync(join(base, 'home-'))
const NEVER = new AbortController().signal
const MODES = ['auto', 'marker'] as const

/** What a daemon makes at its start; a second one is the daemon after it. */
function daemon(options: Partial<RunnerOptions> = {}): Runner {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME }
  return createRunner({
    folder: join(base, 'runs'),
    sockets: join(base, 's'),
    entry: ENTRY,
    privateFolder: ensurePrivateFolder,
    env,
    hidden: { home },
    ...options,
  })
}

/** Nothing of a test outlives it. */
function newRun(): string {
  const run = `run_${randomBytes(8).toString('hex')}`
  onTestFinished(async () => {
    await daemon().stop(run, 'shutdown', 0)
    expect(marked(run)).toEqual([])
  })
  return run
}

const PLAIN: Omit<RunSpec, 'argv'> = {
  cwd: base,
  env: {},
  inherit: [],
  stdin: 'closed',
  wallClockMs: null,
  outputBytes: 1_000_000,
  graceMs: 5_000,
}

const script = (text: string, more: Partial<RunSpec> = {}): RunSpec => ({ ...PLAIN, argv: ['/bin/sh', '-c', text], ...more })
const program = (text: string, more: Partial<RunSpec> = {}): RunSpec => ({ ...PLAIN, argv: [process.execPath, '-e', text], ...more })

/** Waits for whoever ends it. */
const FOREVER = 'while :; do sleep 1000; done'

interface Told {
  out: string
  err: string
  in: string
  offset: number
  exit: Exit | undefined
}

/** Everything from there to the end, or until the text was printed. */
async function told(runner: Runner, run: string, { from = 0, upTo }: { from?: number; upTo?: string } = {}): Promise<Told> {
  const all: Told = { out: '', err: '', in: '', offset: from, exit: undefined }
  for await (const { frames, offset, exit } of runner.follow(run, from, NEVER)) {
    for (const { stream, bytes } of frames as Frame[]) all[stream] += bytes.toString()
    all.offset = offset
    all.exit = exit
    if (upTo && `${all.out}${all.err}`.includes(upTo)) break
  }
  return all
}

async function runToEnd(spec: RunSpec, runner = daemon()): Promise<Told & { run: string }> {
  const run = newRun()
  await runner.start(run, spec)
  return { ...(await told(runner, run)), run }
}

/** The processes that bear a run's marker, by looking at all there are. */
function marked(run: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && environOf(name).includes(`SIGNALBOX_RUN=${run}`))
    .map(Number)
}

function environOf(pid: string): string[] {
  try {
    if (/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))) return []
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').filter(Boolean)
  } catch {
    return []
  }
}

const folderOf = (run: string) => join(base, 'runs', run)

/** Done line by line as its own pipe says, whatever becomes of its input. */
const DOES = 'while read -r word rest <&3; do case $word in print) echo "$rest";; end) exit "$rest";; esac; done 3<> "$0"'

describe('the fake', () => {
  const runner = new FakeRunner()
  runnerContract(() => ({
    runner,
    later: runner,
    run: () => `run_${randomBytes(8).toString('hex')}`,
    agent: (_run, stdin = 'closed') => ({ ...PLAIN, argv: ['agent'], stdin }),
    prints: (run, text) => runner.tell(run, `${text}\n`),
    ends: (run, code) => runner.exit(run, code),
    hasAgent: (run) => runner.started.includes(run),
  }))
})

describe('processes', () => {
  const pipeOf = (run: string) => join(base, `${run}.does`)
  const does = (run: string, text: string) => appendFileSync(pipeOf(run), `${text}\n`)
  runnerContract(() => ({
    runner: daemon(),
    later: daemon(),
    run: newRun,
    agent(run, stdin = 'closed') {
      // Both ends, so that neither waits for the other to open it.
      execFileSync('mkfifo', [pipeOf(run)])
      const held = openSync(pipeOf(run), 'r+')
      onTestFinished(() => closeSync(held))
      return { ...PLAIN, argv: ['/bin/sh', '-c', DOES, pipeOf(run)], stdin }
    },
    prints: (run, text) => does(run, `print ${text}`),
    ends: (run, code) => does(run, `end ${code}`),
    hasAgent: (run) => marked(run).length > 0,
  }))
})

describe('starting', () => {
  test('[R1] started by two daemons at once, and again later, a run has one agent', async () => {
    const run = newRun()
    const marks = join(base, `${run}.marks`)
    const spec = script(`echo x >> ${marks}; echo up; ${FOREVER}`)
    const [one, other] = await Promise.all([daemon().start(run, spec), daemon().start(run, spec)])
    expect(other).toEqual(one)
    await told(daemon(), run, { upTo: 'up' })
    expect(await daemon().start(run, spec)).toEqual(one)
    expect(await daemon().look(run)).toEqual({ state: 'running', ...one })
    expect(readFileSync(marks, 'utf8')).toBe('x\n')
  })

  test('[R3] what cannot be started says why, and what to do', async () => {
    expect(await runToEnd({ ...PLAIN, argv: ['no-such-agent'] })).toMatchObject({
      exit: { reason: 'spawn_failed', detail: expect.stringContaining('no-such-agent was not found. Install it') },
    })
    expect((await runToEnd({ ...PLAIN, argv: ['./nothing'] })).exit?.detail).toContain(`${base}/nothing does not exist`)
    expect((await runToEnd(script('true', { cwd: '/no/where' }))).exit?.detail).toContain('/no/where')
  })

  test('[R1] [R8] a daemon that is cut off while it hands over starts nothing, and leaves no secret behind', async () => {
    const run = newRun()
    const folder = await daemon().folder(run)
    const half = JSON.stringify({ run, env: { OWN_TOKEN: 'own-secret' }, argv: ['true'] }).slice(0, -2)
    const child = spawn(process.execPath, [ENTRY, folder], { stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'] })
    ;(child.stdio[3] as Writable).end(half)
    expect(await text(child.stderr as Readable)).toMatch(/cut off after \d+ characters(?!.*own-secret)/s)
    expect(await daemon().look(run)).toEqual({ state: 'prepared' })
  })

  test('[R12] a runner that does not come up is told with its own words', async () => {
    const broken = join(base, 'broken.mjs')
    writeFileSync(broken, 'throw new TypeError("out of sorts")')
    await expect(daemon({ entry: broken }).start(newRun(), script('true'))).rejects.toThrow(/TypeError: out of sorts.*runner[.]log/)
  })
})

describe.each(MODES)('with isolation %s', (isolation) => {
  const runner = daemon({ isolation })

  test('[R2] [R3] output is whole and in order, then comes the exit with its code', async () => {
    const { exit, out, err } = await runToEnd(script('for i in 1 2 3 4 5; do echo $i; done; echo warn >&2; exit 7'), runner)
    expect({ out, err }).toEqual({ out: '1\n2\n3\n4\n5\n', err: 'warn\n' })
    expect(exit).toEqual({ reason: 'exited', code: 7, signal: null, detail: '', at: expect.any(Number) })
  })

  test('[R3] an agent that is killed ends with that signal', async () => {
    expect((await runToEnd(script('kill -9 $$'), runner)).exit).toMatchObject({ reason: 'exited', code: null, signal: 'SIGKILL' })
    expect(await runToEnd(script('kill -TERM $$'), runner)).toMatchObject({ err: '', exit: { signal: 'SIGTERM', code: null } })
  })

  test('[R4] whoever left its parent, its session and its terminal goes with the run', async () => {
    const run = newRun()
    const deaf = `trap "" TERM HUP; ${FOREVER}`
    const children = [`setsid sh -c '${deaf}' &`, `(setsid sh -c '(${deaf}) & ' &)`, `(${deaf}) &`, `setsid -f sh -c '${FOREVER}'`]
    await runner.start(run, script(`${children.join('\n')}\necho up; trap 'echo bye; exit 3' TERM; sleep 1000 & wait`))
    await told(runner, run, { upTo: 'up' })
    await until(() => marked(run).length > 8)
    // Long enough for the one that listens; the deaf ones take all of it.
    const exit = await runner.stop(run, 'stopped', 4_000)
    expect(marked(run)).toEqual([])
    expect(exit).toMatchObject({ reason: 'stopped', code: 3, signal: null })
    expect((await told(runner, run)).out).toBe('up\nbye\n')
  })

  test('[R4] what is left when an agent ends by itself is ended, and holds nobody up', async () => {
    const { out, exit, run } = await runToEnd(script(`setsid sleep 1000 & (setsid sleep 1000 &); echo done`), runner)
    expect({ out, exit }).toMatchObject({ out: 'done\n', exit: { reason: 'exited', code: 0 } })
    expect(marked(run)).toEqual([])
  })

  test('[R4] a second stop shortens the grace of the first, whose reason stays', async () => {
    const run = newRun()
    await runner.start(run, script('trap "echo asked" TERM; echo up; while :; do sleep 1000 & wait; done'))
    await told(runner, run, { upTo: 'up' })
    const first = runner.stop(run, 'budget', 600_000)
    await told(runner, run, { upTo: 'asked' })
    expect(await runner.stop(run, 'stopped', 0)).toMatchObject({ reason: 'budget', signal: 'SIGKILL' })
    expect(await first).toEqual(await runner.stop(run, 'stopped', 0))
  })

  test('[R6] a killed runner: its tree is gone, others are untouched, and the run has ended', async () => {
    const [lost, beside] = [newRun(), newRun()]
    const spec = script(`setsid sh -c '${FOREVER}' & echo up; ${FOREVER}`)
    const { pid } = await runner.start(lost, spec)
    await runner.start(beside, spec)
    await told(runner, lost, { upTo: 'up' })
    const { offset } = await told(runner, beside, { upTo: 'up' })
    await until(() => marked(beside).length >= 4)
    const others = marked(beside)
    const following = told(runner, lost)
    process.kill(pid, 'SIGKILL')
    expect(await following).toMatchObject({ out: 'up\n', exit: { reason: 'runner_lost', detail: 'Its runner was killed.' } })
    expect(marked(lost)).toEqual([])
    expect(marked(beside)).toEqual(expect.arrayContaining(others))
    expect(await daemon().look(lost)).toMatchObject({ state: 'ended', exit: { reason: 'runner_lost' } })
    expect(await runner.stop(beside, 'stopped', 0)).toMatchObject({ reason: 'stopped' })
    expect(await told(runner, beside, { from: offset })).toMatchObject({ out: '', exit: { reason: 'stopped' } })
  })

  test('[R11] user, folder, environment, files and devices are as outside, and git works', async () => {
    const cwd = mkdtempSync(join(base, 'work-'))
    const lines = [
      'id -u',
      'pwd',
      'echo "$GIVEN"',
      'git init -q . && git -c user.name=a -c user.email=b commit -q --allow-empty -m one',
      'git log --format=%s',
    ]
    const spec = script([...lines, 'echo mine > file', 'echo device > /dev/stdout', 'kill -0 $$ && echo $0'].join('\n'), {
      cwd,
      env: { GIVEN: 'a b' },
    })
    const { out, err, exit } = await runToEnd(spec, runner)
    expect(err).toBe('')
    expect(out.split('\n')).toEqual([String(process.getuid?.()), cwd, 'a b', 'one', 'device', '/bin/sh', ''])
    expect(statSync(join(cwd, 'file')).uid).toBe(process.getuid?.())
    expect(exit?.code).toBe(0)
  })

  test('[R9] an agent that signals its own group hurts nobody else', async () => {
    expect((await runToEnd(script('kill -9 0'), runner)).exit).toMatchObject({ reason: 'exited', signal: 'SIGKILL' })
  })
})

/** Asked of the system in our own words: a probe that is wrong must not switch off what depends on it. */
const hasNamespaces =
  spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--mount-proc', 'true']).status === 0
if (!hasNamespaces) console.warn('NOT RUN: [R4] [R11] runs in a namespace of their own (needs unshare without root)')

describe.skipIf(!hasNamespaces)('in a namespace, which this machine has', () => {
  test('[R4] even what cleared its environment goes with the run, and an agent is not the first in there', async () => {
    const run = newRun()
    const unmarked = `1000.${randomBytes(4).readUInt32BE()}`
    await daemon().start(run, script(`setsid env -i sleep ${unmarked} & echo $$; ${FOREVER}`))
    expect((await told(daemon(), run, { upTo: '\n' })).out).toBe('2\n')
    await until(() => running(unmarked))
    await daemon().stop(run, 'stopped', 0)
    expect(running(unmarked)).toBe(false)
  })

  /** A daemon's folder with two worktrees, reached by a link. */
  function covered() {
    const real = mkdtempSync(join(base, 'home-'))
    const home = `${real}-link`
    symlinkSync(real, home)
    const [cwd, others] = [join(real, 'worktrees', 'web', 'task'), join(real, 'worktrees', 'web', 'other')]
    for (const path of [cwd, others]) mkdirSync(path, { recursive: true })
    for (const path of [join(real, 'owner.token'), join(others, 'secret.txt')]) writeFileSync(path, 'verysecret')
    writeFileSync(join(real, 'daemon.json'), '{"socket":"/s"}')
    writeFileSync(join(cwd, 'a.txt'), 'code\n')
    return { home, real, cwd, others, runner: daemon({ folder: join(home, 'runs'), hidden: { home } }) }
  }

  test("[R15] of the daemon's folder an agent sees its own run and worktree, by whatever way it looks", async () => {
    const { home, real, cwd, others, runner } = covered()
    const [run, other] = [newRun(), newRun()]
    for (const one of [run, other]) await runner.keep(one, 'token', () => `verysecret of ${one}`)
    const secrets = `${home}/owner.token ${real}/owner.token ../../../owner.token ${home}/runs/${other}/token ${others}/secret.txt ../other/secret.txt`
    const lines = [
      `cat ${secrets}; echo theirs > ${others}/new.txt; rm -r ${others}`,
      `touch ${home}/x; exec 2>&1; cat a.txt; echo mine > b.txt; pwd; ls ${home} ${home}/runs ${home}/worktrees/web; cat ${home}/daemon.json ${home}/runs/${run}/token`,
    ]
    await runner.start(run, script(lines.join('\n'), { cwd }))
    const { out, exit } = await told(runner, run)
    expect(out.split('\n')).toEqual([
      'code',
      cwd,
      `${home}:`,
      'daemon.json',
      'runs',
      'worktrees',
      '',
      `${home}/runs:`,
      run,
      '',
      `${home}/worktrees/web:`,
      'task',
      `{"socket":"/s"}verysecret of ${run}`,
    ])
    expect(exit).toMatchObject({ code: 0 })
    expect(readFileSync(join(cwd, 'b.txt'), 'utf8')).toBe('mine\n')
    expect(existsSync(join(home, 'x'))).toBe(false)
    expect(readdirSync(others)).toEqual(['secret.txt'])
    expect(readFileSync(join(home, 'owner.token'), 'utf8')).toBe('verysecret')
  })

  test('[R15] nobody takes the cover away, not even root', async () => {
    const { home, real, cwd, runner } = covered()
    const run = newRun()
    const away = `umount -l ${real}; umount -l ${home}; cat ${home}/owner.token ../../../owner.token`
    const ways = [
      away,
      `unshare --user --map-root-user --mount sh -c '${away}'`,
      `unshare --mount sh -c '${away}'`,
      `nsenter -t 1 -m sh -c '${away}'`,
    ]
    await runner.start(run, script(`${ways.join('\n')}\nid -u`, { cwd }))
    expect(await told(runner, run)).toMatchObject({ out: `${process.getuid?.()}\n`, exit: { code: 0 } })
    expect(await runner.exposed()).toBeUndefined()
  })

  test('[R15] the sockets of other runs are not to be seen', async () => {
    const [run, other] = [newRun(), newRun()]
    await daemon().start(other, { ...PLAIN, argv: ['cat'], stdin: 'open' })
    expect(readdirSync(join(base, 's')).length).toBeGreaterThan(0)
    await daemon().start(run, script(`ls -A ${join(base, 's')}; touch ${join(base, 's', 'mine')}`, { repo: home }))
    expect(await told(daemon(), run)).toMatchObject({ out: '', exit: { code: 0 } })
    expect(existsSync(join(base, 's', 'mine'))).toBe(false)
  })

  test.runIf(process.getuid?.() === 0)('[R17] where root would keep the power over mounts, it is said that nothing is hidden', async () => {
    const bin = mkdtempSync(join(base, 'bin-'))
    for (const name of ['unshare', 'mount', 'mkdir', 'mkfifo'])
      symlinkSync(
        execFileSync('sh', ['-c', `command -v ${name}`])
          .toString()
          .trim(),
        join(bin, name),
      )
    expect(await daemon({ env: { PATH: bin } }).exposed()).toMatch(/^Agents can read the owner token.*setpriv/)
  })

  test('[R9] a signal that comes before the agent is in its namespace waits for it', async () => {
    const [bin, gate] = [mkdtempSync(join(base, 'bin-')), join(base, 'gate')]
    execFileSync('mkfifo', [gate])
    const real = execFileSync('sh', ['-c', 'command -v unshare']).toString().trim()
    // Only where it is to keep an agent: to find out what the machine can do, it is run without a marker.
    const slow = `#!/bin/sh\n[ -z "$SIGNALBOX_RUN" ] || read go < ${gate}\nexec ${real} "$@"\n`
    writeFileSync(join(bin, 'unshare'), slow, { mode: 0o755 })
    // Without a cover, for which it is run twice.
    const runner = daemon({ env: { ...process.env, PATH: `${bin}:${process.env.PATH}` }, hidden: undefined })
    const run = newRun()
    await runner.start(run, { ...PLAIN, argv: ['sleep', '1000'] })
    const sent = runner.send(run, { seq: 1, signal: 'SIGINT' })
    // Answered when the signal has been taken up too.
    expect(await runner.send(run, { seq: 2, data: 'x' })).toBe(false)
    appendFileSync(gate, '\n')
    expect(await sent).toBe(true)
    expect((await told(runner, run)).exit).toMatchObject({ reason: 'exited', signal: 'SIGINT' })
  })

  test('[R6] a killed runner takes the tree along without anybody looking', async () => {
    const run = newRun()
    const { pid } = await daemon().start(run, script(`setsid sleep 1000 & echo up; ${FOREVER}`))
    await told(daemon(), run, { upTo: 'up' })
    process.kill(pid, 'SIGKILL')
    await until(() => marked(run).length === 0)
  })

  function running(argument: string): boolean {
    return readdirSync('/proc').some((name) => /^\d+$/.test(name) && argvOf(name).includes(argument))
  }

  function argvOf(pid: string): string[] {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')
    } catch {
      return []
    }
  }
})

test('[R2] a frame that was cut off is left out, and all before it is told', async () => {
  const { run, offset } = await runToEnd(script('echo whole'))
  writeFileSync(join(folderOf(run), 'spool'), 'out 1700000000000 500\nhalf of it', { flag: 'a' })
  expect(await told(daemon(), run)).toMatchObject({ out: 'whole\n', offset, exit: { code: 0 } })
})

describe('what we did not start', () => {
  async function recordOf(pid: number, change: { started?: string; boot?: string }): Promise<string> {
    const run = newRun()
    const real = { pid, started: (await processAt(pid))?.started, boot: await bootId(), socket: join(base, 's', 'none.sock') }
    writeFileSync(join(await daemon().folder(run), 'runner.json'), JSON.stringify({ ...real, ...change }))
    return run
  }

  test.each([{ started: '1' }, { boot: 'another' }])('[R5] a pid that is somebody else by now is left alone: %o', async (change) => {
    const bystander = spawn('sleep', ['1000'], { stdio: 'ignore' })
    onTestFinished(() => void bystander.kill('SIGKILL'))
    await once(bystander, 'spawn')
    const run = await recordOf(bystander.pid as number, change)
    expect(await daemon().stop(run, 'stopped', 0)).toMatchObject({ reason: 'runner_lost' })
    expect(await daemon().look(run)).toMatchObject({ state: 'ended' })
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull()
    expect(await processAt(bystander.pid as number)).toBeDefined()
  })

  test('[R5] what bears the marker is left alone after another boot', async () => {
    const run = await recordOf(1, { boot: 'another' })
    const other = spawn('sleep', ['1000'], { stdio: 'ignore', env: { ...process.env, SIGNALBOX_RUN: run } })
    await once(other, 'spawn')
    expect(await daemon().look(run)).toMatchObject({ state: 'ended', exit: { detail: 'The machine was started anew.' } })
    expect(await processAt(other.pid as number)).toBeDefined()
    other.kill('SIGKILL')
    await once(other, 'exit')
  })
})

describe('the socket of a runner', () => {
  const recordIn = (run: string) =>
    JSON.parse(readFileSync(join(folderOf(run), 'runner.json'), 'utf8')) as { socket: string; secret: string }
  const INPUTS = [
    { seq: 1, data: 'INJECTED\n' },
    { seq: 2, signal: 'SIGTERM' },
  ]

  test.each<[string, (other: string) => object[]]>([
    ['no secret', () => []],
    ['a wrong one', () => [{ secret: 'x'.repeat(64) }]],
    ['one that is no text', () => [{ secret: null }]],
    ['that of another run', (other) => [{ secret: other }]],
  ])('[R16] hears and takes nothing with %s', async (_, hello) => {
    const [run, other] = [newRun(), newRun()]
    for (const one of [run, other]) await daemon().start(one, { ...PLAIN, argv: ['cat'], stdin: 'open' })
    const client = createConnection(recordIn(run).socket)
    client.write([...hello(recordIn(other).secret), ...INPUTS].map((line) => `${JSON.stringify(line)}\n`).join(''))
    expect(await text(client).catch((error) => error.code)).toMatch(/^(ECONNRESET)?$/)
    expect(await daemon().send(run, { seq: 1, data: 'ours\n', close: true })).toBe(true)
    expect(await told(daemon(), run)).toMatchObject({ out: 'ours\n', in: 'ours\n', exit: { reason: 'exited', code: 0 } })
  })

  test('[R16] an endless first line is cut off', async () => {
    const run = newRun()
    await daemon().start(run, { ...PLAIN, argv: ['cat'], stdin: 'open' })
    const client = createConnection(recordIn(run).socket)
    client.on('error', () => {})
    client.write('x'.repeat(2_000))
    await once(client, 'close')
  })

  test('[R16] one that an older version started, without a secret, is reached as before', async () => {
    const path = join(base, 's', 'older.sock')
    ensurePrivateFolder(join(base, 's'))
    // Not one of newRun: to stop it would wait for an answer that nobody gives here.
    const run = `run_${randomBytes(8).toString('hex')}`
    const got: string[] = []
    const older = createServer((client) => {
      client.write(`${JSON.stringify({ run, size: 0 })}\n`)
      client.on('data', (bytes) => {
        got.push(String(bytes))
        client.write('{"ack":7,"taken":true}\n')
      })
    }).listen(path)
    onTestFinished(() => void older.close())
    await once(older, 'listening')
    const process = spawn('sleep', ['1000'], { stdio: 'ignore' })
    await once(process, 'spawn')
    const pid = process.pid as number
    onTestFinished(() => void process.kill('SIGKILL'))
    const record = { pid, started: (await processAt(pid))?.started, boot: await bootId(), socket: path }
    writeFileSync(join(await daemon().folder(run), 'runner.json'), JSON.stringify(record))
    expect(await daemon().send(run, { seq: 7, data: 'x' })).toBe(true)
    expect(got).toEqual(['{"seq":7,"data":"x"}\n'])
  })
})

test('[R17] without a namespace it is said that nothing is hidden', async () => {
  expect(await daemon({ isolation: 'marker' }).exposed()).toMatch(/^Agents can read the owner token/)
})

describe('limits', () => {
  test('[R7] the wall clock is kept without a daemon', async () => {
    const { exit } = await runToEnd(script(FOREVER, { wallClockMs: 1_000, graceMs: 60_000 }))
    expect(exit).toMatchObject({ reason: 'wall_clock', signal: 'SIGTERM', detail: 'It ran for the 1 s that it may.' })
  })

  test('[R7] more output than it may have ends it, and what it may have is there', async () => {
    const { exit, out } = await runToEnd(script('yes', { outputBytes: 100_000, graceMs: 2_000 }))
    expect(exit).toMatchObject({ reason: 'output_limit', detail: 'It printed more than 100000 bytes.' })
    expect(out).toBe('y\n'.repeat(50_000))
  })

  test('[R7] exactly as much as it may is not too much; silence far from the limit is nothing', async () => {
    const spec = program('setTimeout(() => process.stdout.write("12345"), 700)', { outputBytes: 5, wallClockMs: 3_600_000 })
    expect(await runToEnd(spec)).toMatchObject({ out: '12345', exit: { reason: 'exited', code: 0 } })
  })

  test('[R7] a runner that is told to go by somebody else ends its run in order', async () => {
    const run = newRun()
    const { pid } = await daemon().start(run, script(`echo up; ${FOREVER}`))
    await told(daemon(), run, { upTo: 'up' })
    process.kill(pid, 'SIGHUP')
    expect((await told(daemon(), run)).exit).toMatchObject({ reason: 'stopped', detail: 'Its runner got a SIGHUP.' })
  })

  test('[R10] 100 MB pass through a runner of a few buffers', async () => {
    const run = newRun()
    const runner = daemon()
    const { pid } = await runner.start(run, script('head -c 100000000 /dev/zero; read x', { stdin: 'open', outputBytes: 2e8 }))
    let bytes = 0
    let largest = 0
    for await (const { frames } of runner.follow(run, 0, NEVER)) {
      for (const frame of frames) bytes += frame.bytes.length
      largest = Math.max(largest, ...frames.map((frame) => frame.bytes.length))
      if (bytes === 100_000_000) break
    }
    expect(largest).toBeLessThanOrEqual(65_536)
    // As much as the program itself and some more: not the 100 MB.
    expect(peakMegabytes(pid)).toBeLessThan(100)
    await runner.stop(run, 'stopped', 0)
    rmSync(join(folderOf(run), 'spool'))
  })

  test('[R13] when no more can be kept the run ends, with what was kept and a record that says so', async () => {
    const run = newRun()
    const runner = daemon()
    const { pid } = await runner.start(run, script('echo first; read x; head -c 300000 /dev/zero; sleep 1000', { stdin: 'open' }))
    await told(runner, run, { upTo: 'first' })
    // Files of this process may not grow beyond that: a full disk for it alone.
    execFileSync('prlimit', ['--pid', String(pid), '--fsize=100000'])
    await runner.send(run, { seq: 1, data: 'go\n' })
    const { exit, out } = await told(runner, run)
    expect(exit).toMatchObject({ reason: 'spool_failed', detail: expect.stringContaining('could not be kept: EFBIG') })
    expect(out.slice(0, 6)).toBe('first\n')
    expect(await runner.send(run, { seq: 2, data: 'late\n' })).toBe(false)
  })

  function peakMegabytes(pid: number): number {
    return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  }
})

describe('environment', () => {
  test('[R8] nor the packages of Signalbox itself, when npm has started the daemon', () => {
    const PATH = '/box/node_modules/.bin:/node_modules/.bin:/npm/lib/node-gyp-bin:/home/u/bin:/usr/bin:/other/node_modules/.bin'
    const given = { env: {}, inherit: [] }
    expect(agentEnvironment('run', { PATH, npm_lifecycle_event: 'start' }, given).PATH).toBe(
      '/home/u/bin:/usr/bin:/other/node_modules/.bin',
    )
    expect(agentEnvironment('run', { PATH }, given).PATH).toBe(PATH)
  })

  const SECRET = 'hunter2hunter2'
  const env = {
    PATH: process.env.PATH,
    LC_ALL: 'C',
    XDG_CONFIG_HOME: '/x',
    XDG_RUNTIME_DIR: SECRET,
    SIGNALBOX_OWNER_TOKEN: SECRET,
    DATABASE_URL: SECRET,
    GITHUB_TOKEN: SECRET,
    AWS_SECRET: SECRET,
    NODE_OPTIONS: '--no-warnings',
    WANTED: 'w',
  }

  test.each(MODES)('[R8] nothing of the daemon but a few names reaches an agent, isolation %s', async (isolation) => {
    const run = newRun()
    const runner = daemon({ env, isolation })
    const inherit = ['WANTED', 'GITHUB_TOKEN', 'DATABASE_URL', 'SIGNALBOX_OWNER_TOKEN', 'ABSENT']
    const given = { OWN_TOKEN: 'own-secret', SIGNALBOX_RUN: 'forged' }
    const { pid } = await runner.start(run, {
      ...PLAIN,
      argv: ['sh', '-c', `cat /proc/self/environ; echo; ${FOREVER}`],
      env: given,
      inherit,
    })
    const { out } = await told(runner, run, { upTo: '\n' })
    const names = out
      .trim()
      .split('\0')
      .filter((line) => line && !/^(PWD|OLDPWD|SHLVL|_)=/.test(line))
      .sort()
    expect(names).toEqual(
      ['LC_ALL=C', 'OWN_TOKEN=own-secret', `PATH=${env.PATH}`, `SIGNALBOX_RUN=${run}`, 'WANTED=w', 'XDG_CONFIG_HOME=/x'].sort(),
    )
    expect(environOf(String(pid))).toEqual([`PATH=${env.PATH}`])
    const argvs = [pid, ...marked(run)].map((one) => readFileSync(`/proc/${one}/cmdline`, 'latin1')).join()
    const files = readdirSync(folderOf(run)).map((name) => readFileSync(join(folderOf(run), name), 'latin1'))
    expect(argvs).not.toMatch(/own-secret|hunter2/)
    expect(files.join().replaceAll(out.trim(), '')).not.toMatch(/own-secret|hunter2/)
  })

  test('[R8] what is kept is in a file for us alone', async () => {
    const run = newRun()
    await daemon().keep(run, 'token', () => 'secret')
    expect(statSync(join(folderOf(run), 'token')).mode & 0o777).toBe(0o600)
  })
})

describe('input', () => {
  test('[R9] a text is given, then the end; the spool has it too', async () => {
    const text = 'ä'.repeat(200_000)
    const { exit, ...rest } = await runToEnd(script('cat /dev/stdin', { stdin: { text }, outputBytes: 1e6 }))
    expect(rest.out === text && rest.in === text).toBe(true)
    expect(exit).toMatchObject({ reason: 'exited', code: 0 })
  })

  test('[R9] closed input is at its end at once', async () => {
    const run = newRun()
    await daemon().start(run, script(`cat; echo end; ${FOREVER}`))
    await told(daemon(), run, { upTo: 'end' })
  })

  test('[R9] the same number twice is one input; the end of input is one too; after it nothing is taken', async () => {
    const run = newRun()
    const runner = daemon()
    await runner.start(run, script('cat; echo end; read x < /dev/null; sleep 1000', { stdin: 'open' }))
    for (const seq of [1, 1, 2, 1]) expect(await daemon().send(run, { seq, data: `${seq}\n` })).toBe(true)
    expect(await runner.send(run, { seq: 3, close: true })).toBe(true)
    const { out, in: input } = await told(runner, run, { upTo: 'end' })
    expect({ out, input }).toEqual({ out: '1\n2\nend\n', input: '1\n2\n' })
    expect(await runner.send(run, { seq: 4, data: 'late' })).toBe(false)
  })

  test.each(MODES)('[R9] a signal goes to the agent alone, isolation %s', async (isolation) => {
    const run = newRun()
    const runner = daemon({ isolation })
    const child = `(trap 'echo child' INT; echo up; ${FOREVER}) &`
    await runner.start(run, script(`trap 'echo agent; exit 5' INT; ${child} while :; do wait; done`))
    await told(runner, run, { upTo: 'up' })
    expect(await runner.send(run, { seq: 1, signal: 'SIGINT' })).toBe(true)
    expect(await told(runner, run)).toMatchObject({ out: 'up\nagent\n', exit: { reason: 'exited', code: 5 } })
    expect(await runner.send(run, { seq: 2, signal: 'SIGINT' })).toBe(false)
  })
})

describe('folders', () => {
  test('[R12] for us alone, and no link in its place', async () => {
    const run = newRun()
    expect(statSync(await daemon().folder(run)).mode & 0o777).toBe(0o700)
    const linked = newRun()
    symlinkSync(folderOf(run), folderOf(linked))
    await expect(daemon().folder(linked)).rejects.toThrow('must be a real folder')
    rmSync(folderOf(linked))
    await expect(daemon().folder('../elsewhere')).rejects.toThrow('not the name of a run')
    await expect(daemon({ sockets: join(base, 'long'.repeat(25)) }).start(run, script('true'))).rejects.toThrow('longer than 100 bytes')
  })

  test('[R12] only a run that has ended is forgotten, and nothing of it is left', async () => {
    const run = newRun()
    await daemon().start(run, script(FOREVER))
    await expect(daemon().forget(run)).rejects.toThrow('still running')
    await daemon().stop(run, 'stopped', 0)
    const socket = JSON.parse(readFileSync(join(folderOf(run), 'runner.json'), 'utf8')).socket
    for (let times = 0; times < 2; times++) await daemon().forget(run)
    expect([existsSync(folderOf(run)), existsSync(socket)]).toEqual([false, false])
    expect(await daemon().look(run)).toEqual({ state: 'absent' })
  })

  test('[R14] a run whose socket was swept away is followed, stopped and looked after', async () => {
    const [run, lost] = [newRun(), newRun()]
    const marks = join(base, `${run}.go`)
    execFileSync('mkfifo', [marks])
    await daemon().start(run, script(`echo one; read x < ${marks}; echo two; ${FOREVER}`))
    const { pid } = await daemon().start(lost, script(FOREVER))
    for (const one of [run, lost]) rmSync(JSON.parse(readFileSync(join(folderOf(one), 'runner.json'), 'utf8')).socket)
    const { offset } = await told(daemon(), run, { upTo: 'one' })
    const rest = told(daemon(), run, { from: offset, upTo: 'two' })
    writeFileSync(marks, '\n')
    expect((await rest).out).toBe('two\n')
    expect(await daemon().stop(run, 'stopped', 0)).toMatchObject({ reason: 'stopped' })
    const ending = told(daemon(), lost)
    process.kill(pid, 'SIGKILL')
    expect((await ending).exit).toMatchObject({ reason: 'runner_lost' })
  })
})
