import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { KnownValues } from '../kernel/capability.ts'
import { refuse } from '../kernel/error.ts'

export interface LongJob {
  task: 'check' | 'backup'
  path: string
  target?: string
  values?: KnownValues
}

export type LongAnswer = { value: unknown } | { error: string }

/** Beside this module when built; from the sources, the last build's. */
const PROGRAMS = ['./db-worker.js', '../../dist/db-worker.js'].map((path) => fileURLToPath(new URL(path, import.meta.url)))

/**
 * Long reads run in a process of their own. A thread would not do: nothing interrupts SQLite in the middle of a big file,
 * and a daemon that is told to stop meanwhile aborts instead of ending.
 */
export class Beside {
  readonly #running = new Set<ChildProcess>()

  run<T>(job: LongJob): Promise<T> {
    const program = PROGRAMS.find((path) => existsSync(path))
    if (!program) return Promise.reject(new Error('the database worker is not built: run "npm run build"'))
    const child = fork(program, [JSON.stringify(job)], { execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#running.add(child)
    child.unref()
    child.channel?.unref()
    return new Promise<T>((resolve, reject) => {
      child.once('message', (answer: LongAnswer) => ('error' in answer ? reject(new Error(answer.error)) : resolve(answer.value as T)))
      child.once('error', reject)
      child.once('exit', (code, signal) => {
        this.#running.delete(child)
        if (signal === 'SIGKILL') reject(refuse('SHUTTING_DOWN', 'The daemon is stopping; the database was not read to its end.'))
        else reject(new Error(`the database worker ended with ${code ?? signal} and without an answer`))
      })
    })
  }

  async close(): Promise<void> {
    const running = [...this.#running]
    const ended = running.map((child) => once(child, 'exit'))
    for (const child of running) child.kill('SIGKILL')
    await Promise.all(ended)
  }
}
