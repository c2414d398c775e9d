// `npm run bench`: every figure beside its limit, measured in the same run; writes docs/performance.md.
//
//   npm run bench                       the whole table
//   npm run bench -- --quick            short rounds: a smoke run, writes nothing
//   npm run bench -- --only read        one family of rows, the others stay as they are: boot, read, write, mail, wait, stream, stdio, runs,
//                                       setup, line, growth
//   npm run bench -- --engine sqlite    one engine
//   npm run bench -- --json             the rows as JSON on stdout
//   npm run bench -- --profile folder   keep a CPU profile of each daemon there; the figures are then not worth much
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { bootstrap, ROOT, run } from '../scripts/bootstrap.mjs'

await bootstrap({ node: '20.19.0' })
const here = fileURLToPath(new URL('.', import.meta.url))
const servers = readdirSync(join(here, 'servers')).map((name) => `bench/servers/${name}`)
// Two folders deep, like the sources: they find bin/ and each other by their own place.
const outdir = join(ROOT, '.cache', 'bench')
const common = { absWorkingDir: ROOT, bundle: true, platform: 'node', format: 'esm', target: 'node20', packages: 'external', outdir }
await build({ ...common, entryPoints: ['bench/main.ts', ...servers], entryNames: '[name]', logLevel: 'warning' })
const { code } = await run(process.execPath, [join(outdir, 'main.js'), ...process.argv.slice(2)])
process.exitCode = code
