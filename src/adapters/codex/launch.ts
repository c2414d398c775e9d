import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import type { Approvals, Launch, LaunchPlan } from '../../ports/harness.ts'
import type { Account } from '../harness-shared/account.ts'
import { type Program, pathOf } from '../harness-shared/program.ts'
import { hello, newState } from './conversation.ts'

export const PROGRAM: Program = {
  command: 'codex',
  package: '@openai/codex',
  least: '0.166.0',
  install: 'npm i -g @openai/codex, then codex login',
  native: [
    ['linux-x64', 'x86_64-unknown-linux-musl'],
    ['linux-arm64', 'aarch64-unknown-linux-musl'],
    ['darwin-x64', 'x86_64-apple-darwin'],
    ['darwin-arm64', 'aarch64-apple-darwin'],
  ].map(([system, target]) => `@openai/codex-${system}/vendor/${target}/bin/codex`),
}

/** A provider of the user's own has its key wherever the configuration says. */
export const ACCOUNT: Account = {
  variables: ['CODEX_API_KEY', 'OPENAI_API_KEY', 'AZURE_OPENAI_API_KEY'],
  files: ({ CODEX_HOME: folder = '.codex' }) => [
    { path: join(folder, 'auth.json') },
    { path: join(folder, 'config.toml'), says: /^\s*model_provider\s*=/m },
  ],
  login: 'Run codex login in a terminal, or set OPENAI_API_KEY where the daemon is started.',
}

const Name = z
  .string()
  .max(200)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is no name of a variable')

export const Options = z.strictObject({
  env: z
    .array(Name)
    .max(50)
    .optional()
    .describe("Names of more variables of the daemon's environment that Codex gets, such as those that your own MCP servers need"),
})

const INHERITED = [
  'CODEX_HOME',
  'CODEX_API_KEY',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'OPENAI_ORGANIZATION',
  'OPENAI_PROJECT',
  'AZURE_OPENAI_API_KEY',
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap((name) => [name, name.toLowerCase()]),
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
]

/** Longer than any of our tools waits. */
const TOOL_TIMEOUT_SECONDS = 300

/** How much it may do, in the words of `thread/start`. It asks a person, never a model of its own. */
const POLICIES: Record<Approvals, { approvalPolicy: string; sandbox: string }> = {
  allow: { approvalPolicy: 'never', sandbox: 'danger-full-access' },
  ask: { approvalPolicy: 'on-request', sandbox: 'workspace-write' },
  deny: { approvalPolicy: 'never', sandbox: 'workspace-write' },
}

export function plan(launch: Launch): LaunchPlan {
  const { env = [] } = Options.parse(launch.options)
  const config = userConfig()
  const opening = { cwd: launch.cwd, model: launch.model, approvalsReviewer: 'user', ...POLICIES[launch.approvals] }
  return {
    argv: [pathOf(PROGRAM) ?? PROGRAM.command, 'app-server', ...overrides(launch, config)],
    env: { SIGNALBOX_TOKEN: launch.mcp.token },
    inherit: [...new Set([...INHERITED, ...keysIn(config), ...env])],
    stdin: { text: hello(), open: true },
    files: {},
    state: newState({ opening, session: launch.session, approvals: launch.approvals, brief: launch.brief }),
  }
}

/** On top of what the person has in ~/.codex, which stays in force. */
function overrides({ cwd, mcp, approvals }: Launch, config: string): string[] {
  const git = gitFolders(cwd)
  const untrusted = [cwd, ...(git ? [dirname(git.common)] : [])].map((folder) => `${toml(folder)} = { trust_level = "untrusted" }`)
  const settings: [string, string][] = [
    ...ourServer(mcp.url, config),
    // Trusted, what an agent writes into .codex of its worktree would start programs outside of the sandbox in its next life. Unsaid, it would trust by itself, and write so into the person's configuration.
    ['projects', `{ ${untrusted.join(', ')} }`],
    ...(approvals === 'allow' ? [] : [writable(git)]),
    // The agent's shell has no use for the token.
    ['shell_environment_policy.set.SIGNALBOX_TOKEN', '""'],
    ['check_for_update_on_startup', 'false'],
    ['analytics.enabled', 'false'],
    ['features.plugins', 'false'],
    ['features.apps', 'false'],
    ['features.daemon_auto_start', 'false'],
    // It would wait for ever for a provider that is down.
    ['features.unbounded_connection_retries', 'false'],
  ]
  return settings.flatMap(([key, value]) => ['-c', `${key}=${value}`])
}

/** Codex mixes two servers of one name, and would not start; and the person's own would act in the person's name. */
function ourServer(url: string, config: string): [string, string][] {
  const taken = namesServer(config)
  const server = `mcp_servers.${taken ? 'signalbox_run' : 'signalbox'}`
  return [
    ...(taken ? [['mcp_servers.signalbox.enabled', 'false'] as [string, string]] : []),
    [`${server}.url`, toml(url)],
    [`${server}.bearer_token_env_var`, '"SIGNALBOX_TOKEN"'],
    [`${server}.tool_timeout_sec`, String(TOOL_TIMEOUT_SECONDS)],
    [`${server}.default_tools_approval_mode`, '"approve"'],
  ]
}

const SERVER = [
  /^\s*\[\s*mcp_servers\s*\.\s*["']?signalbox["']?\s*[.\]]/m,
  /^\s*mcp_servers\s*\.\s*["']?signalbox["']?\s*[.=]/m,
  /^\s*\[\s*mcp_servers\s*\]\s*$[^[]*?^\s*["']?signalbox["']?\s*[.=]/m,
]

function namesServer(config: string): boolean {
  return SERVER.some((pattern) => pattern.test(config))
}

/** The variables in which the person's providers look for their keys. */
function keysIn(config: string): string[] {
  const named = [...config.matchAll(/^\s*env_key\s*=\s*["']([^"'\n]+)["']/gm)].map(([, name]) => name)
  return named.filter((name): name is string => Name.safeParse(name).success)
}

function userConfig(): string {
  const folder = process.env.CODEX_HOME || join(homedir(), '.codex')
  return textOf(join(folder, 'config.toml')) ?? ''
}

/** What a commit writes to. Not the whole of .git: its hooks and its configuration are run by whoever uses git there next. */
function writable(git: GitFolders | undefined): [string, string] {
  const folders = git ? [git.own, ...['objects', 'refs', 'logs'].map((name) => join(git.common, name))] : []
  return [
    'sandbox_workspace_write.writable_roots',
    `[${folders
      .filter((folder) => existsSync(folder))
      .map(toml)
      .join(', ')}]`,
  ]
}

interface GitFolders {
  /** Of this worktree. */
  own: string
  /** Of the repository that it belongs to. */
  common: string
}

/** Where the worktree's git is, when it lies where git puts it and says so too: whoever writes the file .git must not thereby name any folder. */
function gitFolders(cwd: string): GitFolders | undefined {
  const named = /^gitdir: (.+)$/m.exec(textOf(join(cwd, '.git')) ?? '')?.[1]
  if (!named) return undefined
  const own = resolve(cwd, named)
  const back = textOf(join(own, 'gitdir'))?.trim()
  const isOurs = back && isSame(dirname(resolve(own, back)), cwd) && basename(dirname(own)) === 'worktrees'
  return isOurs ? { own, common: dirname(dirname(own)) } : undefined
}

function isSame(one: string, other: string): boolean {
  try {
    return realpathSync(one) === realpathSync(other)
  } catch {
    return false
  }
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

/** A string of JSON is one of TOML. */
const toml = (text: string) => JSON.stringify(text)
