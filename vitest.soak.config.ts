import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/soak/**/*.soak.ts'],
    globalSetup: 'test/global-setup.ts',
    pool: 'forks',
    maxWorkers: 1,
    testTimeout: 20 * 60_000,
    hookTimeout: 5 * 60_000,
  },
})
