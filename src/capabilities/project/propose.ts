import type { z } from 'zod'
import type { Git } from '../../ports/git.ts'
import { shellWord } from '../shell-word.ts'
import { CONFIG, MOST_BYTES, NEEDS, type Needs, readConfig } from './config.ts'
import type { ProposalView } from './schema.ts'
import { Patterns } from './words.ts'

const YARN = 'yarn install --immutable'
const OLD_YARN = 'yarn install --frozen-lockfile'
const BUN = 'bun install --frozen-lockfile --backend=copyfile'

/**
 * By a file at the top of a repository: how what it names is installed. The first one of a group decides. Never by hard links into a store
 * of the user's: whoever edits a package in one worktree would edit it in all.
 */
const BY_FILE: [file: string, command: string][][] = [
  [
    ['pnpm-lock.yaml', 'pnpm install --frozen-lockfile --package-import-method=clone-or-copy'],
    ['bun.lock', BUN],
    ['bun.lockb', BUN],
    ['yarn.lock', YARN],
    ['package-lock.json', 'npm ci'],
    ['npm-shrinkwrap.json', 'npm ci'],
  ],
  [
    ['uv.lock', 'uv sync --frozen --link-mode=copy'],
    ['poetry.lock', 'POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction'],
    ['requirements.txt', 'python3 -m venv .venv && .venv/bin/pip install -r requirements.txt'],
  ],
  [['Gemfile.lock', 'BUNDLE_PATH=vendor/bundle bundle install']],
  [['go.mod', 'go mod download']],
  [['Cargo.lock', 'cargo fetch --locked']],
  [['composer.lock', 'composer install --no-interaction']],
]

const MOST_FILES = 20
/** What is set for one machine. Those that git carries are no copies to make. */
const ENV_FILES = ['.env', '.env.*']

export type Proposal = z.output<typeof ProposalView>

interface Found extends Omit<Proposal, 'because'> {
  /** The files that suggest it, for each. */
  because: Record<keyof Needs, string[]>
}

/** What a fresh checkout of this commit seems to need. It holds only when a person says so. */
export async function proposalAt(git: Pick<Git, 'topOf' | 'textOf' | 'ignoredIn'>, repo: string, commit: string): Promise<Found> {
  const names = new Set(await git.topOf(repo, commit))
  const config = names.has(CONFIG) ? await readConfig(await git.textOf(repo, commit, CONFIG, MOST_BYTES)) : { needs: {}, problem: null }
  const found = BY_FILE.map((group) => group.find(([file]) => names.has(file))).filter((one) => one !== undefined)
  const files = (await git.ignoredIn(repo, ENV_FILES, MOST_FILES)).filter((path) => Patterns.safeParse([path]).success)
  // The first generation of yarn has no configuration of that name, and another flag.
  const commandOf = (command: string) => (command === YARN && !names.has('.yarnrc.yml') ? OLD_YARN : command)
  const setup = found.map(([, command]) => commandOf(command)).join(' && ') || null
  const { needs, problem } = config
  const byFiles: Partial<Found['because']> = { setup: found.map(([file]) => file), files }
  const whyOf = (name: keyof Needs) => [name, needs[name] === undefined ? (byFiles[name] ?? []) : [CONFIG]]
  return { ...NOTHING, setup, files, ...needs, because: Object.fromEntries(NEEDS.map(whyOf)), problem }
}

const NOTHING = { checks: null, cleanup: null, dev: null, check_files: [] }

/** Without what the registration says already, and what a person has just decided; null when nothing is left. */
export function stillProposed({ because, ...found }: Found, said: Needs, decided: (keyof Needs)[] = []): Proposal | null {
  const open = NEEDS.filter((name) => isSaid(found[name]) && !isSaid(said[name]) && !decided.includes(name))
  const left = { ...found, because: [...new Set(open.flatMap((name) => because[name]))] }
  for (const name of NEEDS.filter((one) => !open.includes(one))) Object.assign(left, { [name]: Array.isArray(left[name]) ? [] : null })
  return open.length || found.problem ? left : null
}

function isSaid(value: string | string[] | null): boolean {
  return value !== null && value.length > 0
}

/** What a person pastes to make it hold. Undefined when there is nothing to confirm. */
export function confirming(handle: string, proposal: Partial<Needs>): string | undefined {
  const flags = NEEDS.flatMap((name) => {
    const value = proposal[name]
    const text = Array.isArray(value) ? listOf(value) : value
    return text ? [flagOf(name.replaceAll('_', '-'), text)] : []
  })
  return flags.length ? ['signalbox repo update', handle, ...flags].join(' ') : undefined
}

function listOf(patterns: string[]): string {
  return patterns.some((pattern) => /^\[|,|^null$/.test(pattern)) ? JSON.stringify(patterns) : patterns.join(',')
}

/** As text: `@name` would be what is in a file, and a branch could have any file of the person's read. */
function flagOf(name: string, text: string): string {
  return text.startsWith('-') ? shellWord(`--${name}=${text}`) : `--${name} ${shellWord(text.replace(/^@/, '@@'))}`
}

/** `a, b and c` */
export function listed(words: string[]): string {
  return words.length > 1 ? `${words.slice(0, -1).join(', ')} and ${words.at(-1)}` : words.join()
}
