import { join } from 'node:path'
import { NETWORK, type Program } from '../harness-shared/program.ts'

const NATIVE = `@anthropic-ai/claude-code-${process.platform}-${process.arch}`

const ENVIRONMENT = [
  ...['API_KEY', 'AUTH_TOKEN', 'BASE_URL', 'CUSTOM_HEADERS', 'MODEL', 'SMALL_FAST_MODEL'].map((name) => `ANTHROPIC_${name}`),
  ...['OPUS', 'SONNET', 'HAIKU'].map((name) => `ANTHROPIC_DEFAULT_${name}_MODEL`),
  ...['BEDROCK_BASE_URL', 'VERTEX_BASE_URL', 'VERTEX_PROJECT_ID', 'FOUNDRY_BASE_URL', 'FOUNDRY_RESOURCE', 'FOUNDRY_API_KEY'].map(
    (name) => `ANTHROPIC_${name}`,
  ),
  ...['OAUTH_TOKEN', 'USE_BEDROCK', 'USE_VERTEX', 'USE_FOUNDRY', 'SKIP_BEDROCK_AUTH', 'SKIP_VERTEX_AUTH', 'CLIENT_CERT', 'CLIENT_KEY'].map(
    (name) => `CLAUDE_CODE_${name}`,
  ),
  'CLAUDE_CONFIG_DIR',
  'CLAUDE_CODE_CLIENT_KEY_PASSPHRASE',
  ...['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'SESSION_TOKEN', 'REGION', 'DEFAULT_REGION', 'PROFILE', 'BEARER_TOKEN_BEDROCK'].map(
    (name) => `AWS_${name}`,
  ),
  ...['AWS_CONFIG_FILE', 'AWS_SHARED_CREDENTIALS_FILE', 'CLOUD_ML_REGION', 'GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT'],
  ...['CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC', 'DISABLE_AUTOUPDATER', 'DISABLE_TELEMETRY', 'DISABLE_ERROR_REPORTING'],
  ...NETWORK,
]

export const PROGRAM: Program = {
  command: 'claude',
  title: 'Claude Code',
  package: '@anthropic-ai/claude-code',
  least: '2.1.197',
  install: 'npm i -g @anthropic-ai/claude-code',
  native: [`${NATIVE}/claude`, `${NATIVE}-musl/claude`],
  /** Its own log-in is in the key chain on some systems, and then only named in its settings. */
  account: {
    variables: [
      ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
      ...['CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_FOUNDRY'],
    ],
    files: ({ CLAUDE_CONFIG_DIR: folder }) => [
      { path: join(folder ?? '.claude', '.credentials.json') },
      { path: join(folder ?? '', '.claude.json'), says: /"(oauthAccount|primaryApiKey)"\s*:\s*["{]/ },
      { path: join(folder ?? '.claude', 'settings.json'), says: /"(apiKeyHelper|ANTHROPIC_API_KEY|ANTHROPIC_AUTH_TOKEN)"/ },
    ],
    login: 'Run claude once in a terminal, or set ANTHROPIC_API_KEY where the daemon is started.',
  },
  environment: () => ENVIRONMENT,
}
