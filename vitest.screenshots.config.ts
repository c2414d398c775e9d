import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    environment: 'node',
    include: ['test/browser/screenshots.ts'],
    globalSetup: 'test/global-setup.ts',
    pool: 'forks',
    testTimeout: 10 * 60_000,
  },
})
