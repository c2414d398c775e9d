import type { Interactive, InteractiveLaunch, Interactives, Signs } from '../../ports/terminal.ts'
import { type Program, pathOf, probeProgram } from '../harness-shared/program.ts'

const NETWORK = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy', 'SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS']
/** Folder of the events that the hooks of a program write down. */
const HOOKS = 'hooks'

interface Facts {
  program: Program
  title: string
  inherit: string[]
  plan(launch: InteractiveLaunch): { args: string[]; env?: Record<string, string>; files?: Record<string, string>; signs: Signs }
}

const CLAUDE: Facts = {
  title: 'Claude Code',
  program: {
    command: 'claude',
    package: '@anthropic-ai/claude-code',
    least: '2.0.0',
    install: 'npm install -g @anthropic-ai/claude-code',
    native: ['@anthropic-ai/claude-code-linux-x64/claude', '@anthropic-ai/claude-code-linux-arm64/claude'],
  },
  inherit: [
    'ANTHROPIC_API_KEY',
    'ANTHROPIC_AUTH_TOKEN',
    'ANTHROPIC_BASE_URL',
    'ANTHROPIC_MODEL',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CONFIG_DIR',
    'CLAUDE_CODE_USE_BEDROCK',
    'CLAUDE_CODE_USE_VERTEX',
    'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC',
    'DISABLE_AUTOUPDATER',
    'DISABLE_TELEMETRY',
    'DISABLE_ERROR_REPORTING',
  ],
  plan({ folder, mcp }) {
    const server = { type: 'http', url: mcp.url, headers: { Authorization: `Bearer \${SIGNALBOX_TOKEN}` } }
    return {
      args: ['--mcp-config', `${folder}/mcp.json`, '--settings', `${folder}/settings.json`],
      files: {
        'mcp.json': JSON.stringify({ mcpServers: { signalbox: server } }),
        'settings.json': JSON.stringify({ hooks: hooksInto(folder, ['SessionStart', 'UserPromptSubmit']) }),
      },
      signs: {
        hooks: `${folder}/${HOOKS}`,
        ready: { event: 'SessionStart' },
        submitted: { event: 'UserPromptSubmit' },
        holds: /\[Pasted text/,
        dialogs: [
          {
            shows: /trust (?:the files in )?this folder|Is this a project you created or one you trust/i,
            what: 'whether you trust this folder',
          },
          { shows: /Detected a custom API key|Do you want to use this API key/i, what: 'whether to use the API key of your environment' },
          { shows: /Bypass Permissions mode/i, what: 'whether to run without asking for permission' },
          { shows: /Choose the text style|Select login method|Let's get started/i, what: 'how to set it up: it was never used before' },
          { shows: /Do you want to (?:proceed|make this edit|create|allow)/i, what: 'for a permission' },
        ],
      },
    }
  },
}

const CODEX: Facts = {
  title: 'Codex',
  program: {
    command: 'codex',
    package: '@openai/codex',
    least: '0.100.0',
    install: 'npm install -g @openai/codex',
    native: [
      '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex',
      '@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex',
    ],
  },
  inherit: ['OPENAI_API_KEY', 'OPENAI_BASE_URL', 'CODEX_HOME', 'CODEX_API_KEY'],
  plan: ({ cwd, mcp }) => ({
    args: [
      '--no-daemon',
      ...override('mcp_servers.signalbox.url', JSON.stringify(mcp.url)),
      ...override('mcp_servers.signalbox.bearer_token_env_var', '"SIGNALBOX_TOKEN"'),
      // The worktree is ours, and what is in it comes from a repository that its person has registered.
      ...override('projects', `{ ${JSON.stringify(cwd)} = { trust_level = "trusted" } }`),
    ],
    signs: {
      ready: { shows: /^\s*[›>] /m },
      submitted: { shows: /esc to interrupt/i },
      holds: /\[Pasted Content/,
      dialogs: [
        { shows: /Do you trust the contents of this directory|allow Codex to work in this folder/i, what: 'whether you trust this folder' },
        { shows: /Sign in with ChatGPT|Provide your own API key/i, what: 'you to sign in' },
        { shows: /Meet GPT|Try new model|Use existing model/i, what: 'which model to use' },
        { shows: /Update available|Update now/i, what: 'whether to update' },
        { shows: /Would you like to run the following command|Press enter to confirm/i, what: 'for a permission' },
      ],
    },
  }),
}

const GEMINI: Facts = {
  title: 'Gemini CLI',
  program: {
    command: 'gemini',
    package: '@google/gemini-cli',
    least: '0.20.0',
    install: 'npm install -g @google/gemini-cli',
  },
  inherit: [
    'GEMINI_API_KEY',
    'GOOGLE_API_KEY',
    'GOOGLE_GEMINI_BASE_URL',
    'GOOGLE_CLOUD_PROJECT',
    'GOOGLE_CLOUD_LOCATION',
    'GOOGLE_GENAI_USE_VERTEXAI',
  ],
  plan: ({ folder, mcp }) => ({
    // The worktree is ours, as above.
    args: ['--skip-trust'],
    env: { GEMINI_CLI_SYSTEM_SETTINGS_PATH: `${folder}/settings.json` },
    files: {
      'settings.json': JSON.stringify({
        mcpServers: { signalbox: { httpUrl: mcp.url, headers: { Authorization: `Bearer \${SIGNALBOX_TOKEN}` } } },
      }),
    },
    signs: {
      ready: { shows: /Type your message/i },
      submitted: { shows: /esc to cancel/i },
      holds: /\[Pasted Text/,
      dialogs: [
        { shows: /Do you trust (?:the files in )?this folder/i, what: 'whether you trust this folder' },
        { shows: /How would you like to authenticate|Get started/i, what: 'you to sign in' },
        { shows: /Apply this change\?|Allow execution/i, what: 'for a permission' },
      ],
    },
  }),
}

const OPENCODE: Facts = {
  title: 'opencode',
  program: {
    command: 'opencode',
    package: 'opencode-ai',
    least: '1.0.0',
    install: 'npm install -g opencode-ai',
    native: ['opencode-linux-x64/bin/opencode', 'opencode-linux-arm64/bin/opencode'],
  },
  inherit: [
    'ANTHROPIC_API_KEY',
    'OPENAI_API_KEY',
    'GEMINI_API_KEY',
    'OPENROUTER_API_KEY',
    'OPENCODE_DISABLE_AUTOUPDATE',
    'OPENCODE_DISABLE_MODELS_FETCH',
  ],
  plan: ({ folder, mcp }) => ({
    args: [],
    env: { OPENCODE_CONFIG: `${folder}/opencode.json` },
    files: {
      'opencode.json': JSON.stringify({
        mcp: {
          signalbox: { type: 'remote', url: mcp.url, headers: { Authorization: 'Bearer {env:SIGNALBOX_TOKEN}' }, oauth: false },
        },
      }),
    },
    signs: {
      ready: { shows: /Ask anything|ctrl\+p/i },
      submitted: { shows: /esc interrupt/i },
      holds: /\[Pasted/,
      dialogs: [{ shows: /Permission required/i, what: 'for a permission' }],
    },
  }),
}

/** A person's own, in which they start what they like. It is told nothing: a shell would do what the brief says, line by line. */
const SHELL: Interactive = {
  name: 'shell',
  title: 'A shell',
  probe: async () => ({ found: true, version: 'any' }),
  launch: () => ({ argv: [process.env.SHELL || '/bin/sh'], env: {}, inherit: NETWORK, files: {}, signs: undefined }),
}

const ALL: Interactive[] = [...[CLAUDE, CODEX, GEMINI, OPENCODE].map(interactive), SHELL]

export const interactives: Interactives = {
  names: () => ALL.map(({ name }) => name),
  get: (name) => ALL.find((one) => one.name === name),
}

function interactive({ program, title, inherit, plan }: Facts): Interactive {
  return {
    name: program.command,
    title,
    probe: () => probeProgram(program),
    launch(launch) {
      const { args, env = {}, files = {}, signs } = plan(launch)
      return { argv: [pathOf(program) ?? program.command, ...args], env, inherit: [...inherit, ...NETWORK], files, signs }
    },
  }
}

function override(key: string, value: string): string[] {
  return ['-c', `${key}=${value}`]
}

/** Each event is a file that is whole when it has its name: one that two wrote at once would be neither's. */
function hooksInto(folder: string, events: string[]) {
  const into = quoted(`${folder}/${HOOKS}`)
  const command = (event: string) =>
    `mkdir -p -m 700 ${into} && f=$(mktemp ${into}/.${event}.XXXXXXXX) && cat >"$f" && mv "$f" ${into}/${event}.$(date +%s%N)."$$".json`
  return Object.fromEntries(events.map((event) => [event, [{ hooks: [{ type: 'command', command: command(event) }] }]]))
}

/** For the one shell there is: that of the program's own hooks. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`
}
