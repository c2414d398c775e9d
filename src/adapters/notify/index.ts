import { spawn } from 'node:child_process'
import { within } from '../../kernel/patience.ts'
import type { Notifier } from '../../ports/notifier.ts'

type Environment = Record<string, string | undefined>

const LONGEST_MS = 30_000
const MOST_SAID = 500
/** What is the daemon's own is nothing for a program that shows a letter. */
const NEVER = /^(SIGNALBOX_.*|DATABASE_URL|GITHUB_TOKEN)$/

export function createNotifier(env: Environment, longestMs = LONGEST_MS): Notifier {
  const passed = Object.fromEntries(Object.entries(env).filter(([name]) => !NEVER.test(name)))
  return {
    run: (argv, input, signal) => within(longestMs, signal, (either) => runProgram(argv, input, passed, either)),
    post: (url, body, key, signal) => within(longestMs, signal, (either) => post(url, body, key, either)),
  }
}

async function post(url: string, body: object, key: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(body),
    // Where it leads was not checked.
    redirect: 'error',
    signal,
  })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`The webhook answered ${response.status}.`)
}

function runProgram([program, ...args]: string[], input: string, env: Environment, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    // A group of its own: what it started ends with it.
    const child = spawn(program as string, args, { env, cwd: '/', detached: true, stdio: ['pipe', 'ignore', 'pipe'] })
    let said = ''
    const end = () => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // It is over.
      }
    }
    signal.addEventListener('abort', end, { once: true })
    child.stderr.on('data', (chunk: Buffer) => {
      said = `${said}${chunk}`.slice(-MOST_SAID)
    })
    // One that does not read what it is given is no failure.
    child.stdin.on('error', () => {})
    child.on('error', (error) => {
      signal.removeEventListener('abort', end)
      reject(error)
    })
    child.on('exit', (code, killed) => {
      signal.removeEventListener('abort', end)
      if (signal.aborted) reject(new Error('The command was ended: it took too long, or the daemon stops.'))
      else if (code === 0) resolve()
      else reject(new Error(`The command ended with ${code ?? killed}: ${said.trim()}`))
    })
    child.stdin.end(input)
    if (signal.aborted) end()
  })
}
