import { join } from 'node:path'
import { z } from 'zod'
import type { Approvals } from '../../ports/harness.ts'
import { acpHarness } from '../acp/harness.ts'
import { OURS } from '../acp/tools-server.ts'
import { type Account, accountOf } from '../harness-shared/account.ts'
import { type Program, pathOf, probeProgram } from '../harness-shared/program.ts'
import { refuseTaken, TAKEN_UNASKED } from '../harness-shared/repository.ts'

const PLATFORM = `opencode-${process.platform}-${process.arch}`

const PROGRAM: Program = {
  command: 'opencode',
  package: 'opencode-ai',
  least: '1.18.0',
  install: 'npm install -g opencode-ai',
  native: [`${PLATFORM}/bin/opencode`, `${PLATFORM}-baseline/bin/opencode`, `${PLATFORM}-musl/bin/opencode`],
}

const NAMES = [
  'OPENCODE_CONFIG',
  'OPENCODE_CONFIG_CONTENT',
  'OPENCODE_CONFIG_DIR',
  'OPENCODE_API_KEY',
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
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
]

const PROVIDER = /"provider"\s*:/

/** Or it knows a provider by its configuration. */
export const ACCOUNT: Account = {
  variables: NAMES.filter((name) => name.endsWith('_API_KEY')),
  files: ({ XDG_DATA_HOME: data = '.local/share', XDG_CONFIG_HOME: config = '.config', OPENCODE_CONFIG: own }) => [
    { path: join(data, 'opencode/auth.json'), says: /"type"/ },
    ...['opencode.json', 'opencode.jsonc'].map((name) => ({ path: join(config, 'opencode', name), says: PROVIDER })),
    ...(own ? [{ path: own, says: PROVIDER }] : []),
  ],
  login: 'Run opencode auth login in a terminal.',
}

/** On top of what the person's own settings say; our tools need no permission. */
const ASKING = { bash: 'ask', edit: 'ask', webfetch: 'ask', websearch: 'ask', external_directory: 'ask', [`${OURS}_*`]: 'allow' }
const PERMISSIONS: Record<Approvals, Record<string, string>> = { allow: { '*': 'allow' }, ask: ASKING, deny: { ...ASKING, edit: 'allow' } }

/** As it stands in its log when the model did not answer; the smaller model only makes titles. */
const STREAM_ERROR = /^timestamp=\S+ level=ERROR .*message="stream error" .*small=false .*error\.error="(?:AI_\w+: )?([^"]{0,1000})/

/**
 * opencode in its ACP mode: started for one prompt it takes no message and no interrupt. It tells the tokens of the last call of a turn only,
 * and the cost of a session with all its lives, so neither can be limited. That it tries a model again it says in its log alone, which
 * is why that is asked for.
 */
export const opencode = acpHarness({
  name: 'opencode',
  title: 'opencode',
  meters: { wall_clock: 'second', turns: 'turn' },
  options: z.strictObject({}),
  probe: () => probeProgram(PROGRAM),
  account: accountOf(ACCOUNT),
  plan(launch) {
    refuseTaken(launch, 'opencode', TAKEN_UNASKED.opencode)
    return {
      argv: [pathOf(PROGRAM) ?? PROGRAM.command, 'acp', '--print-logs', '--log-level', 'ERROR'],
      env: { OPENCODE_PERMISSION: JSON.stringify(PERMISSIONS[launch.approvals]), OPENCODE_DISABLE_AUTOUPDATE: '1' },
      inherit: NAMES,
    }
  },
  login: ACCOUNT.login,
  retries: (line) => STREAM_ERROR.exec(line)?.[1],
})
