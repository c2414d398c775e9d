import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { StepInput } from './script.ts'

const MOST_OUTPUT = 16_000
/** What it started itself may hold its output open for ever. */
const DRAIN_MS = 500

/** Resolves with what it printed; rejects when it ends otherwise than expected. Its whole group ends with the patience or the signal. */
export async function runProgram({ argv, timeout_seconds, expect_code }: StepInput['run'], signal: AbortSignal): Promise<string> {
  const [program, ...args] = argv
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const timeout = AbortSignal.timeout(timeout_seconds * 1000)
  const end = () => killGroup(child)
  const either = AbortSignal.any([signal, timeout])
  either.addEventListener('abort', end, { once: true })
  try {
    const output = collect(child)
    const [code, by] = (await once(child, 'exit')) as [number | null, string | null]
    signal.throwIfAborted()
    if (timeout.aborted) throw new Error(`${program} did not end in ${timeout_seconds} s`)
    const text = await output()
    if (code !== expect_code) throw new Error(`${program} ended with ${code ?? by}, not ${expect_code}: ${text}`)
    return text
  } finally {
    either.removeEventListener('abort', end)
  }
}

/** Leaves it behind. */
export async function spawnProgram({ argv, detach }: StepInput['spawn']): Promise<void> {
  const [program, ...args] = argv
  const child = spawn(program, args, { stdio: 'ignore', detached: detach })
  await once(child, 'spawn')
  child.unref()
}

function collect(child: ChildProcess): () => Promise<string> {
  let text = ''
  const closed = once(child, 'close').catch(() => {})
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      if (text.length < MOST_OUTPUT) text += chunk.slice(0, MOST_OUTPUT - text.length)
    })
  return async () => {
    await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, DRAIN_MS).unref())])
    return text
  }
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended by itself.
  }
}
