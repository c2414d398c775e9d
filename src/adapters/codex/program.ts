import { join } from 'node:path'
import { NETWORK, type Program } from '../harness-shared/program.ts'
import { providerKeys } from './config.ts'

const ENVIRONMENT = [
  'CODEX_HOME',
  'CODEX_API_KEY',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'OPENAI_ORGANIZATION',
  'OPENAI_PROJECT',
  'AZURE_OPENAI_API_KEY',
  ...NETWORK,
]

export const PROGRAM: Program = {
  command: 'codex',
  title: 'Codex',
  package: '@openai/codex',
  least: '0.166.0',
  install: 'npm i -g @openai/codex, then codex login',
  native: [
    ['linux-x64', 'x86_64-unknown-linux-musl'],
    ['linux-arm64', 'aarch64-unknown-linux-musl'],
    ['darwin-x64', 'x86_64-apple-darwin'],
    ['darwin-arm64', 'aarch64-apple-darwin'],
  ].map(([system, target]) => `@openai/codex-${system}/vendor/${target}/bin/codex`),
  /** A provider of the user's own has its key wherever the configuration says. */
  account: {
    variables: ['CODEX_API_KEY', 'OPENAI_API_KEY', 'AZURE_OPENAI_API_KEY'],
    files: ({ CODEX_HOME: folder = '.codex' }) => [
      { path: join(folder, 'auth.json') },
      { path: join(folder, 'config.toml'), says: /^\s*model_provider\s*=/m },
    ],
    login: 'Run codex login in a terminal, or set OPENAI_API_KEY where the daemon is started.',
  },
  environment: () => [...ENVIRONMENT, ...providerKeys()],
}
