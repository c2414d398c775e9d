import { type ChildProcess, execFile, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'

const MOST_OUTPUT = 64_000_000

export interface Command {
  cwd: string
  argv: string[]
  env: Record<string, string>
  input: string | Buffer
  timeoutMs: number
  /** Stop it after so many bytes; what came until then is the answer. */
  cutAfter?: number
  /** A second git that reads what the first one prints, however much it is. */
  into?: string[]
}

export interface Ran {
  stdout: Buffer
  /** Why it did not go well. */
  failed?: string
}

/** Never rejects. Aborted, it ends the git, and says that it failed. */
export type Exec = (command: Command, signal?: AbortSignal) => Promise<Ran>

/** As a child of this very process. */
export const execHere: Exec = (command, signal) => (command.into ? piped(command, command.into, signal) : alone(command, signal))

function alone({ cwd, argv, env, input, timeoutMs, cutAfter }: Command, signal: AbortSignal | undefined): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      'git',
      argv,
      { cwd, env, signal, timeout: timeoutMs, maxBuffer: cutAfter ?? MOST_OUTPUT, encoding: 'buffer' },
      (error, stdout, stderr) => {
        const cut =
          cutAfter !== undefined && error !== null && (error as NodeJS.ErrnoException).code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER'
        if (!error || cut) return resolve({ stdout })
        const said = stderr.toString().trim().slice(-2_000)
        resolve({ stdout, failed: error.killed ? `it took longer than ${timeoutMs / 1_000} s` : said || error.message })
      },
    )
    // It may have ended without reading.
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })
}

async function piped({ cwd, argv, env, input, timeoutMs }: Command, second: string[], signal?: AbortSignal): Promise<Ran> {
  const from = spawn('git', argv, { cwd, env, signal, timeout: timeoutMs, stdio: ['pipe', 'pipe', 'pipe'] })
  const into = spawn('git', second, { cwd, env, signal, timeout: timeoutMs, stdio: [from.stdout, 'pipe', 'pipe'] })
  // Only the two of them have it open: else the second one would not notice that the first has died.
  from.stdout.destroy()
  // It may have ended without reading.
  from.stdin.on('error', () => {})
  from.stdin.end(input)
  const [one, two] = await Promise.all([ended(from, from.stderr), ended(into, into.stderr, into.stdout)])
  const failed = one.failed ?? two.failed
  return failed === undefined ? { stdout: two.stdout } : { stdout: two.stdout, failed }
}

function ended(child: ChildProcess, stderr: Readable, stdout?: Readable): Promise<Ran> {
  const out: Buffer[] = []
  const said: Buffer[] = []
  stdout?.on('data', (bytes) => out.push(bytes))
  stderr.on('data', (bytes) => said.push(bytes))
  return new Promise((resolve) => {
    child.on('error', (error) => resolve({ stdout: Buffer.alloc(0), failed: error.message }))
    child.on('close', (code, signal) => {
      const failed = Buffer.concat(said).toString().trim().slice(-2_000) || `it ended with ${code ?? signal}`
      resolve({ stdout: Buffer.concat(out), ...(code === 0 ? {} : { failed }) })
    })
  })
}
