import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { setImmediate as otherWork } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface Process {
  pid: number
  parent: number
  /** With the pid and the boot it names one process, however often the pid is used again. */
  started: string
}

const LINUX = process.platform === 'linux'

/** /proc is memory: a hop to another thread for each of its files costs ten times the read. Only so many at a time, though. */
const AT_A_TIME = 100

/** Pids and start times mean something only within one boot. */
export async function bootId(): Promise<string> {
  if (LINUX) return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return (await run('sysctl', ['-n', 'kern.bootsessionuuid'])).trim()
}

/** Undefined when it is gone. One that has ended and waits to be collected is gone. */
export async function processAt(pid: number): Promise<Process | undefined> {
  if (LINUX) return fromProc(pid)
  return parsePs(await run('ps', [...PS_COLUMNS, '-p', String(pid)]).catch(() => ''))[0]
}

export async function isThere({ pid, started }: Pick<Process, 'pid' | 'started'>): Promise<boolean> {
  return pid > 0 && (await processAt(pid))?.started === started
}

/** Everything that lives on this machine. */
export async function processes(): Promise<Process[]> {
  if (!LINUX) return parsePs(await run('ps', ['-A', ...PS_COLUMNS]))
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return inPortions(pids, (pid) => fromProc(Number(pid)))
}

/** Those of our own user that were started with this line in their environment. */
export async function withInEnvironment(line: string, among: Process[]): Promise<Process[]> {
  if (!LINUX) return withInPsEnvironment(line, among)
  return inPortions(among, (one) => (hasInEnviron(line, one.pid) ? one : undefined))
}

async function inPortions<From, To>(all: From[], take: (one: From) => To | undefined): Promise<To[]> {
  const found: To[] = []
  for (const [index, one] of all.entries()) {
    const taken = take(one)
    if (taken !== undefined) found.push(taken)
    if (index % AT_A_TIME === AT_A_TIME - 1) await otherWork()
  }
  return found
}

function hasInEnviron(line: string, pid: number): boolean {
  try {
    if (statSync(`/proc/${pid}`).uid !== process.getuid?.()) return false
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(line)
  } catch {
    return false
  }
}

async function withInPsEnvironment(line: string, among: Process[]): Promise<Process[]> {
  const output = await run('ps', ['-E', '-ww', '-U', String(process.getuid?.()), '-o', 'pid=,command='])
  const pids = output
    .split('\n')
    .filter((row) => row.split(' ').includes(line))
    .map((row) => Number.parseInt(row, 10))
  return among.filter((one) => pids.includes(one.pid))
}

/** Its number inside its innermost namespace. */
export function pidInside(pid: number): number | undefined {
  const inside = /^NSpid:.*?(\d+)$/m.exec(readIfThere(`/proc/${pid}/status`) ?? '')?.[1]
  return inside === undefined ? undefined : Number(inside)
}

function fromProc(pid: number): Process | undefined {
  const line = readIfThere(`/proc/${pid}/stat`)
  if (line === undefined) return undefined
  // A program's name stands in brackets and may hold anything, brackets too.
  const [state, parent, ...rest] = line.slice(line.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return undefined
  return { pid, parent: Number(parent), started: rest[17] as string }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}

const PS_COLUMNS = ['-o', 'pid=,ppid=,stat=,lstart=']

function parsePs(output: string): Process[] {
  return output.split('\n').flatMap((line) => {
    const [, pid, parent, state, started] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*?)\s*$/.exec(line) ?? []
    if (!pid || !started || state?.startsWith('Z')) return []
    return { pid: Number(pid), parent: Number(parent), started }
  })
}

async function run(program: string, args: string[]): Promise<string> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }
  return (await promisify(execFile)(program, args, { env, maxBuffer: 32_000_000 })).stdout
}
