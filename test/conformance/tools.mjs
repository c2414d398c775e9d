// The official checkers, pinned by tools/package-lock.json and kept in the user's cache, for every checkout. To move to others, change
// tools/package.json and run `npm install --package-lock-only` there, then
// `node scripts/lockfile.mjs --fix test/conformance/tools/package-lock.json`.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fail, npm, ROOT, say, seconds } from '../../scripts/bootstrap.mjs'

const WANTED = join(ROOT, 'test/conformance/tools')
export const CACHE = join(ROOT, '.cache/conformance')
const KEPT = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'signalbox/conformance')
const INSTALLED = join(KEPT, fingerprint())
/** Both checkers need more than the Node that the product runs on. */
const NODE_NEEDED = [22, 19]

/** @returns {Promise<{ node: string, conformance: string, requirements: string, inspector: string, module(name: string): string }>} */
export async function ensureTools() {
  if (!existsSync(INSTALLED)) await install()
  const module = (name) => join(INSTALLED, 'node_modules', name)
  const conformance = module('@modelcontextprotocol/conformance')
  return {
    node: nodeOf(module),
    conformance: join(conformance, 'dist/index.js'),
    requirements: join(conformance, 'requirements'),
    inspector: join(module('@modelcontextprotocol/inspector'), 'clients/launcher/build/index.js'),
    module,
  }
}

function fingerprint() {
  const lock = readFileSync(join(WANTED, 'package-lock.json'))
  return createHash('sha256').update(lock).update(`${process.platform}-${process.arch}`).digest('hex')
}

/** Beside the final place, then renamed: an install that was cut short is never taken for a whole one. */
async function install() {
  const started = Date.now()
  const fresh = join(KEPT, `installing-${process.pid}`)
  say('fetching the official MCP checkers (once, about 330 MB)…')
  const heartbeat = setInterval(() => say(`still fetching (${seconds(started)})…`), 15_000)
  try {
    rmSync(fresh, { recursive: true, force: true })
    mkdirSync(fresh, { recursive: true })
    for (const file of ['package.json', 'package-lock.json']) copyFileSync(join(WANTED, file), join(fresh, file))
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']
    const { code, output } = await npm(['ci', ...flags], { cwd: fresh })
    if (code !== 0) throw new Error(output, { cause: code })
    // Another checkout may have been quicker.
    if (existsSync(INSTALLED)) rmSync(fresh, { recursive: true, force: true })
    else renameSync(fresh, INSTALLED)
  } catch (error) {
    rmSync(fresh, { recursive: true, force: true })
    giveUp(error.cause ?? error.code, error.message)
  } finally {
    clearInterval(heartbeat)
  }
  say(`fetched in ${seconds(started)}`)
}

function giveUp(code, output) {
  console.error(output.trimEnd().split('\n').slice(-12).join('\n').replace(/^/gm, '  | '))
  const noNetwork = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT|network/i.test(output)
  if (!noNetwork)
    fail(`the official MCP checkers could not be installed: npm ended with code ${code}`, 'The lines above are its last output.')
  fail(
    'the official MCP checkers could not be fetched: npm has no connection to its package source',
    `They are needed once; later runs take them from ${KEPT}.`,
    'Connect and run the command again, or copy that folder from a machine of the same kind.',
  )
}

function nodeOf(module) {
  const packaged = join(module(`node-${process.platform}-${process.arch}`), 'bin/node')
  const found = [packaged, process.execPath].find((path) => isNewEnough(path))
  if (found) return found
  return fail(
    `the official MCP checkers need Node.js ${NODE_NEEDED.join('.')}, and none is packaged for ${process.platform}-${process.arch}`,
    'Run this command with a Node.js of that version or newer.',
  )
}

function isNewEnough(node) {
  const { status, stdout } = spawnSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' })
  const [major, minor] = (stdout ?? '').split('.').map(Number)
  return status === 0 && (major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1]))
}
