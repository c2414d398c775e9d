import type { Migration } from '../../kernel/capability.ts'

export const migrations: Migration[] = [
  { name: 'known-values', up: ({ known }) => known('effects', 'state', ['waiting', 'running', 'done', 'dead', 'unknown', 'dropped']) },
]
