import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A server of the bench in a process of its own; its first line is its address. */
export class Child {
  readonly process: ChildProcess
  url = ''

  constructor(args: string[], env: Record<string, string | undefined> = process.env) {
    this.process = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  }

  static async start(server: 'bare-http' | 'sdk-echo', env: Record<string, string> = {}): Promise<Child> {
    const child = new Child([join(import.meta.dirname, `${server}.js`)], { ...process.env, ...env })
    await child.ready()
    return child
  }

  get pid(): number {
    return this.process.pid as number
  }

  async ready(): Promise<void> {
    const lines = createInterface({ input: this.process.stdout as NonNullable<ChildProcess['stdout']> })
    const died = once(this.process, 'exit').then(([code]) => Promise.reject(new Error(`a server of the bench ended with ${code}`)))
    const [line] = (await Promise.race([once(lines, 'line'), died])) as [string]
    died.catch(() => {})
    this.url = line
  }

  async end(): Promise<void> {
    const exited = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await exited
  }
}

export function residentMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

const TICKS_PER_MS = 0.1

/** What the process has used of the processor so far. */
export function processorMs(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number) as [number, number]
  return (user + system) / TICKS_PER_MS
}
