// What is judged: the shipped daemon (leg A), and the same edge with the suite's own tools behind it (leg B).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT } from '../../scripts/bootstrap.mjs'
import { startProxy } from './proxy.mjs'
import { CACHE } from './tools.mjs'

/** @typedef {{ url: string, token: string, proxied: string, stop(): Promise<void> }} Judged */

/** @returns {Promise<Judged>} */
export async function startDaemon() {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-legA-'))
  const { SIGNALBOX_TOKEN: _token, ...rest } = process.env
  const env = { ...rest, SIGNALBOX_HOME: home, XDG_RUNTIME_DIR: home, SIGNALBOX_PORT: '0' }
  return start([join(ROOT, 'bin/signalbox.js'), 'serve', '--quiet'], env, [home], (line) => ({
    url: line,
    token: readFileSync(join(home, 'owner.token'), 'utf8').trim(),
  }))
}

/** @returns {Promise<Judged>} */
export async function startFixture() {
  const { build } = await import('esbuild')
  mkdirSync(CACHE, { recursive: true })
  // Under the checkout, so that the packages it leaves outside are found.
  const program = mkdtempSync(join(CACHE, 'fixture-'))
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-legB-'))
  await build({
    absWorkingDir: ROOT,
    entryPoints: { main: 'test/conformance/fixture/main.ts', 'db-worker': 'src/db/worker.ts' },
    outdir: program,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
  })
  return start([join(program, 'main.js'), folder], process.env, [folder, program], JSON.parse)
}

async function start(args, env, folders, read) {
  const child = spawn(process.execPath, args, { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const reap = () => child.kill('SIGKILL')
  process.once('exit', reap)
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const clean = () => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  }
  const ended = once(child, 'exit').then(([code, signal]) => {
    clean()
    throw new Error(`${args[0]} ended with ${code ?? signal}\n${errors}`)
  })
  const [line] = await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])
  ended.catch(() => {})
  const { url, token } = read(line)
  const proxy = await startProxy(url, token)
  return {
    url,
    token,
    proxied: proxy.url,
    async stop() {
      proxy.close()
      if (child.exitCode === null) {
        const exited = once(child, 'exit')
        reap()
        await exited
      }
      process.off('exit', reap)
      clean()
    },
  }
}
