import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { build } from 'esbuild'
import type { Orders } from './program.ts'

const ROOT = resolve(import.meta.dirname, '../../..')

/** The program as JavaScript, under the checkout so that the packages it leaves outside are found. */
export async function buildProgram(): Promise<{ path: string; remove(): void }> {
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, '.cache', 'effects-'))
  await build({
    absWorkingDir: ROOT,
    entryPoints: { program: 'test/chaos/effects/program.ts' },
    outdir: folder,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // With its packages: else half of a short life would be spent looking for modules.
    splitting: true,
    minify: true,
    external: ['@photostructure/sqlite', 'pg-native', 'typescript'],
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    logLevel: 'error',
  })
  return { path: join(folder, 'program.js'), remove: () => rmSync(folder, { recursive: true, force: true }) }
}

type Reply = Record<string, unknown>

/** One run of the program. */
export class Child {
  readonly #process: ChildProcess
  readonly #replies: AsyncIterator<string>
  readonly exited: Promise<{ code: number | null; signal: string | null }>
  errors = ''

  constructor(program: string, orders: Orders, env: Record<string, string> = {}) {
    this.#process = spawn(process.execPath, [program, JSON.stringify(orders)], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    const { stdout, stderr, stdin } = this.#process
    stderr?.on('data', (chunk) => {
      this.errors += String(chunk)
    })
    stdin?.on('error', () => {})
    this.#replies = createInterface({ input: stdout as NonNullable<typeof stdout> })[Symbol.asyncIterator]()
    this.exited = once(this.#process, 'exit').then(([code, signal]) => ({ code, signal }))
  }

  get pid(): number {
    return this.#process.pid as number
  }

  /** Undefined when it ended instead. */
  async reply(): Promise<Reply | undefined> {
    const { value, done } = await this.#replies.next()
    return done ? undefined : (JSON.parse(value) as Reply)
  }

  async ready(): Promise<void> {
    if (!(await this.reply())) throw new Error(`the program did not start: ${this.errors}`)
  }

  ask(order: unknown): Promise<Reply | undefined> {
    this.#process.stdin?.write(`${JSON.stringify(order)}\n`)
    return this.reply()
  }

  async end(how: 'SIGKILL' | 'orderly'): Promise<void> {
    if (how === 'orderly') this.#process.stdin?.end()
    else this.#process.kill('SIGKILL')
    await this.exited
  }
}
