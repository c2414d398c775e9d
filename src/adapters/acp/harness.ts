import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { NETWORK, whereIs } from '../harness-shared/program.ts'
import { refuseTaken, TAKEN_UNASKED } from '../harness-shared/repository.ts'
import { acpHarness } from './client.ts'

const Argument = z
  .string()
  .max(10_000)
  .refine((text) => !text.includes('\0'), 'holds a NUL')

const Options = z.strictObject({
  command: z.tuple([Argument.min(1)], Argument).describe('The program and its arguments, as they are: no shell reads them'),
})

/** What the programs that speak this protocol log in by and find their settings with. */
const NAMES = [
  'ANTHROPIC_API_KEY',
  'ANTHROPIC_AUTH_TOKEN',
  'ANTHROPIC_BASE_URL',
  'CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC',
  'CLAUDE_CODE_OAUTH_TOKEN',
  'CLAUDE_CONFIG_DIR',
  'CODEX_API_KEY',
  'CODEX_HOME',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  ...NETWORK,
]

/** As root claude-agent-acp offers no way around its questions unless it is told that it is in a box of its own. */
const AS_ROOT = { IS_SANDBOX: '1' }

/** Claude Code would ask ten times, also with a key that is wrong: three minutes until anybody hears of it. */
const fewAttempts = () => ({ CLAUDE_CODE_MAX_RETRIES: process.env.CLAUDE_CODE_MAX_RETRIES ?? '3' })

/** For claude-agent-acp. Hooks, servers and permissions that the repository names are for nobody to grant but the person who is asked. */
const NOT_THE_REPOSITORYS = { claudeCode: { options: { settingSources: ['user'], strictMcpConfig: true } } }

const named = (command: string[]) => Object.entries(TAKEN_UNASKED).filter(([name]) => command.some((word) => word.includes(name)))

const INSTALLS: Record<string, string> = {
  'claude-agent-acp': 'npm i -g @agentclientprotocol/claude-agent-acp',
  'codex-acp': 'npm i -g @agentclientprotocol/codex-acp',
}
const ANY_INSTALL = 'as its own documentation says, or name it by its whole path'

/** What lies below the worktree cannot be looked for yet. */
function isThere(program: string): boolean {
  return (program.includes('/') && !isAbsolute(program)) || whereIs(program) !== undefined
}

/**
 * Any program that speaks the Agent Client Protocol. What it uses is told by some of them and by others only of the last call, so its meters are
 * the wall clock and its turns.
 */
export const acp = acpHarness({
  name: 'acp',
  title: 'Any ACP agent',
  meters: { wall_clock: 'second', turns: 'turn' },
  options: Options,
  async probe(options) {
    const [program] = Options.safeParse(options).data?.command ?? []
    if (program === undefined || isThere(program)) return { found: true, version: 'any' }
    const place = isAbsolute(program) ? 'there' : 'on the PATH of the daemon'
    return { found: false, why: `"${program}" is not ${place}.`, install: INSTALLS[program] ?? ANY_INSTALL }
  },
  plan(launch, options) {
    const { approvals } = launch
    const { command } = Options.parse(options)
    for (const [name, files] of named(command)) refuseTaken(launch, name, files)
    const asRoot = approvals === 'allow' && process.getuid?.() === 0 ? AS_ROOT : {}
    return {
      argv: command as [string, ...string[]],
      env: { ...fewAttempts(), ...asRoot },
      inherit: NAMES,
    }
  },
  meta: ({ approvals }) => (approvals === 'allow' ? undefined : NOT_THE_REPOSITORYS),
  lingers: (program) => program === 'gemini-cli',
})
