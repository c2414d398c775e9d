import { createHash } from 'node:crypto'
import { join } from 'node:path'
import type { Approvals, Launch, LaunchPlan } from '../../ports/harness.ts'
import { pathOf } from '../harness-shared/program.ts'
import { PROGRAM } from './program.ts'
import { askUsage, userMessage } from './protocol.ts'
import { mcpFile, SERVER, TOOL_TIMEOUT } from './server.ts'
import { begun } from './state.ts'

const OUR_TOOLS = `mcp__${SERVER}`
const MCP_FILE = 'claude-mcp.json'

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

/** `uid`: whose the program will be. */
export function planOf(launch: Launch, uid = process.getuid?.()): LaunchPlan {
  const state = begun(launch.run, launch.session)
  const brief = userMessage(launch.brief, uuidOf(`${launch.run} brief`))
  return {
    argv: [
      pathOf(PROGRAM) ?? PROGRAM.command,
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
      ...TOOL_TIMEOUT,
      // Root may not run without questions unless it says that it is in a sandbox.
      ...(launch.approvals === 'allow' && uid === 0 ? { IS_SANDBOX: '1' } : {}),
    },
    inherit: PROGRAM.environment(),
    // What a resumed session has used before is asked for first: it may or may not be counted again.
    stdin: { text: launch.session ? askUsage() + brief : brief, open: true },
    files: { [MCP_FILE]: mcpFile(launch.mcp.url) },
    state,
  }
}

/** The same for the same text. Of two messages with one uuid the program drops the second, also over its lives. */
export function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(`signalbox ${text}`).digest().subarray(0, 16)
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}
