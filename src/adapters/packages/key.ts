import { createHash } from 'node:crypto'
import { constants, realpathSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import type { CommittedFile, Keys } from '../../ports/packages.ts'

/**
 * Commands that install packages and do nothing else, so that their result may stand in their place. Whatever else a setup does, such as
 * making a database, has to happen for every checkout.
 */
const FLAG = '--?[\\w-]+(=[\\w@%+:,./-]+)?'
const commandOf = (words: string) => new RegExp(`^${words}$`)
/** Of a folder of the repository that has packages of its own. */
const FOLDER = '--prefix (?!/)(?!\\S*\\.\\.)[\\w@+./-]+'
const OF_NPM = [commandOf(`npm (ci|install|i)( ${FLAG}| ${FOLDER})*`), commandOf(`(pnpm|yarn|bun) (install|i)( ${FLAG})*`)]
const OF_PYTHON = [
  commandOf(`uv sync( ${FLAG})*`),
  commandOf(`(POETRY_VIRTUALENVS_IN_PROJECT=true )?poetry install( ${FLAG})*`),
  commandOf('python3? -m venv \\.?venv'),
  commandOf(`\\.?venv/bin/pip install( ${FLAG}| [\\w@+:,./*-]+\\.(txt|whl))*`),
]
/** A file of the repository there is part of what is installed, or would be overwritten by it. */
const HOLDS_PACKAGES = /(^|\/)(node_modules|\.?venv)\//

/** Files that package managers read, by name, wherever they stand. */
const DECIDES =
  /^(package\.(json5?|yaml)|package-lock\.json|npm-shrinkwrap\.json|\.npmrc|pnpm-lock\.yaml|pnpm-workspace\.yaml|\.pnpmfile\.[cm]?js|yarn\.lock|\.yarnrc(\.yml)?|bun\.lockb?|bunfig\.toml|\.nvmrc|\.node-version|\.tool-versions|.*\.(tgz|tar\.gz|patch))$/
/** … and all below these. */
const DECIDES_BELOW = /(^|\/)(patches|\.yarn)\//
/** Scripts that a package manager runs of itself. They may read anything. */
const HOOKS = ['install', 'prepare', 'prepublish', 'dependencies'].flatMap((name) => [`pre${name}`, name, `post${name}`])
const SCRIPTS = [...HOOKS, 'pnpm:devPreinstall']
/** What these read is in the list above, or nothing that ends up in the packages. */
const HARMLESS = /^(husky( install)?|patch-package|lefthook install|simple-git-hooks)$/
/** A folder of the repository that is copied into the packages. Archives decide by themselves. */
const LOCAL = /^((file|link|portal):|\.{0,2}\/|~\/)(?!.*\.(tgz|tar\.gz)$)/
/** … as pnpm does with one of its workspaces. */
const INJECTED = /inject-?workspace-?packages/i
const SETTINGS = /^(\.npmrc|pnpm-workspace\.yaml)$/
/** Code, which may read anything. */
const CODE = /^\.pnpmfile\.[cm]?js$/
const MANIFEST = /^package\.(json5?|yaml)$/
const DEPENDENCIES = ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies', 'overrides', 'resolutions', 'pnpm']
const PROGRAMS = ['node', 'python3']
const MOST_MANIFESTS = 500
const MOST_BYTES = 1_024 * 1_024
const MOST_COPIED = 32 * 1_024 * 1_024

export async function keysOf(
  command: string,
  checkout: string,
  files: CommittedFile[],
  brought: string[],
  path: string | undefined,
): Promise<Keys | undefined> {
  const parts = command.split('&&').map((part) => part.trim())
  const all = (known: RegExp[]) => parts.every((part) => known.some((one) => one.test(part)))
  if (!all([...OF_NPM, ...OF_PYTHON]) || files.some((file) => HOLDS_PACKAGES.test(file.path))) return undefined
  if (files.filter((file) => MANIFEST.test(basename(file.path))).length > MOST_MANIFESTS) return undefined
  const free = all(OF_NPM) && (await Promise.all(files.map((file) => isPlain(checkout, file.path)))).every(Boolean)
  const copies = await Promise.all(brought.map(async (one) => ({ path: one, id: `copied ${await contentOf(join(checkout, one))}` })))
  // A script of any package may have put something of these into the packages: their names always count.
  const named = copies.map((copy) => (decides(copy) ? copy : { ...copy, id: 'copied' }))
  const deciding = free ? [...files.filter(decides), ...named] : [...files, ...copies]
  const said = JSON.stringify([command, platform(), arch(), ...PROGRAMS.map((name) => programIn(path, name))])
  return { byFiles: hashOf(said, deciding), byTree: hashOf(`${said} and nothing else`, [...files, ...copies]) }
}

function decides({ path }: CommittedFile): boolean {
  return DECIDES.test(basename(path)) || DECIDES_BELOW.test(path)
}

async function contentOf(copy: string): Promise<string> {
  return createHash('sha256')
    .update((await plainFile(copy, MOST_COPIED)) ?? '')
    .digest('hex')
}

function hashOf(said: string, files: CommittedFile[]): string {
  const hash = createHash('sha256').update(said)
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) hash.update(`\0${file.path}\0${file.id}`)
  return hash.digest('hex').slice(0, 40)
}

/** Whether it names everything that its packages are made of; so does whatever is no manifest. */
async function isPlain(checkout: string, path: string): Promise<boolean> {
  const name = basename(path)
  if (CODE.test(name)) return false
  const isManifest = MANIFEST.test(name)
  if (!isManifest && !SETTINGS.test(name)) return true
  const text = (await plainFile(join(checkout, path), MOST_BYTES))?.toString('utf8')
  if (text === undefined) return false
  return isManifest ? isPlainManifest(text) : !INJECTED.test(text)
}

function isPlainManifest(text: string): boolean {
  try {
    const manifest = JSON.parse(text) as Record<string, Record<string, unknown> | undefined>
    const { scripts = {}, dependenciesMeta = {} } = manifest
    const depended = DEPENDENCIES.flatMap((name) => textsIn(manifest[name]))
    const isInjected = JSON.stringify(dependenciesMeta).includes('"injected":true')
    const runs = SCRIPTS.some((name) => scripts[name] !== undefined && !HARMLESS.test(String(scripts[name]).trim()))
    return !runs && !isInjected && !depended.some((one) => LOCAL.test(one))
  } catch {
    return false
  }
}

/** Also those of overrides, which have more of them inside. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

/** A branch may have a link in its place, to a pipe or to a device. */
async function plainFile(path: string, mostBytes: number): Promise<Buffer | undefined> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  try {
    const kind = await handle?.stat()
    return handle && kind?.isFile() && kind.size <= mostBytes ? await handle.readFile() : undefined
  } finally {
    await handle?.close()
  }
}

/** Another version makes other packages: what is compiled fits one only. */
function programIn(path: string | undefined, name: string): string {
  for (const folder of (path ?? '').split(delimiter)) {
    try {
      const real = realpathSync(join(folder, name))
      const { size, mtimeMs } = statSync(real)
      return `${real} ${size} ${mtimeMs}`
    } catch {
      // The next one.
    }
  }
  return ''
}
