import { now } from '../kernel/clock.ts'
import type { EffectContext } from '../kernel/effect.ts'
import type { EventType } from '../kernel/event.ts'
import { within } from '../kernel/patience.ts'
import { redactText } from '../kernel/redact.ts'
import type { Ports } from '../kernel/tool.ts'
import type { Exit, Frame } from '../ports/runner.ts'
import { settingChanged } from './system/index.ts'

/** A command of a repository's registration, run in a checkout of it. */
export interface Command {
  /** Of this attempt: a daemon that comes back finds it by that. */
  name: string
  command: string
  /** Where; asked for only when it begins now. */
  cwd(): Promise<string>
  repo: string
  env: Record<string, string>
  /** Names of variables that it gets as the daemon has them. */
  inherit?: string[]
  /** The setting with its limit, in minutes. */
  limit: string
  /** Events after any of which it may be unwanted. */
  mayEnd: EventType[]
  /** Without room for what it prints it has failed: begun again, it may fill the disk again. Otherwise nobody knows what it would have said. */
  failsUnkept?: true
  /** Whether anybody still asks what this command says there. */
  isWanted(command: string): Promise<boolean>
}

export interface CommandEnd {
  green: boolean
  /** For a person: how it ended. */
  how: string
  log: string
}

const LOG_BYTES = 16_384
const OUTPUT_BYTES = 64 * 1_024 * 1_024
const GRACE_MS = 2_000
const MINUTE_MS = 60_000

/**
 * A process of its own that outlives the daemon: one that is killed meanwhile finds how it ended, and does not begin again.
 * The registration says what is run, never a branch: work must not choose what it is checked by.
 * `stale`: it was ended, or not begun, because something else is wanted by now.
 */
export async function runCommand(ctx: EffectContext, command: Command): Promise<CommandEnd | 'stale'> {
  const begun = await begin(ctx, command)
  if (!begun) return 'stale'
  const { exit, log } = await untilItsEnd(ctx, command, begun)
  if (LOST.includes(exit.reason) && !(command.failsUnkept && exit.reason === 'spool_failed')) {
    // Nobody knows what it would have said. Left where it is, every further attempt would find the same.
    await ctx.ports.runner.forget(command.name)
    throw new Error(exit.detail)
  }
  const limit = await limitMs(ctx, command)
  const endedEarly = exit.reason === 'wall_clock' && limit > begun.limit_ms
  if (exit.reason === 'stopped' || endedEarly) return 'stale'
  return { green: exit.reason === 'exited' && exit.code === 0, how: howItEnded(exit, limit), log: textOf(log) }
}

/** What it was begun with, perhaps by a daemon before this one. */
interface Begun {
  command: string
  limit_ms: number
  at: number
}

async function begin(ctx: EffectContext, wanted: Command): Promise<Begun | undefined> {
  const { runner } = ctx.ports
  const { name, command, cwd, repo, env, inherit = [], isWanted } = wanted
  const { state } = await runner.look(name)
  const limit_ms = await limitMs(ctx, wanted)
  const isNew = state === 'absent' || state === 'prepared'
  if (isNew) {
    if (!(await isWanted(command))) return undefined
    await runner.forget(name)
  }
  const asked = JSON.parse(await runner.keep(name, 'check.json', () => JSON.stringify({ command, limit_ms }))) as Omit<Begun, 'at'>
  if (isNew)
    await runner.start(name, {
      argv: ['/bin/sh', '-c', command],
      cwd: await cwd(),
      repo,
      env: { ...env, CI: '1' },
      inherit,
      stdin: 'closed',
      // For when no daemon is there to end it.
      wallClockMs: limit_ms,
      outputBytes: OUTPUT_BYTES,
      graceMs: GRACE_MS,
    })
  return { ...asked, at: Number(await runner.keep(name, 'began', () => String(now()))) }
}

/** Ends it when its time is over, by whatever limit is set by then, and as soon as nobody wants it. */
async function untilItsEnd(ctx: EffectContext, command: Command, begun: Begun): Promise<{ exit: Exit; log: Buffer }> {
  const { runner } = ctx.ports
  const { name, isWanted, limit, mayEnd } = command
  const failed = new AbortController()
  const trying = (act: () => Promise<unknown>) => void act().catch((error) => failed.abort(error))
  let timer: NodeJS.Timeout | undefined
  const setTimer = async () => {
    const left = begun.at + (await limitMs(ctx, command)) - now()
    clearTimeout(timer)
    timer = setTimeout(() => trying(() => runner.stop(name, 'wall_clock', GRACE_MS)), left)
  }
  const look = async () => (await isWanted(begun.command)) || runner.stop(name, 'stopped', GRACE_MS)
  const subscriptions = mayEnd.map((type) => ctx.on(type, () => trying(look)))
  subscriptions.push(ctx.on(settingChanged, ({ subject }) => subject === limit && trying(setTimer)))
  try {
    await setTimer()
    // Something may have been decided before anybody listened; also while the daemon was away.
    trying(look)
    let log = Buffer.alloc(0)
    for await (const { frames, exit } of runner.follow(name, 0, AbortSignal.any([ctx.signal, failed.signal]))) {
      log = lastOf(log, frames)
      if (exit) return { exit, log }
    }
    throw failed.signal.reason ?? new Error(`${name} was not followed to its end.`)
  } finally {
    clearTimeout(timer)
    for (const end of subscriptions) end()
  }
}

async function limitMs(ctx: EffectContext, { limit }: Command): Promise<number> {
  return (await ctx.setting<number>(limit)) * MINUTE_MS
}

const LOST: Exit['reason'][] = ['runner_lost', 'spool_failed', 'shutdown']

function howItEnded(exit: Exit, limit: number): string {
  if (exit.reason === 'wall_clock') return `was not over after ${limit / MINUTE_MS} minutes`
  if (exit.reason === 'exited') return `ended with ${exit.code ?? exit.signal}`
  return `could not go on: ${exit.detail.replace(/\.$/, '')}`
}

export interface Log {
  log: string
  /** Where it ends: what is asked for after that waits for more. */
  mark: number
}

/** What a process has printed last. After the mark of an earlier answer it waits, so long at most, until there is more. */
export async function logOf(
  { ports: { runner }, signal }: { ports: Ports; signal: AbortSignal },
  name: string,
  { after, waitMs }: { after?: number | undefined; waitMs: number },
): Promise<Log> {
  if (after !== undefined && (await runner.look(name)).state === 'running')
    await within(waitMs, signal, async (either) => {
      for await (const _ of runner.follow(name, after, either)) return
    })
  let log = Buffer.alloc(0)
  let mark = 0
  for (let batch = await runner.printed(name, 0); batch.frames.length > 0; batch = await runner.printed(name, mark)) {
    log = lastOf(log, batch.frames)
    mark = batch.offset
  }
  return { log: textOf(log), mark }
}

export function lastOf(log: Buffer<ArrayBuffer>, frames: Frame[]): Buffer<ArrayBuffer> {
  const printed = frames.filter(({ stream }) => stream !== 'in').map(({ bytes }) => bytes)
  return Buffer.concat([log, ...printed]).subarray(-LOG_BYTES)
}

/** Without what is hidden, and without the half of a character that its beginning may be. */
export function textOf(log: Buffer): string {
  return redactText(log.toString('utf8').replace(/^\ufffd+/, ''))
}

/** What nobody asks about any more would go on in the folder of the next. */
export async function endCommands({ ports: { runner } }: EffectContext, names: string[]): Promise<void> {
  for (const name of names) {
    const { state } = await runner.look(name)
    if (state === 'absent') continue
    if (state === 'running') await runner.stop(name, 'stopped', 0)
    await runner.forget(name)
  }
}
