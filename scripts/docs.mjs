// `npm run docs`: writes the reference under docs/ from the declarations in src/.
//
//   node scripts/docs.mjs           write what has changed, remove what is no longer generated
//   node scripts/docs.mjs --check   only say what differs
//   node scripts/docs.mjs FOLDER    another folder than docs
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureInstalled, ROOT, requireNode } from './bootstrap.mjs'

const CALLED = process.argv[1] === fileURLToPath(import.meta.url)
const DOCS = join(ROOT, 'docs')
/** Nothing but generated files: one that no tool has any more is left over. */
const WHOLLY_GENERATED = ['schemas']

const GENERATE = `
  import { capabilities } from './src/capabilities/index.ts'
  import { dialects } from './src/dialects/index.ts'
  import { Registry } from './src/kernel/registry.ts'
  import { docs } from './src/surfaces/docs.ts'
  import { dialectParts } from './src/surfaces/docs/dialects.ts'
  import { version } from './package.json'
  const registry = new Registry(capabilities, dialects)
  export const files = docs(registry, version)
  export const parts = dialectParts(registry)
`
/** A page that is written by hand has its generated part between these lines. */
const BEGIN = '<!-- Written by `npm run docs` from the declarations in `src`; change those, then run it again. -->'
const END = '<!-- end -->'

/** @returns {Promise<{ path: string, text: string | undefined, problem: string }[]>} what differs; `text` undefined: should not be there */
export async function docsDrift(folder = DOCS) {
  const { files: whole, parts } = await generate()
  const files = { ...whole, ...withRest(parts, folder) }
  const leftOver = WHOLLY_GENERATED.flatMap((name) => list(folder, name)).filter((path) => !Object.hasOwn(files, path))
  return [
    ...Object.entries(files).flatMap(([path, text]) => {
      const file = join(folder, path)
      if (!existsSync(file)) return { path, text, problem: 'is missing' }
      return readFileSync(file, 'utf8') === text ? [] : { path, text, problem: 'is not what the source says' }
    }),
    ...leftOver.map((path) => ({ path, text: undefined, problem: 'is of nothing that the source declares' })),
  ]
}

export function writeDocs(drift, folder = DOCS) {
  for (const { path, text } of drift) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    if (text === undefined) rmSync(file)
    else writeFileSync(file, text)
  }
}

/** The bundle stands inside the checkout for the moment of its import: packages are found from there. */
async function generate() {
  const { build } = await import('esbuild')
  const bundle = join(ROOT, '.cache', `docs-${process.pid}.mjs`)
  try {
    await build({
      stdin: { contents: GENERATE, resolveDir: ROOT },
      absWorkingDir: ROOT,
      outfile: bundle,
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      packages: 'external',
      logLevel: 'warning',
    })
    return await import(pathToFileURL(bundle).href)
  } finally {
    rmSync(bundle, { force: true })
  }
}

/** What is written by hand around a part stays as it is. */
function withRest(parts, folder) {
  const around = new RegExp(`^([\\s\\S]*?)${BEGIN}\n[\\s\\S]*?${END}\n([\\s\\S]*)$`)
  const pages = Object.entries(parts).map(([path, part]) => {
    const file = join(folder, path)
    const page = existsSync(file) ? readFileSync(file, 'utf8') : ''
    const [, before, after] = around.exec(page) ?? ['', page, '']
    return [path, `${before}${BEGIN}\n\n${part}\n\n${END}\n${after}`]
  })
  return Object.fromEntries(pages)
}

function list(folder, name) {
  return existsSync(join(folder, name)) ? readdirSync(join(folder, name)).map((file) => `${name}/${file}`) : []
}

if (CALLED) {
  requireNode('20.12.0')
  await ensureInstalled()
  const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true })
  const folder = resolve(positionals[0] ?? DOCS)
  const drift = await docsDrift(folder)
  for (const { path, problem } of drift) console.log(`docs/${path} ${problem}`)
  if (!values.check) {
    writeDocs(drift, folder)
    console.log(drift.length > 0 ? `docs: ${drift.length} files changed` : 'docs: up to date')
  } else if (drift.length > 0) {
    console.error('docs: run `npm run docs` and commit the result')
    process.exitCode = 1
  }
}
