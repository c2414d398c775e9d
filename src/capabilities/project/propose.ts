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

export interface Proposal {
  setup: string
  /** Files of the repository that say so. */
  because: string[]
}

/** What a fresh checkout seems to need, by the names at its top. It holds only when a person says so. */
export function proposeSetup(names: string[]): Proposal | undefined {
  const there = new Set(names)
  const found = BY_FILE.map((group) => group.find(([file]) => there.has(file))).filter((one) => one !== undefined)
  if (found.length === 0) return undefined
  // The first generation of yarn has no configuration of that name, and another flag.
  const commandOf = (command: string) => (command === YARN && !there.has('.yarnrc.yml') ? OLD_YARN : command)
  return { setup: found.map(([, command]) => commandOf(command)).join(' && '), because: found.map(([file]) => file) }
}
