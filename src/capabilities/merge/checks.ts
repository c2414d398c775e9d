import type { EffectContext } from '../../kernel/effect.ts'
import type { Exit } from '../../ports/runner.ts'
import '../../ports/runner.ts'

export interface Verdict {
  green: boolean
  /** For a person: how they ended. */
  reason: string
  log: string
}

export interface Checked {
  /** Of this attempt at this tree: a daemon that comes back finds it by that. */
  name: string
  command: string
  /** Undefined when it was begun before: then it is only followed. */
  cwd: string | undefined
  timeoutMs: number
}

const LOG_BYTES = 16_384
const OUTPUT_BYTES = 64 * 1_024 * 1_024
const GRACE_MS = 2_000

/**
 * A process of its own that outlives the daemon: one that is killed meanwhile finds the verdict, and does not begin again.
 * The registration says what is run, never the branch: work must not choose what it is checked by.
 */
export async function runChecks(ctx: EffectContext, { name, command, cwd, timeoutMs }: Checked): Promise<Verdict> {
  const { runner } = ctx.ports
  if (cwd !== undefined)
    await runner.start(name, {
      argv: ['/bin/sh', '-c', command],
      cwd,
      env: { CI: '1' },
      inherit: [],
      stdin: 'closed',
      wallClockMs: timeoutMs,
      outputBytes: OUTPUT_BYTES,
      graceMs: GRACE_MS,
    })
  let log = Buffer.alloc(0)
  for await (const { frames, exit } of runner.follow(name, 0, ctx.signal)) {
    const printed = frames.filter(({ stream }) => stream !== 'in').map(({ bytes }) => bytes)
    log = Buffer.concat([log, ...printed]).subarray(-LOG_BYTES)
    if (!exit) continue
    if (!LOST.includes(exit.reason)) return { ...verdict(exit, timeoutMs), log: log.toString('utf8') }
    // Nobody knows what they would have said. Left where it is, every further attempt would find the same.
    await runner.forget(name)
    throw new Error(exit.detail)
  }
  throw new Error('The checks were not followed to their end.')
}

const LOST: Exit['reason'][] = ['runner_lost', 'spool_failed', 'shutdown']

function verdict(exit: Exit, timeoutMs: number): Omit<Verdict, 'log'> {
  if (exit.reason === 'exited' && exit.code === 0) return { green: true, reason: 'The checks passed.' }
  if (exit.reason === 'wall_clock') return { green: false, reason: `The checks were not over after ${timeoutMs / 60_000} minutes.` }
  if (exit.reason === 'exited') return { green: false, reason: `The checks ended with ${exit.code ?? exit.signal}.` }
  return { green: false, reason: exit.detail }
}
