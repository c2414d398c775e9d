import { now } from '../../kernel/clock.ts'
import type { EffectContext } from '../../kernel/effect.ts'
import type { Exit } from '../../ports/runner.ts'
import { mergeWithdrawn } from './schema.ts'
import '../../ports/runner.ts'

export interface Verdict {
  green: boolean
  /** For a person: how they ended. */
  reason: string
  log: string
}

export interface Check {
  /** Of this attempt at this tree: a daemon that comes back finds it by that. */
  name: string
  command: string
  /** The folder with the tree; asked for only when it begins now. */
  cwd(): Promise<string>
  repo: string
  /** Whether anybody still asks what this command says about this tree. */
  isWanted(command: string): Promise<boolean>
}

const LOG_BYTES = 16_384
const OUTPUT_BYTES = 64 * 1_024 * 1_024
const GRACE_MS = 2_000
const MINUTE_MS = 60_000
const LIMIT = 'merge.checks_minutes'
/** After any of these a check may be unwanted. */
const MAY_END = [mergeWithdrawn.type, 'repo.updated', 'task.moved', 'task.deleted']

/**
 * A process of its own that outlives the daemon: one that is killed meanwhile finds the verdict, and does not begin again.
 * The registration says what is run, never the branch: work must not choose what it is checked by.
 * `stale`: it was ended, or not begun, because something else is wanted by now.
 */
export async function runChecks(ctx: EffectContext, check: Check): Promise<Verdict | 'stale'> {
  const begun = await begin(ctx, check)
  if (!begun) return 'stale'
  const { exit, log } = await untilItsEnd(ctx, check, begun)
  if (LOST.includes(exit.reason)) {
    // Nobody knows what they would have said. Left where it is, every further attempt would find the same.
    await ctx.ports.runner.forget(check.name)
    throw new Error(exit.detail)
  }
  const limit = await limitMs(ctx)
  const endedEarly = exit.reason === 'wall_clock' && limit > begun.limit_ms
  if (exit.reason === 'stopped' || endedEarly) return 'stale'
  return { ...verdict(exit, limit), log: log.toString('utf8') }
}

/** What it was begun with, perhaps by a daemon before this one. */
interface Begun {
  command: string
  limit_ms: number
  at: number
}

async function begin(ctx: EffectContext, { name, command, cwd, repo, isWanted }: Check): Promise<Begun | undefined> {
  const { runner } = ctx.ports
  const { state } = await runner.look(name)
  const limit_ms = await limitMs(ctx)
  if (state === 'absent' || state === 'prepared') {
    if (!(await isWanted(command))) return undefined
    await runner.forget(name)
  }
  const asked = JSON.parse(await runner.keep(name, 'check.json', () => JSON.stringify({ command, limit_ms }))) as Omit<Begun, 'at'>
  if (state === 'absent' || state === 'prepared')
    await runner.start(name, {
      argv: ['/bin/sh', '-c', command],
      cwd: await cwd(),
      repo,
      env: { CI: '1' },
      inherit: [],
      stdin: 'closed',
      // For when no daemon is there to end it.
      wallClockMs: limit_ms,
      outputBytes: OUTPUT_BYTES,
      graceMs: GRACE_MS,
    })
  return { ...asked, at: Number(await runner.keep(name, 'began', () => String(now()))) }
}

/** Ends it when its time is over, by whatever limit is set by then, and as soon as nobody wants it. */
async function untilItsEnd(ctx: EffectContext, { name, isWanted }: Check, begun: Begun): Promise<{ exit: Exit; log: Buffer }> {
  const { runner } = ctx.ports
  const failed = new AbortController()
  const trying = (act: () => Promise<unknown>) => void act().catch((error) => failed.abort(error))
  let timer: NodeJS.Timeout | undefined
  const setTimer = async () => {
    const left = begun.at + (await limitMs(ctx)) - now()
    clearTimeout(timer)
    timer = setTimeout(() => trying(() => runner.stop(name, 'wall_clock', GRACE_MS)), left)
  }
  const look = async () => (await isWanted(begun.command)) || runner.stop(name, 'stopped', GRACE_MS)
  const subscriptions = MAY_END.map((type) => ctx.on(type, () => trying(look)))
  subscriptions.push(ctx.on('setting.changed', ({ subject }) => subject === LIMIT && trying(setTimer)))
  try {
    await setTimer()
    // Something may have been decided before anybody listened; also while the daemon was away.
    trying(look)
    let log = Buffer.alloc(0)
    for await (const { frames, exit } of runner.follow(name, 0, AbortSignal.any([ctx.signal, failed.signal]))) {
      const printed = frames.filter(({ stream }) => stream !== 'in').map(({ bytes }) => bytes)
      log = Buffer.concat([log, ...printed]).subarray(-LOG_BYTES)
      if (exit) return { exit, log }
    }
    throw failed.signal.reason ?? new Error('The checks were not followed to their end.')
  } finally {
    clearTimeout(timer)
    for (const end of subscriptions) end()
  }
}

async function limitMs(ctx: EffectContext): Promise<number> {
  return (await ctx.setting<number>(LIMIT)) * MINUTE_MS
}

const LOST: Exit['reason'][] = ['runner_lost', 'spool_failed', 'shutdown']

function verdict(exit: Exit, limit: number): Omit<Verdict, 'log'> {
  if (exit.reason === 'exited' && exit.code === 0) return { green: true, reason: 'The checks passed.' }
  if (exit.reason === 'wall_clock') return { green: false, reason: `The checks were not over after ${limit / MINUTE_MS} minutes.` }
  if (exit.reason === 'exited') return { green: false, reason: `The checks ended with ${exit.code ?? exit.signal}.` }
  return { green: false, reason: exit.detail }
}

/** Checks that nobody asks about any more would go on in the folder of the next. */
export async function endChecks({ ports: { runner } }: EffectContext, names: string[]): Promise<void> {
  for (const name of names) {
    const { state } = await runner.look(name)
    if (state === 'absent') continue
    if (state === 'running') await runner.stop(name, 'stopped', 0)
    await runner.forget(name)
  }
}
