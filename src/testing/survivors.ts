import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Everything of this daemon's runs that lives: runners by their folder, agents and what they started by their marker. */
export function survivors(home: string): { pid: number; argv: string }[] {
  const runs = folders(join(home, 'runs'))
  if (!runs.length) return []
  const marks = runs.map((run) => `SIGNALBOX_RUN=${run}`)
  return readdirSync('/proc').flatMap((name) => {
    if (!/^[0-9]+$/.test(name)) return []
    try {
      const argv = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim()
      const environment = readFileSync(`/proc/${name}/environ`, 'utf8').split('\0')
      const state = /\) (\w)/.exec(readFileSync(`/proc/${name}/stat`, 'utf8'))?.[1]
      const ours = argv.includes(join(home, 'runs')) || environment.some((line) => marks.includes(line))
      return ours && state !== 'Z' && argv ? [{ pid: Number(name), argv }] : []
    } catch {
      return []
    }
  })
}

function folders(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

const PATIENCE_MS = 60_000

/** What is left when those that were ending have ended: who is told of an end hears it from a process that still has to go itself. */
export async function leftBehind(home: string): Promise<string[]> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const left = survivors(home).map(({ argv }) => argv)
    if (!left.length || performance.now() > deadline) return left
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

export function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It was faster.
  }
}
