// Bundles src/ into dist/. `--quiet` prints errors only.
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, relative } from 'node:path'
import { build } from 'esbuild'
import { BUILD_STAMP, EXIT_ENTRY_MISSING, pagesFingerprint, ROOT, readIfThere, say, seconds, sourceFingerprint } from './bootstrap.mjs'

const ENTRIES = {
  main: 'src/main.ts',
  'db-worker': 'src/db/worker.ts',
  runner: 'src/runner/main.ts',
  'git-starter': 'src/adapters/git-cli/starter-main.ts',
  'scripted-agent': 'src/adapters/scripted/agent.ts',
}
// Native, or only loaded on PostgreSQL, or with threads of its own, or CommonJS that requires modules of Node's own (yaml: every
// `repo add` with a .signalbox.yaml failed). All else goes into dist: half of a short command's life would be
// spent looking for hundreds of small files (docs/decisions/0011).
const STAY_OUTSIDE = ['@photostructure/sqlite', 'pg', 'graphile-worker', 'pino', 'yaml']
// Read and run at every start, and never asked for: zod's messages in fifty languages, and the check of an answer that a person gave to
// the MCP server, which asks nobody here.
const LEFT_OUT = [
  { filter: /zod\/v4\/locales\/index\.js$/, contents: 'export {}' },
  {
    filter: /@modelcontextprotocol\/server\/dist\/shimsNode\.mjs$/,
    contents: `export { default as process } from 'node:process'
      export class DefaultJsonSchemaValidator { getValidator() { throw new Error('this build checks no JSON Schema') } }`,
  },
]
const CHUNK = /^chunk-[A-Z0-9]+\.js(\.map)?$/
const CHUNK_KEPT_MS = 7 * 24 * 3600 * 1000

const started = Date.now()
const dist = join(ROOT, 'dist')
// In .cache, on the same disk as dist, so that the finished folder moves into place in one step.
const fresh = join(ROOT, '.cache', `build-${process.pid}`)
const previous = join(ROOT, '.cache', `previous-${process.pid}`)

const missing = Object.values(ENTRIES).filter((file) => !existsSync(join(ROOT, file)))
for (const file of missing) console.error(`build: ${file} does not exist, so its part of dist was left out`)

// Taken before the build: a file saved while it runs makes the next run build again.
const fingerprint = sourceFingerprint()
mkdirSync(join(ROOT, '.cache'), { recursive: true })
process.on('exit', () => {
  for (const folder of [fresh, previous]) rmSync(folder, { recursive: true, force: true })
})

let built
try {
  await buildPages()
  built = await build({
    absWorkingDir: ROOT,
    entryPoints: Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => !missing.includes(file))),
    outdir: fresh,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    splitting: true,
    external: STAY_OUTSIDE,
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    plugins: [{ name: 'left-out', setup: leaveOut }],
    // Beside the entries: code in a chunk finds db-worker.js relative to itself.
    chunkNames: 'chunk-[hash]',
    logLevel: 'warning',
  })
} catch (error) {
  console.error(error.message)
  process.exit(1)
}
writeFileSync(join(fresh, 'THIRD-PARTY.txt'), licences(Object.keys(built.metafile.inputs)))
if (process.env.npm_lifecycle_event !== 'prepack') keepPreviousChunks()
if (missing.length === 0) writeFileSync(join(fresh, basename(BUILD_STAMP)), fingerprint)
if (existsSync(dist)) renameSync(dist, previous)
renameSync(fresh, dist)

if (!process.argv.includes('--quiet')) say(`built dist in ${seconds(started)}`)
if (missing.length > 0) process.exitCode = EXIT_ENTRY_MISSING

/** The dashboard, unless the one in dist is made from the same files: that takes longer than all the rest. */
async function buildPages() {
  const [from, to] = [join(dist, 'ui'), join(fresh, 'ui')]
  const stamp = pagesFingerprint()
  if (readIfThere(join(from, '.stamp')) === stamp) return cpSync(from, to, { recursive: true })
  const vite = await import('vite')
  const { output } = await vite.build({ configFile: join(ROOT, 'src/ui/vite.config.ts'), build: { outDir: to }, logLevel: 'warn' })
  const modules = output.flatMap((chunk) => chunk.moduleIds ?? []).map((file) => relative(ROOT, file.replaceAll('\0', '')))
  writeFileSync(join(to, 'THIRD-PARTY.txt'), licences([...modules, 'node_modules/@fontsource-variable/inter/']))
  writeFileSync(join(to, '.stamp'), stamp)
}

/** A file that is no longer found there was moved by its package: the build fails then, or every start would be slower unseen. */
function leaveOut(building) {
  const missed = new Set(LEFT_OUT)
  for (const part of LEFT_OUT)
    building.onLoad({ filter: part.filter }, () => {
      missed.delete(part)
      return { contents: part.contents }
    })
  building.onEnd(() => ({ errors: [...missed].map(({ filter }) => ({ text: `nothing to leave out at ${filter}` })) }))
}

/** A daemon started from the previous build may not have loaded all its chunks yet; their names hold their hash. */
function keepPreviousChunks() {
  if (!existsSync(dist)) return
  for (const name of readdirSync(dist).filter((file) => CHUNK.test(file))) {
    const [from, to] = [join(dist, name), join(fresh, name)]
    if (existsSync(to) || Date.now() - statSync(from).mtimeMs > CHUNK_KEPT_MS) continue
    copyFileSync(from, to)
  }
}

/** Their licences ask that their text goes wherever their code goes. */
function licences(inputs) {
  const folders = new Set(inputs.flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []))
  return [...folders].sort().map(licence).join('\n\n')
}

function licence(folder) {
  const { name, version } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
  const file = readdirSync(join(ROOT, folder)).find((entry) => /^licen[cs]e/i.test(entry))
  if (!file) throw new Error(`${folder} has no licence text, so its code cannot go into dist`)
  return `${name} ${version}\n\n${readFileSync(join(ROOT, folder, file), 'utf8').trim()}`
}
