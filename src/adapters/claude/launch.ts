import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Approvals, Launch, LaunchPlan } from '../../ports/harness.ts'
import type { Account } from '../harness-shared/account.ts'
import { type Program, pathOf } from '../harness-shared/program.ts'
import { askUsage, userMessage } from './protocol.ts'
import { begun } from './state.ts'

const NATIVE = `@anthropic-ai/claude-code-${process.platform}-${process.arch}`

export const CLAUDE: Program = {
  command: 'claude',
  package: '@anthropic-ai/claude-code',
  least: '2.1.197',
  install: 'npm i -g @anthropic-ai/claude-code',
  native: [`${NATIVE}/claude`, `${NATIVE}-musl/claude`],
}

/** Its own log-in is in the key chain on some systems, and then only named in its settings. */
export const ACCOUNT: Account = {
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
}

/** As the server is called in the brief. */
const SERVER = 'signalbox'
const OUR_TOOLS = `mcp__${SERVER}`
const MCP_FILE = 'claude-mcp.json'

/** Without it the program gives up on any call after 60 s; our waits take up to 240 s. */
const TOOL_TIMEOUT_MS = 600_000

/**
 * A person would have to answer, the run would go on elsewhere or later (here the end of the last turn is the end of the run), or other
 * sessions on the machine would be spoken to past Signalbox.
 */
const NOT_HERE = [
  'ListAgents',
  'SendMessage',
  'AskUserQuestion',
  'EnterPlanMode',
  'ExitPlanMode',
  'EnterWorktree',
  'ExitWorktree',
  'ScheduleWakeup',
  'CronCreate',
  'CronDelete',
  'CronList',
]

/**
 * What a repository says in its own .claude/settings.json is read only where everything is allowed anyway: otherwise an agent could
 * commit itself the permission that nobody gave it.
 */
const NOT_THE_REPOSITORYS = ['--setting-sources', 'user']

const POLICY: Record<Approvals, string[]> = {
  allow: ['--dangerously-skip-permissions'],
  ask: ['--permission-mode', 'default', '--permission-prompt-tool', 'stdio', '--allowedTools', OUR_TOOLS, ...NOT_THE_REPOSITORYS],
  // "Edit" alone would allow it everywhere on the machine.
  deny: ['--permission-mode', 'dontAsk', '--allowedTools', `${OUR_TOOLS},Edit(./**)`, ...NOT_THE_REPOSITORYS],
}

/** What a person's own log-in, provider and way to the network need. */
const INHERIT = [
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
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  ...['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
]

/** `uid`: whose the program will be. */
export function planOf(launch: Launch, uid = process.getuid?.()): LaunchPlan {
  const state = begun(launch.run, launch.session)
  const brief = userMessage(launch.brief, uuidOf(`${launch.run} brief`))
  return {
    argv: [
      pathOf(CLAUDE) ?? CLAUDE.command,
      '-p',
      ...['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose', '--replay-user-messages'],
      ...(launch.session ? ['--resume', launch.session] : ['--session-id', uuidOf(launch.run)]),
      ...['--mcp-config', join(launch.folder, MCP_FILE), '--strict-mcp-config'],
      ...(launch.model ? [`--model=${launch.model}`] : []),
      ...POLICY[launch.approvals],
      ...['--disallowedTools', NOT_HERE.join(',')],
    ],
    env: {
      SIGNALBOX_TOKEN: launch.mcp.token,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_TELEMETRY: '1',
      DISABLE_ERROR_REPORTING: '1',
      // A refused key would be tried again for minutes.
      CLAUDE_CODE_MAX_RETRIES: '3',
      CLAUDE_CODE_STARTUP_FAILURE_RESULTS: '1',
      MCP_TOOL_TIMEOUT: String(TOOL_TIMEOUT_MS),
      // Root may not run without questions unless it says that it is in a sandbox.
      ...(launch.approvals === 'allow' && uid === 0 ? { IS_SANDBOX: '1' } : {}),
    },
    inherit: INHERIT,
    // What a resumed session has used before is asked for first: it may or may not be counted again.
    stdin: { text: launch.session ? askUsage() + brief : brief, open: true },
    files: { [MCP_FILE]: mcpFile(launch.mcp.url) },
    state,
  }
}

/** The token is not in it: the program reads it out of its environment. */
function mcpFile(url: string): string {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the program fills it in
  const server = { type: 'http', url, headers: { Authorization: 'Bearer ${SIGNALBOX_TOKEN}' }, timeout: TOOL_TIMEOUT_MS }
  return `${JSON.stringify({ mcpServers: { [SERVER]: server } }, null, 2)}\n`
}

/** The same for the same text. Of two messages with one uuid the program drops the second, also over its lives. */
export function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(`signalbox ${text}`).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
