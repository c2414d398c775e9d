// Bundles src/ into dist/. `--quiet` prints errors only.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'esbuild'
import { BUILD_STAMP, EXIT_ENTRY_MISSING, ROOT, say, seconds, sourceFingerprint } from './bootstrap.mjs'

const ENTRIES = { main: 'src/main.ts', 'db-worker': 'src/db/worker.ts' }
/**
 * Loaded from node_modules as they are: native code, workers of their own, or only with PostgreSQL. All others are bundled:
 * opening their some 504 files one by one took more than half of the time to the first answer.
 */
const LEFT_OUT = ['@photostructure/sqlite', 'pg', 'graphile-worker', 'pino']
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

let bundled
try {
  bundled = await build({
    absWorkingDir: ROOT,
    entryPoints: Object.fromEntries(Object.entries(ENTRIES).filter(([, file]) => !missing.includes(file))),
    outdir: fresh,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    splitting: true,
    plugins: [{ name: 'native-packages', setup: leaveOut }],
    // What was written for CommonJS asks for Node's own modules in its own way.
    banner: { js: `import { createRequire as createRequireHere } from 'node:module'; const require = createRequireHere(import.meta.url);` },
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    // Beside the entries: code in a chunk finds db-worker.js relative to itself.
    chunkNames: 'chunk-[hash]',
    logLevel: 'warning',
  })
} catch {
  process.exit(1)
}
writeFileSync(join(fresh, 'THIRD-PARTY-LICENSES.txt'), licencesOf(Object.keys(bundled.metafile.inputs)))
if (process.env.npm_lifecycle_event !== 'prepack') keepPreviousChunks()
if (missing.length === 0) writeFileSync(join(fresh, basename(BUILD_STAMP)), fingerprint)
if (existsSync(dist)) renameSync(dist, previous)
renameSync(fresh, dist)

if (!process.argv.includes('--quiet')) say(`built dist in ${seconds(started)}`)
if (missing.length > 0) process.exitCode = EXIT_ENTRY_MISSING

/** A daemon started from the previous build may not have loaded all its chunks yet; their names hold their hash. */
function keepPreviousChunks() {
  if (!existsSync(dist)) return
  for (const name of readdirSync(dist).filter((file) => CHUNK.test(file))) {
    const [from, to] = [join(dist, name), join(fresh, name)]
    if (existsSync(to) || Date.now() - statSync(from).mtimeMs > CHUNK_KEPT_MS) continue
    copyFileSync(from, to)
  }
}

function leaveOut({ onResolve }) {
  const names = LEFT_OUT.map((name) => name.replace('/', '\\/')).join('|')
  onResolve({ filter: new RegExp(`^(${names})(\\/|$)`) }, ({ path }) => ({ path, external: true }))
}

/** Their licences ask to go wherever their code goes. */
function licencesOf(files) {
  const folders = new Set(files.flatMap((file) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []))
  return [...folders]
    .sort()
    .map((folder) => {
      const names = readdirSync(join(ROOT, folder)).filter((name) => /^(licen[cs]e|notice)/i.test(name))
      const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8'))
      return [`${name} ${version} (${license})`, ...names.map((text) => readFileSync(join(ROOT, folder, text), 'utf8').trim())].join('\n\n')
    })
    .join('\n\n---\n\n')
}
