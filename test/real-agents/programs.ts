import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type RealProgram, realProgram } from '../../src/testing/real-programs.ts'

/** How one program is started by the product, and how it is told where its model is. */
export interface Played {
  name: RealProgram
  harness: string
  model?: string
  options?: () => Record<string, unknown>
  /** Writes the program's own configuration below its home; the environment that the daemon hands down. */
  configure(home: string, model: string): Record<string, string>
}

const KEY = 'sk-not-a-key'

const forClaude = (_: string, model: string) => ({
  ANTHROPIC_BASE_URL: model,
  ANTHROPIC_API_KEY: KEY,
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_AUTOUPDATER: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  // As root it refuses to work without asking, unless it is told that nothing can be harmed.
  IS_SANDBOX: '1',
})

function forCodex(home: string, model: string): Record<string, string> {
  write(
    join(home, '.codex/config.toml'),
    `model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
web_search = "disabled"
[model_providers.scripted]
name = "scripted"
base_url = "${model}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
[analytics]
enabled = false
[features]
plugins = false
apps = false
daemon_auto_start = false
unbounded_connection_retries = false
`,
  )
  return { OPENAI_API_KEY: KEY }
}

function forGemini(home: string, model: string): Record<string, string> {
  const settings = {
    security: { auth: { selectedType: 'gemini-api-key' }, folderTrust: { enabled: false } },
    general: { enableAutoUpdate: false, maxAttempts: 2 },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
  }
  write(join(home, '.gemini/settings.json'), JSON.stringify(settings))
  return { GEMINI_API_KEY: KEY, GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_NO_RELAUNCH: 'true' }
}

function forOpencode(home: string, model: string): Record<string, string> {
  const provider = {
    npm: '@ai-sdk/openai-compatible',
    options: { baseURL: `${model}/v1`, apiKey: KEY },
    models: { scripted: { name: 'scripted', limit: { context: 200_000, output: 8_000 }, cost: { input: 1, output: 2 } } },
  }
  const settings = {
    provider: { scripted: provider },
    model: 'scripted/scripted',
    small_model: 'scripted/scripted',
    autoupdate: false,
    share: 'disabled',
  }
  write(join(home, '.config/opencode/opencode.json'), JSON.stringify(settings))
  return {
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
  }
}

export const PROGRAMS: Played[] = [
  { name: 'claude', harness: 'claude', configure: forClaude },
  { name: 'codex', harness: 'codex', configure: forCodex },
  { name: 'gemini', harness: 'gemini', model: 'gemini-2.5-flash', configure: forGemini },
  { name: 'opencode', harness: 'opencode', configure: forOpencode },
  {
    name: 'claude-agent-acp',
    harness: 'acp',
    options: () => ({ command: [realProgram('claude-agent-acp')] }),
    configure: forClaude,
  },
  { name: 'codex-acp', harness: 'acp', options: () => ({ command: [realProgram('codex-acp')] }), configure: forCodex },
]

/** Those that `npm run test:real -- --only NAME` leaves. */
export function wanted(): Played[] {
  const only = process.env.SIGNALBOX_REAL_ONLY
  return only ? PROGRAMS.filter(({ name }) => name === only) : PROGRAMS
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
