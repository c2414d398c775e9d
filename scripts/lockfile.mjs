// Keeps package-lock.json usable by `npm ci` on every machine.
//
//   node scripts/lockfile.mjs         report what is wrong
//   node scripts/lockfile.mjs --fix   put it right
//   node scripts/lockfile.mjs --fix test/conformance/tools/package-lock.json   another one
//
// npm leaves a platform's optional package out of the lockfile when the package source it was written against does
// not carry that package, and then `npm ci` refuses the lockfile everywhere. It may also write the address of the
// package source into every entry, which pins everybody to that source.
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const CALLED = process.argv[1] === fileURLToPath(import.meta.url)
const LOCKFILE =
  (CALLED && process.argv.slice(2).find((word) => !word.startsWith('--'))) ||
  fileURLToPath(new URL('../package-lock.json', import.meta.url))

/** @returns {string[]} one line per problem, empty when the lockfile is good */
export function lockfileProblems(text = readFileSync(LOCKFILE, 'utf8')) {
  const { packages } = JSON.parse(text)
  return [
    ...missingOptional(packages).map(
      ({ name, version, wantedBy }) => `${name}@${version} (wanted by ${wantedBy}) is not in package-lock.json`,
    ),
    ...Object.keys(packages)
      .filter((path) => packages[path].resolved && !packages[path].link)
      .map((path) => `${path} names the server it was fetched from`),
  ]
}

function fix() {
  const lock = JSON.parse(readFileSync(LOCKFILE, 'utf8'))
  const missing = missingOptional(lock.packages)
  for (const { name, version, dev } of missing) {
    const { cpu, libc, os } = platformOf(name)
    // In npm's own order of keys; JSON leaves out the undefined ones.
    lock.packages[`node_modules/${name}`] = { version, cpu, dev: dev || undefined, libc, optional: true, os }
  }
  for (const entry of Object.values(lock.packages)) if (!entry.link) delete entry.resolved
  const [root, ...rest] = Object.entries(lock.packages)
  lock.packages = Object.fromEntries([root, ...rest.sort(([a], [b]) => a.localeCompare(b, 'en'))])
  writeFileSync(LOCKFILE, `${JSON.stringify(lock, null, 2)}\n`)
  return missing.length
}

function missingOptional(packages) {
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.entries(entry.optionalDependencies ?? {})
      .filter(([name]) => !packages[`node_modules/${name}`] && !packages[`${path}/node_modules/${name}`])
      // A range cannot be turned into an entry without asking the package source; every platform package is pinned.
      .filter(([, version]) => /^\d+\.\d+\.\d+[\w.-]*$/.test(version))
      .map(([name, version]) => ({
        name,
        version,
        dev: Boolean(entry.dev),
        wantedBy: path.replace(/^.*node_modules\//, '') || 'package.json',
      })),
  )
}

/** `os`, `cpu` and `libc` from a name like `@scope/binding-linux-x64-musl`: without them npm would fetch every platform. */
function platformOf(name) {
  const words = name.split(/[/-]/)
  const pick = (known) => known.filter((word) => words.includes(word)).slice(0, 1)
  const os = pick(['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32'])
  const cpu = pick(['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'])
  const libc = words.includes('musl') ? ['musl'] : words.some((word) => word.startsWith('gnu')) ? ['glibc'] : []
  const orAbsent = (list) => (list.length > 0 ? list : undefined)
  return { os: orAbsent(os), cpu: orAbsent(cpu), libc: orAbsent(libc) }
}

if (CALLED) {
  if (process.argv.includes('--fix')) console.log(`package-lock.json: ${fix()} platform packages added`)
  const problems = lockfileProblems()
  for (const problem of problems) console.error(`package-lock.json: ${problem}`)
  if (problems.length > 0) {
    console.error('package-lock.json: run `node scripts/lockfile.mjs --fix` and commit the result')
    process.exit(1)
  }
  console.log('package-lock.json: complete')
}
