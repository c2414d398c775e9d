import { configDefaults, defineConfig } from 'vitest/config'
import { keepFilesInMemory } from './test/in-memory.ts'
import { LongestFirst } from './test/longest-first.ts'

keepFilesInMemory()

const common = {
  environment: 'node',
  exclude: [...configDefaults.exclude, 'test/soak/**', 'test/conformance/**'],
  pool: 'forks' as const,
  // A test that hangs is told in words by what it waits for; this is only for one that does not.
  testTimeout: 180_000,
  hookTimeout: 180_000,
  // One second, as it is by itself, is little on a busy machine.
  expect: { poll: { timeout: 60_000 } },
}

/** Every capability is written once and must hold on both engines, and what the door does with storage. */
const ON_BOTH = [
  'src/capabilities/*/*.test.ts',
  'src/kernel/{invoke,log}.test.ts',
  'src/adapters/effects-shared/*.test.ts',
  'test/**/effects*.test.ts',
]

/** About git and files, whatever the engine: on PostgreSQL too in the soak alone. */
const ON_BOTH_IN_SOAK = process.env.SIGNALBOX_SOAK
  ? []
  : [
      'src/capabilities/merge/{trust,landing,merge,repo}.test.ts',
      'src/capabilities/review/{decide,rebase}.test.ts',
      'src/capabilities/pr/pull-requests.test.ts',
      'src/capabilities/epic/finish.test.ts',
      'src/capabilities/setup/setup.test.ts',
    ]

/** What only a server can show. */
const POSTGRES_ONLY = ['src/db/postgres*.test.ts', 'src/adapters/effects-graphile/*.test.ts', 'test/**/postgres*.test.ts']

/** Without a process of its own for each file: to load the app again for every one took half a minute of all. */
const shared = { isolate: false, restoreMocks: true }

const sqlite = {
  ...common,
  ...shared,
  name: 'sqlite',
  include: ['src/**/*.test.ts'],
  exclude: [...common.exclude, ...POSTGRES_ONLY],
  globalSetup: 'test/global-setup.ts',
}

/** Daemons, browsers and agents as processes of their own. */
const whole = {
  ...common,
  ...shared,
  name: 'whole',
  include: ['test/**/*.test.ts'],
  exclude: sqlite.exclude,
  globalSetup: sqlite.globalSetup,
}

const postgres = {
  ...common,
  ...shared,
  name: 'postgres',
  include: [...ON_BOTH, ...POSTGRES_ONLY],
  exclude: [...common.exclude, ...ON_BOTH_IN_SOAK],
  globalSetup: ['test/global-setup.ts', 'test/postgres-setup.ts'],
}

const withoutPostgres = (process.env.SIGNALBOX_TEST_WITHOUT ?? '').split(',').includes('postgresql')

export default defineConfig({
  test: {
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    projects: [sqlite, whole, ...(withoutPostgres ? [] : [postgres])].map((test) => ({ test })),
  },
})
