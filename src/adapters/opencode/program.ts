import { join } from 'node:path'
import { NETWORK, type Program } from '../harness-shared/program.ts'

const PLATFORM = `opencode-${process.platform}-${process.arch}`

const ENVIRONMENT = [
  'OPENCODE_CONFIG',
  'OPENCODE_CONFIG_CONTENT',
  'OPENCODE_CONFIG_DIR',
  'OPENCODE_API_KEY',
  'OPENCODE_DISABLE_AUTOUPDATE',
  'OPENCODE_DISABLE_DEFAULT_PLUGINS',
  'OPENCODE_DISABLE_LSP_DOWNLOAD',
  'OPENCODE_DISABLE_MODELS_FETCH',
  'ANTHROPIC_API_KEY',
  'AWS_ACCESS_KEY_ID',
  'AWS_PROFILE',
  'AWS_REGION',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
  'DEEPSEEK_API_KEY',
  'GEMINI_API_KEY',
  'GOOGLE_GENERATIVE_AI_API_KEY',
  'GROQ_API_KEY',
  'MISTRAL_API_KEY',
  'OPENAI_API_KEY',
  'OPENROUTER_API_KEY',
  'XAI_API_KEY',
  ...NETWORK,
]

const PROVIDER = /"provider"\s*:/

export const PROGRAM: Program = {
  command: 'opencode',
  title: 'opencode',
  package: 'opencode-ai',
  least: '1.18.0',
  install: 'npm install -g opencode-ai',
  native: [`${PLATFORM}/bin/opencode`, `${PLATFORM}-baseline/bin/opencode`, `${PLATFORM}-musl/bin/opencode`],
  /** Or it knows a provider by its configuration. */
  account: {
    variables: ENVIRONMENT.filter((name) => name.endsWith('_API_KEY')),
    files: ({ XDG_DATA_HOME: data = '.local/share', XDG_CONFIG_HOME: config = '.config', OPENCODE_CONFIG: own }) => [
      { path: join(data, 'opencode/auth.json'), says: /"type"/ },
      ...['opencode.json', 'opencode.jsonc'].map((name) => ({ path: join(config, 'opencode', name), says: PROVIDER })),
      ...(own ? [{ path: own, says: PROVIDER }] : []),
    ],
    login: 'Run opencode auth login in a terminal.',
  },
  environment: () => ENVIRONMENT,
}
