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
  /^(package\.json|package-lock\.json|npm-shrinkwrap\.json|\.npmrc|pnpm-lock\.yaml|pnpm-workspace\.yaml|\.pnpmfile\.c?js|yarn\.lock|\.yarnrc(\.yml)?|bun\.lockb?|bunfig\.toml|\.nvmrc|\.node-version|\.tool-versions|.*\.(tgz|tar\.gz|patch))$/
/** … and all below these. */
const DECIDES_BELOW = /(^|\/)(patches|\.yarn)\//
/** Scripts that a package manager runs of itself. They may read anything. */
const HOOKS = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish']
/** What these read is in the list above, or nothing that ends up in the packages. */
const HARMLESS = /^(husky( install)?|patch-package|lefthook install|simple-git-hooks)$/
/** A folder of the repository that is copied into the packages. Archives decide by themselves. */
const LOCAL = /"(file|link|portal):(?![^"]*\.(tgz|tar\.gz)")/
const PROGRAMS = ['node', 'python3']
const MOST_MANIFESTS = 500
const MOST_BYTES = 1_024 * 1_024

export async function keysOf(
  command: string,
  checkout: string,
  files: CommittedFile[],
  path: string | undefined,
): Promise<Keys | undefined> {
  const parts = command.split('&&').map((part) => part.trim())
  const all = (known: RegExp[]) => parts.every((part) => known.some((one) => one.test(part)))
  if (!all([...OF_NPM, ...OF_PYTHON]) || files.some((file) => HOLDS_PACKAGES.test(file.path))) return undefined
  const manifests = files.filter((file) => basename(file.path) === 'package.json')
  if (manifests.length > MOST_MANIFESTS) return undefined
  const free = all(OF_NPM) && (await Promise.all(manifests.map((file) => isPlain(join(checkout, file.path))))).every(Boolean)
  const deciding = free ? files.filter((file) => DECIDES.test(basename(file.path)) || DECIDES_BELOW.test(file.path)) : files
  const said = JSON.stringify([command, platform(), arch(), ...PROGRAMS.map((name) => programIn(path, name))])
  return { byFiles: hashOf(said, deciding), byTree: hashOf(`${said} and nothing else`, files) }
}

function hashOf(said: string, files: CommittedFile[]): string {
  const hash = createHash('sha256').update(said)
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) hash.update(`\0${file.path}\0${file.id}`)
  return hash.digest('hex').slice(0, 40)
}

/** Whether it names everything that its packages are made of. */
async function isPlain(manifest: string): Promise<boolean> {
  // A branch may have a link in its place, to a pipe or to a device.
  const handle = await open(manifest, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined)
  try {
    const kind = await handle?.stat()
    if (!handle || !kind?.isFile() || kind.size > MOST_BYTES) return false
    const text = (await handle.readFile()).toString('utf8')
    const { scripts = {} } = JSON.parse(text) as { scripts?: Record<string, unknown> }
    return !LOCAL.test(text) && HOOKS.every((name) => scripts[name] === undefined || HARMLESS.test(String(scripts[name]).trim()))
  } catch {
    return false
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
