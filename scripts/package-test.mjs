// Packs the product, installs the tarball in an empty folder as a user would, and runs it.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { ensureInstalled, npm, ROOT, run, seconds } from './bootstrap.mjs'

const MAX_BYTES = 5 * 1024 * 1024
const REQUIRED = [
  'package.json',
  'LICENSE',
  'README.md',
  'bin/signalbox.js',
  'dist/main.js',
  'dist/db-worker.js',
  'dist/runner.js',
  'dist/ui/index.html',
]
const FOREIGN = /^(src|test|scripts|bench|docs|node_modules)\/|\.test\.|\.tsx?$/

const { name, version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const problems = []
const work = mkdtempSync(join(tmpdir(), 'signalbox-package-'))
try {
  await ensureInstalled()
  const tarball = await pack()
  await checkContents(tarball)
  await checkInstalled(tarball)
} catch (error) {
  problems.push(error.message)
} finally {
  rmSync(work, { recursive: true, force: true })
}
for (const problem of problems) console.error(`package: ${problem}`)
process.exitCode = problems.length > 0 ? 1 : 0

/** Packs a copy, so that the checkout's own dist, from which a daemon may be running, stays as it is. */
async function pack() {
  const started = Date.now()
  const copy = join(work, 'checkout')
  const left = ['node_modules', 'dist', '.git', '.cache', 'coverage']
  cpSync(ROOT, copy, { recursive: true, filter: (from) => !left.some((folder) => from === join(ROOT, folder)) })
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'), 'dir')
  await must(npm(['pack', '--pack-destination', work], { cwd: copy }), 'npm pack')
  const tarball = readdirSync(work).find((file) => file.endsWith('.tgz'))
  if (!tarball) throw new Error('npm pack made no tarball')
  console.log(`packed ${tarball} in ${seconds(started)}`)
  return join(work, tarball)
}

async function checkContents(tarball) {
  const { size } = statSync(tarball)
  if (size > MAX_BYTES) problems.push(`the tarball has ${size} bytes; at most ${MAX_BYTES} are allowed`)
  const listing = await must(run('tar', ['-tzf', tarball], { capture: true }), 'tar')
  const files = listing
    .trim()
    .split('\n')
    .map((path) => path.replace(/^package\//, ''))
  for (const file of REQUIRED) if (!files.includes(file)) problems.push(`${file} is not in the tarball`)
  for (const file of files) if (FOREIGN.test(file)) problems.push(`${file} does not belong in the tarball`)
  console.log(`${basename(tarball)}: ${files.length} files, ${(size / 1024).toFixed(0)} KiB`)
}

async function checkInstalled(tarball) {
  const started = Date.now()
  const home = join(work, 'user')
  mkdirSync(home)
  writeFileSync(join(home, 'package.json'), '{ "private": true }\n')
  const flags = ['--ignore-scripts', '--omit=dev', '--no-audit', '--no-fund', '--prefer-offline']
  await must(npm(['install', ...flags, tarball], { cwd: home }), 'npm install of the tarball')
  console.log(`installed in ${seconds(started)}`)
  if (existsSync(join(home, 'node_modules', 'vitest'))) problems.push('development packages were installed with it')

  const npx = (...args) => npm(['exec', '--offline', '--', name, ...args], { cwd: home })
  const help = await must(npx('--help'), `npx ${name} --help`)
  if (!/usage/i.test(help)) problems.push(`npx ${name} --help prints no usage:\n${help}`)
  const printed = await must(npx('--version'), `npx ${name} --version`)
  if (!printed.split(/\s+/).includes(version)) problems.push(`npx ${name} --version does not print ${version}:\n${printed}`)

  // Install scripts did not run: the database must work from what the tarballs carry.
  const probe = `import('@photostructure/sqlite').then(({ DatabaseSync }) => new DatabaseSync(':memory:').exec('SELECT 1'))`
  await must(run(process.execPath, ['-e', probe], { cwd: home, capture: true }), 'opening a database without install scripts')
}

async function must(result, what) {
  const { code, output } = await result
  if (code !== 0) throw new Error(`${what} ended with code ${code}\n${output.trimEnd()}`)
  return output
}
