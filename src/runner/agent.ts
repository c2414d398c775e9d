import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, statSync } from 'node:fs'
import { constants as system } from 'node:os'
import { delimiter, isAbsolute, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import type { Pipes } from './pipes.ts'
import type { Spec } from './spec.ts'
import { type Process, pidInside, processAt, processes } from './system.ts'
import { signal } from './tree.ts'

export interface HowItEnded {
  code: number | null
  signal: string | null
}

export interface Agent {
  root: Process | undefined
  ended: Promise<HowItEnded>
  /** To its own process alone. False when there is none. */
  signal(name: NodeJS.Signals): Promise<boolean>
  /** Ends its namespace, and with that everything in it. */
  killNamespace(): Promise<void>
}

/**
 * The first process of a namespace ignores signals that it does not catch and must collect the orphans, and no agent is made for
 * either. What the shell itself says of a killed child is not the agent's output.
 */
const FIRST_PROCESS = 'exec 4>&2 2>/dev/null; (echo >&3; exec "$@" 2>&4 3>&- 4>&-); exit $?'
/** Where the agent's own process says that it is there. */
const THERE_FD = 3
const AGENT_INSIDE = 2
const FIRST_PROCESS_MS = 1_000
/** Longer than the busiest machine needs to make a namespace. */
const THERE_MS = 10_000

export async function startAgent(spec: Spec, pipes: Pipes): Promise<Agent> {
  const program = findProgram(spec)
  const inNamespace = spec.isolation === 'namespace'
  const [first, ...rest] = [
    ...spec.around,
    ...(inNamespace ? ['/bin/sh', '-c', FIRST_PROCESS, 'sh'] : []),
    program,
    ...spec.argv.slice(1),
  ] as [string, ...string[]]
  const { stdin, stdout, stderr } = pipes.agent
  // A session of its own: an agent that signals its process group must not hit its runner.
  const stdio: StdioOptions = [stdin, stdout, stderr, ...(inNamespace ? (['pipe'] as const) : [])]
  const child = spawn(first, rest, { cwd: spec.cwd, env: spec.env, stdio, detached: true })
  pipes.handedOver()
  const ended = endOf(child, inNamespace)
  const there = inNamespace ? isThere(child.stdio[THERE_FD] as Readable) : undefined
  await spawned(child, program)
  return {
    root: await processAt(child.pid as number),
    ended,
    async signal(name) {
      if (!inNamespace) return isAlive(child) && child.kill(name)
      await inTime(THERE_MS, there)
      const own = await agentInside(child)
      return own !== undefined && signal(own, name)
    },
    async killNamespace() {
      // With the agent its first process ends, and passes on how. Only when it does not is it killed itself: nobody tells of that.
      const own = await agentInside(child)
      if (own && (await signal(own, 'SIGKILL')) && (await inTime(FIRST_PROCESS_MS, ended))) return
      const first = await firstInside(child)
      if (isAlive(child) && !(first && (await signal(first, 'SIGKILL')))) child.kill('SIGKILL')
    },
  }
}

/** Before anything is started: a wrapper around the agent would only say 127. */
function findProgram({ argv: [name], cwd, env }: Spec): string {
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`The folder ${cwd} to run in does not exist.`)
  const isPath = name.includes('/')
  const places = isPath ? [resolve(cwd, name)] : (env.PATH ?? '').split(delimiter).map((folder) => resolve(cwd, folder, name))
  const found = places.find(isProgram)
  if (found) return found
  if (isPath || isAbsolute(name)) throw new Error(`The program ${places[0]} does not exist or may not be run.`)
  throw new Error(`The program ${name} was not found. Install it, or add its folder to PATH, which is ${env.PATH ?? 'empty'}.`)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    return false
  }
}

async function spawned(child: ChildProcess, program: string): Promise<void> {
  try {
    await once(child, 'spawn')
  } catch (error) {
    throw new Error(`${program} could not be started: ${(error as Error).message}`)
  }
}

function endOf(child: ChildProcess, inNamespace: boolean): Promise<HowItEnded> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(inNamespace && code !== null ? throughShell(code) : { code, signal }))
  })
}

/** A signal that comes before would reach nobody. Also when it ended before it said so. */
function isThere(said: Readable): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      said.destroy()
      resolve()
    }
    said.once('data', done).once('end', done).once('error', done)
  })
}

async function inTime(ms: number, awaited: Promise<unknown> | undefined): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, ms, false)
  })
  return Promise.race([Promise.resolve(awaited).then(() => true), late]).finally(() => clearTimeout(timer))
}

/** A shell passes a signal on as 128 and its number. */
function throughShell(code: number): HowItEnded {
  const name = Object.entries(system.signals).find(([, number]) => number === code - 128)?.[0]
  return name ? { code: null, signal: name } : { code, signal: null }
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}

async function firstInside(child: ChildProcess, all?: Process[]): Promise<Process | undefined> {
  const first = (all ?? (await processes())).find((one) => one.parent === child.pid)
  // As long as it is ours its pid is nobody else's.
  return isAlive(child) ? first : undefined
}

async function agentInside(child: ChildProcess): Promise<Process | undefined> {
  const all = await processes()
  const first = await firstInside(child, all)
  if (!first) return undefined
  // Orphans come to the first process as well.
  return all.find((one) => one.parent === first.pid && pidInside(one.pid) === AGENT_INSIDE)
}
