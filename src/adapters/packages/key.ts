import { createHash } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import type { CommittedFile, Keys } from '../../ports/packages.ts'

/**
 * Commands that install packages and do nothing else, so that their result may stand in their place. Whatever else a setup does, such as
 * making a database, has to happen for every checkout.
 */
const INSTALLS = [
  /^npm (ci|install|i)( --?[\w-]+(=\S+)?)*$/,
  /^(CI=\w+ )?(pnpm|yarn|bun) (install|i)( --?[\w-]+(=\S+)?)*$/,
  /^uv sync( --?[\w-]+(=\S+)?)*$/,
  /^(POETRY_VIRTUALENVS_IN_PROJECT=true )?poetry install( --?[\w-]+(=\S+)?)*$/,
  /^python3? -m venv \.?venv$/,
  /^\.?venv\/bin\/pip install( --?[\w-]+(=\S+)?| \S+\.(txt|whl))*$/,
  /^BUNDLE_PATH=vendor\/bundle bundle install$/,
  /^composer install( --?[\w-]+(=\S+)?)*$/,
]

/** Files that package managers read, by name, wherever they stand. */
const DECIDES =
  /^(package\.json|package-lock\.json|npm-shrinkwrap\.json|\.npmrc|pnpm-lock\.yaml|pnpm-workspace\.yaml|\.pnpmfile\.c?js|yarn\.lock|\.yarnrc(\.yml)?|bun\.lockb?|bunfig\.toml|\.nvmrc|\.node-version|\.tool-versions|pyproject\.toml|uv\.(lock|toml)|poetry\.(lock|toml)|setup\.(py|cfg)|.*requirements.*\.(txt|in)|constraints.*\.txt|\.python-version|Gemfile(\.lock)?|.*\.gemspec|composer\.(json|lock)|schema\.prisma|.*\.(whl|tgz|tar\.gz|gem|patch))$/
/** … and all below these. */
const DECIDES_BELOW = /(^|\/)(patches|\.yarn)\//
/** Scripts that a package manager runs of itself. They may read anything. */
const HOOKS = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish']
/** What these read is in the list above, or nothing that ends up in the packages. */
const HARMLESS = /^(husky( install)?|patch-package|prisma generate|lefthook install|simple-git-hooks)$/
const PROGRAMS = ['node', 'python3', 'ruby', 'php']
const MOST_MANIFESTS = 500

export async function keysOf(
  command: string,
  checkout: string,
  files: CommittedFile[],
  path: string | undefined,
): Promise<Keys | undefined> {
  if (!command.split('&&').every((part) => INSTALLS.some((known) => known.test(part.trim())))) return undefined
  const manifests = files.filter((file) => basename(file.path) === 'package.json')
  if (manifests.length > MOST_MANIFESTS) return undefined
  const hooked = await Promise.all(manifests.map((file) => runsScripts(join(checkout, file.path))))
  const deciding = hooked.includes(true)
    ? files
    : files.filter((file) => DECIDES.test(basename(file.path)) || DECIDES_BELOW.test(file.path))
  const said = JSON.stringify([command, platform(), arch(), ...PROGRAMS.map((name) => programIn(path, name))])
  return { byFiles: hashOf(said, deciding), byTree: hashOf(`${said} and nothing else`, files) }
}

function hashOf(said: string, files: CommittedFile[]): string {
  const hash = createHash('sha256').update(said)
  for (const file of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) hash.update(`\0${file.path}\0${file.id}`)
  return hash.digest('hex').slice(0, 40)
}

async function runsScripts(manifest: string): Promise<boolean> {
  try {
    const { scripts = {} } = JSON.parse(await readFile(manifest, 'utf8')) as { scripts?: Record<string, unknown> }
    return HOOKS.some((name) => scripts[name] !== undefined && !HARMLESS.test(String(scripts[name]).trim()))
  } catch {
    return true
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
