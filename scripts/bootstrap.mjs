// Brings a checkout to the point where it can run: right Node, git, packages installed, dist built.
// Plain Node with nothing installed: this runs before node_modules exists.
//
//   node scripts/bootstrap.mjs           everything
//   node scripts/bootstrap.mjs --built   only rebuild dist when it is stale
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))
export const BUILD_STAMP = 'dist/.build-stamp'
/** scripts/build.mjs exits with this when an entry file does not exist and the others were built. */
export const EXIT_ENTRY_MISSING = 3

export async function bootstrap({ node = '20.19.0' } = {}) {
  requireNode(node)
  requireGit()
  await ensureInstalled()
  await ensureBuilt()
}

export function requireNode(wanted) {
  if (compareVersions(process.versions.node, wanted) >= 0) return
  fail(
    `Node.js ${wanted} or newer is needed; this is ${process.version} (${process.execPath})`,
    'Install a current Node.js (20, 22 or 24), for example with `nvm install 22`, and run the command again.',
  )
}

export function requireGit() {
  if (spawnSync('git', ['--version'], { stdio: 'ignore' }).status === 0) return
  fail('git was not found', 'Install git (`apt-get install git`, `brew install git`), and run the command again.')
}

export async function ensureInstalled() {
  const state = installState()
  if (state === 'current') return
  if (!existsSync(join(ROOT, 'package-lock.json'))) {
    fail('package-lock.json is missing', 'Restore it with `git checkout package-lock.json`, and run the command again.')
  }
  const started = Date.now()
  say(state === 'missing' ? 'installing packages (first run)…' : `installing packages (${state})…`)
  const heartbeat = setInterval(() => say(`still installing (${seconds(started)})…`), 15_000)

  // Nothing here needs an install script: every native part comes prebuilt. npm 12 would block them anyway.
  // --include=dev: with NODE_ENV=production npm would leave out the tools that build dist.
  const flags = ['--ignore-scripts', '--include=dev', '--no-audit', '--no-fund', '--prefer-offline']
  let result = await npm(['ci', ...flags])
  if (/\bEUSAGE\b/.test(result.output)) {
    say('package.json and package-lock.json disagree; going on with `npm install`')
    say('to repair them: `npm install --ignore-scripts && node scripts/lockfile.mjs --fix`')
    result = await npm(['install', '--no-save', ...flags])
  }
  clearInterval(heartbeat)
  if (result.code !== 0) failInstall(result)
  say(`packages installed in ${seconds(started)}`)
}

export async function ensureBuilt() {
  const stamp = readIfThere(join(ROOT, BUILD_STAMP))
  if (stamp !== undefined && stamp === sourceFingerprint()) return
  say(stamp === undefined ? 'building…' : 'building (sources changed)…')
  const started = Date.now()
  const { code } = await run(process.execPath, ['scripts/build.mjs', '--quiet'])
  if (code === EXIT_ENTRY_MISSING) process.exit(EXIT_ENTRY_MISSING)
  if (code !== 0) fail('the build failed', 'The error is above. When it is fixed, run the command again.')
  say(`built in ${seconds(started)}`)
}

/** What dist is made from: equal fingerprints mean an equal build. */
export function sourceFingerprint() {
  return fingerprint(sources(), ['scripts/build.mjs', 'package.json', 'package-lock.json'])
}

/** The part of it that the dashboard is made from: of everything else it has only types. */
export function pagesFingerprint() {
  const ofPages = (file) => /^src\/(ui\/|capabilities\/[^/]+\/panel[./])/.test(file)
  return fingerprint(sources().filter(ofPages), ['package-lock.json'])
}

function sources() {
  return readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath ?? entry.path, entry.name).slice(ROOT.length))
    .sort()
}

function fingerprint(files, more) {
  const hash = createHash('sha256')
  for (const file of [...files, ...more]) {
    const content = readFileSync(join(ROOT, file))
    hash.update(`${file}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex')
}

/**
 * Runs a command in the checkout. Resolves when it has ended, never rejects: a command that cannot be started has code 127.
 * A SIGTERM meanwhile ends the command, then this process.
 * @returns {Promise<{ code: number, output: string }>} `output` is filled only with `capture`
 */
export function run(command, args, { capture = false, env = process.env, cwd = ROOT } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env, stdio: capture ? ['ignore', 'pipe', 'pipe'] : 'inherit' })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text) => (output += text))
    const stop = () => {
      child.once('close', () => process.exit(143))
      child.kill('SIGTERM')
    }
    process.once('SIGTERM', stop)
    const end = (code) => {
      process.off('SIGTERM', stop)
      resolve({ code, output })
    }
    child.on('error', (error) => {
      output += `${command}: ${error.message}`
      end(127)
    })
    child.on('close', (code, signal) => end(code ?? (signal === 'SIGINT' ? 130 : 143)))
  })
}

export function npm(args, options) {
  // Under `npm start` this is the npm the user called, even when PATH has another one or none.
  const cli = process.env.npm_execpath
  const [command, first] = cli && basename(cli) === 'npm-cli.js' ? [process.execPath, [cli]] : ['npm', []]
  return run(command, [...first, ...args], { capture: true, ...options })
}

export function say(message) {
  console.error(`signalbox: ${message}`)
}

export function fail(message, ...next) {
  console.error([`signalbox: ${message}`, ...next.map((line) => `  ${line}`)].join('\n'))
  process.exit(1)
}

export function seconds(since) {
  return `${((Date.now() - since) / 1000).toFixed(1)} s`
}

/**
 * 'current', or why not. npm writes node_modules/.package-lock.json as the last act of an install, so an interrupted
 * install has none, and it stays true when somebody runs npm by hand, which a stamp of our own would not.
 */
function installState() {
  const installed = lockedPackages('node_modules/.package-lock.json')
  if (!installed) return existsSync(join(ROOT, 'node_modules')) ? 'an earlier install did not finish' : 'missing'
  const wanted = lockedPackages('package-lock.json') ?? {}
  const here = (entry) => (entry.os?.includes(process.platform) ?? true) && (entry.cpu?.includes(process.arch) ?? true)
  if (!Object.values(installed).every(here)) return 'node_modules is from another kind of machine'
  const same = ([path, entry]) => path === '' || entry.optional || entry.devOptional || entry.version === installed[path]?.version
  return Object.entries(wanted).every(same) ? 'current' : 'package-lock.json changed'
}

function lockedPackages(path) {
  const text = readIfThere(join(ROOT, path))
  return text === undefined ? undefined : JSON.parse(text).packages
}

function failInstall({ code, output }) {
  const tail = output
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('npm warn'))
    .slice(-12)
  if (tail.length > 0) console.error(tail.map((line) => `  | ${line}`).join('\n'))
  if (code === 127) {
    fail('npm was not found', 'npm comes with Node.js: install Node.js 20, 22 or 24 with npm, and run the command again.')
  }
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED|ERR_SOCKET_TIMEOUT|network/i.test(output)) {
    fail(
      'the packages could not be fetched: npm has no connection to its package source',
      'The first run needs the network once; later runs do not.',
      'Connect (behind a proxy: `npm config set proxy http://host:port`), and run the command again.',
      'Without a network: copy node_modules here from the same checkout on a machine of the same kind.',
    )
  }
  if (/EACCES|EPERM|EROFS/.test(output))
    fail(`npm may not write in ${ROOT}`, 'Make the folder writable for this user, and run the command again.')
  if (/ENOSPC/.test(output)) fail('the disk is full', 'Packages take about 300 MB: make room, and run the command again.')
  fail(`npm ended with code ${code}`, 'The lines above are its last output. Try `npm ci --ignore-scripts` by hand to see all of it.')
}

export function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
    throw error
  }
}

function compareVersions(a, b) {
  const [left, right] = [a, b].map((version) => version.split('.').map(Number))
  const at = left.findIndex((part, index) => part !== right[index])
  return at === -1 ? 0 : left[at] - right[at]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await (process.argv.includes('--built') ? ensureBuilt() : bootstrap())
}
