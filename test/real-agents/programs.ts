import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type RealProgram, realProgram } from '../../src/testing/real-programs.ts'
import type { Fault } from '../../src/testing/scripted-model/index.ts'

/** How one program is started by the product, and how it is told where its model is. */
export interface Played {
  name: RealProgram
  harness: string
  model?: string
  options?: () => Record<string, unknown>
  /** A session that is loaded in the minute of its beginning is overwritten by this program. */
  sessionNeedsAnotherMinute?: boolean
  /** As its provider tells that it gives no more until then (seconds from now). */
  limit(seconds: number): Omit<Fault, 'times'>
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

const inSeconds = (seconds: number) => Math.round(Date.now() / 1_000) + seconds

const byAnthropic = (seconds: number) => ({
  status: 429,
  retryAfter: seconds,
  headers: {
    'anthropic-ratelimit-unified-status': 'rejected',
    'anthropic-ratelimit-unified-representative-claim': 'five_hour',
    'anthropic-ratelimit-unified-reset': String(inSeconds(seconds)),
  },
})

const byOpenAi = (seconds: number) => ({
  status: 429,
  headers: {
    'x-codex-primary-used-percent': '100',
    'x-codex-primary-window-minutes': '300',
    'x-codex-primary-reset-at': String(inSeconds(seconds)),
  },
  body: JSON.stringify({
    error: { type: 'usage_limit_reached', message: 'The usage limit has been reached', plan_type: 'plus', resets_at: inSeconds(seconds) },
  }),
})

const byGoogle = (seconds: number) => ({
  status: 429,
  body: JSON.stringify({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: `You exceeded your current quota. Please retry in ${seconds}s.`,
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel', quotaMetric: 'generate_requests' }],
        },
        { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` },
      ],
    },
  }),
})

/** Told a Retry-After, opencode waits that long by itself, without a word; only what it says itself can be known. */
const byAnyone = (seconds: number) => ({
  status: 429,
  body: JSON.stringify({
    error: { type: 'rate_limit_exceeded', code: 'rate_limit_exceeded', message: `Rate limit reached. Please try again in ${seconds}s.` },
  }),
})

export const PROGRAMS: Played[] = [
  { name: 'claude', harness: 'claude', configure: forClaude, limit: byAnthropic },
  { name: 'codex', harness: 'codex', configure: forCodex, limit: byOpenAi },
  { name: 'gemini', harness: 'gemini', model: 'gemini-2.5-flash', configure: forGemini, limit: byGoogle, sessionNeedsAnotherMinute: true },
  { name: 'opencode', harness: 'opencode', configure: forOpencode, limit: byAnyone },
  { name: 'claude-agent-acp', harness: 'acp', options: acp('claude-agent-acp'), configure: forClaude, limit: byAnthropic },
  { name: 'codex-acp', harness: 'acp', options: acp('codex-acp'), configure: forCodex, limit: byOpenAi },
]

function acp(name: RealProgram) {
  return () => ({ command: [realProgram(name)] })
}

/** Those that `npm run test:real -- --only NAME,NAME` leaves. */
export function wanted(): Played[] {
  const only = process.env.SIGNALBOX_REAL_ONLY?.split(',').filter(Boolean) ?? []
  return only.length > 0 ? PROGRAMS.filter(({ name }) => only.includes(name)) : PROGRAMS
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
