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

/** What a fresh checkout of this commit seems to need. It holds only when a person says so. */
export async function proposalAt(git: Pick<Git, 'topOf' | 'textOf' | 'ignoredIn'>, repo: string, commit: string): Promise<Proposal> {
  const names = new Set(await git.topOf(repo, commit))
  const config = names.has(CONFIG) ? await readConfig(await git.textOf(repo, commit, CONFIG, MOST_BYTES)) : { needs: {}, problem: null }
  const found = BY_FILE.map((group) => group.find(([file]) => names.has(file))).filter((one) => one !== undefined)
  const files = (await git.ignoredIn(repo, ENV_FILES, MOST_FILES)).filter((path) => Patterns.safeParse([path]).success)
  // The first generation of yarn has no configuration of that name, and another flag.
  const commandOf = (command: string) => (command === YARN && !names.has('.yarnrc.yml') ? OLD_YARN : command)
  const setup = found.map(([, command]) => commandOf(command)).join(' && ') || null
  const { needs, problem } = config
  const because = [
    ...(Object.keys(needs).length ? [CONFIG] : []),
    ...(needs.setup === undefined ? found.map(([file]) => file) : []),
    ...(needs.files === undefined ? files : []),
  ]
  return { ...NOTHING, setup, files, ...needs, because, problem }
}

const NOTHING = { checks: null, cleanup: null, dev: null, check_files: [] }

/** Without what the registration says already; null when nothing is left. */
export function stillProposed(proposal: Proposal, said: Needs): Proposal | null {
  const isOpen = (name: keyof Needs) => isSaid(proposal[name]) && !isSaid(said[name])
  const left = { ...proposal }
  for (const name of NEEDS.filter((one) => !isOpen(one))) Object.assign(left, { [name]: Array.isArray(left[name]) ? [] : null })
  return NEEDS.some(isOpen) || proposal.problem ? left : null
}

function isSaid(value: string | string[] | null): boolean {
  return value !== null && value.length > 0
}

/** What a person types to make it hold. Undefined when there is nothing to confirm. */
export function confirming(handle: string, proposal: Proposal): string | undefined {
  const flags = NEEDS.flatMap((name) => {
    const value = proposal[name]
    const words = Array.isArray(value) ? value.join(',') : value
    return words ? [`--${name.replaceAll('_', '-')} ${shellWord(words)}`] : []
  })
  return flags.length ? ['signalbox repo update', handle, ...flags].join(' ') : undefined
}
