import { z } from 'zod'
import { acpHarness } from './harness.ts'

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
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
]

/** As root claude-agent-acp offers no way around its questions unless it is told that it is in a box of its own. */
const AS_ROOT = { IS_SANDBOX: '1' }

/** Claude Code would ask ten times, also with a key that is wrong: three minutes until anybody hears of it. */
const fewAttempts = () => ({ CLAUDE_CODE_MAX_RETRIES: process.env.CLAUDE_CODE_MAX_RETRIES ?? '3' })

/**
 * Any program that speaks the Agent Client Protocol. What it uses is told by some of them and by others only of the last call, so its meters are
 * the wall clock and its turns.
 */
export const acp = acpHarness({
  name: 'acp',
  title: 'Any ACP agent',
  meters: { wall_clock: 'second', turns: 'turn' },
  options: Options,
  async probe() {
    return { found: true, version: 'any' }
  },
  plan({ approvals }, options) {
    const { command } = Options.parse(options)
    const asRoot = approvals === 'allow' && process.getuid?.() === 0 ? AS_ROOT : {}
    return { argv: command as [string, ...string[]], env: { ...fewAttempts(), ...asRoot }, inherit: NAMES }
  },
  lingers: (program) => program === 'gemini-cli',
})
