import { configDefaults, defineConfig } from 'vitest/config'

const common = {
  environment: 'node',
  exclude: [...configDefaults.exclude, 'test/soak/**', 'test/conformance/**'],
  pool: 'forks' as const,
  testTimeout: 30_000,
  hookTimeout: 60_000,
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        test: {
          ...common,
          name: 'sqlite',
          include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: [...common.exclude, 'src/adapters/effects-graphile/**'],
          globalSetup: 'test/global-setup.ts',
        },
      },
      {
        // Every capability is written once and must hold on both engines.
        test: {
          ...common,
          name: 'postgres',
          include: ['src/capabilities/*/*.test.ts', 'src/kernel/**/*.test.ts', 'src/adapters/effects-*/*.test.ts'],
          globalSetup: ['test/global-setup.ts', 'test/postgres-setup.ts'],
        },
      },
    ],
  },
})
