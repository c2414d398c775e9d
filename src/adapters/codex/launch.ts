import { existsSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { z } from 'zod'
import type { Approvals, Launch, LaunchPlan } from '../../ports/harness.ts'
import { pathOf } from '../harness-shared/program.ts'
import { Name, ourServer, override, type Setting, textOf, toml } from './config.ts'
import { hello, newState } from './conversation.ts'
import { PROGRAM } from './program.ts'

export const Options = z.strictObject({
  env: z
    .array(Name)
    .max(50)
    .optional()
    .describe("Names of more variables of the daemon's environment that Codex gets, such as those that your own MCP servers need"),
})

/** How much it may do, in the words of `thread/start`. It asks a person, never a model of its own. */
const POLICIES: Record<Approvals, { approvalPolicy: string; sandbox: string }> = {
  allow: { approvalPolicy: 'never', sandbox: 'danger-full-access' },
  ask: { approvalPolicy: 'on-request', sandbox: 'workspace-write' },
  deny: { approvalPolicy: 'never', sandbox: 'workspace-write' },
}

export function plan(launch: Launch): LaunchPlan {
  const { env = [] } = Options.parse(launch.options)
  const opening = { cwd: launch.cwd, model: launch.model, approvalsReviewer: 'user', ...POLICIES[launch.approvals] }
  return {
    argv: [pathOf(PROGRAM) ?? PROGRAM.command, 'app-server', ...overrides(launch)],
    env: { SIGNALBOX_TOKEN: launch.mcp.token },
    inherit: [...new Set([...PROGRAM.environment(), ...env])],
    stdin: { text: hello(), open: true },
    files: {},
    state: newState({ opening, session: launch.session, approvals: launch.approvals, brief: launch.brief }),
  }
}

/** On top of what the person has in ~/.codex, which stays in force. */
function overrides({ cwd, mcp, approvals }: Launch): string[] {
  const server = ourServer(mcp.url)
  const git = gitFolders(cwd)
  const untrusted = [cwd, ...(git ? [dirname(git.common)] : [])].map((folder) => `${toml(folder)} = { trust_level = "untrusted" }`)
  const settings: Setting[] = [
    ...server.settings,
    [`${server.key}.default_tools_approval_mode`, '"approve"'],
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
  return settings.flatMap(override)
}

/** What a commit writes to. Not the whole of .git: its hooks and its configuration are run by whoever uses git there next. */
function writable(git: GitFolders | undefined): Setting {
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
