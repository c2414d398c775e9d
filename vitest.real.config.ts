import { defineConfig } from 'vitest/config'

const minutes = (count: number) => count * 60_000

export default defineConfig({
  test: {
    environment: 'node',
    include: ['src/adapters/**/*.real.ts', 'test/real-agents/**/*.real.ts'],
    globalSetup: 'test/global-setup.ts',
    setupFiles: 'test/real-agents/setup.ts',
    pool: 'forks',
    // Each holds several programs of some hundred megabytes.
    fileParallelism: false,
    maxWorkers: 1,
    testTimeout: minutes(10),
    hookTimeout: minutes(5),
    reporters: [
      'default',
      ...(process.env.SIGNALBOX_REAL_RESULTS ? [['json', { outputFile: process.env.SIGNALBOX_REAL_RESULTS }] as const] : []),
    ],
  },
})
