import { execFile } from 'node:child_process'
import { readdir, readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface Process {
  pid: number
  parent: number
  /** With the pid and the boot it names one process, however often the pid is used again. */
  started: string
}

const LINUX = process.platform === 'linux'

/** Pids and start times mean something only within one boot. */
export async function bootId(): Promise<string> {
  if (LINUX) return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
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
  const found: Process[] = []
  for (const name of await readdir('/proc')) {
    const one = /^\d+$/.test(name) ? await fromProc(Number(name)) : undefined
    if (one) found.push(one)
  }
  return found
}

/** Those of our own user that were started with this line in their environment. */
export async function withInEnvironment(line: string, among: Process[]): Promise<Process[]> {
  if (!LINUX) return withInPsEnvironment(line, among)
  const found: Process[] = []
  for (const one of among) if (await hasInEnviron(line, one.pid)) found.push(one)
  return found
}

async function hasInEnviron(line: string, pid: number): Promise<boolean> {
  try {
    if ((await stat(`/proc/${pid}`)).uid !== process.getuid?.()) return false
    return (await readFile(`/proc/${pid}/environ`, 'latin1')).split('\0').includes(line)
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
export async function pidInside(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
  const inside = /^NSpid:.*?(\d+)$/m.exec(status)?.[1]
  return inside === undefined ? undefined : Number(inside)
}

async function fromProc(pid: number): Promise<Process | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined)
  if (line === undefined) return undefined
  // A program's name stands in brackets and may hold anything, brackets too.
  const [state, parent, ...rest] = line.slice(line.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z' || state === 'X') return undefined
  return { pid, parent: Number(parent), started: rest[17] as string }
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
