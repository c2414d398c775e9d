import { z } from 'zod'
import type { HarnessEvent } from '../../ports/harness.ts'
import { acpHarness } from '../acp/harness.ts'
import { OURS } from '../acp/tools-server.ts'
import { type Account, accountOf } from '../harness-shared/account.ts'
import { type Program, pathOf, probeProgram } from '../harness-shared/program.ts'
import { refuseTaken, TAKEN_UNASKED } from '../harness-shared/repository.ts'

const PROGRAM: Program = {
  command: 'gemini',
  package: '@google/gemini-cli',
  least: '0.61.0',
  install: 'npm install -g @google/gemini-cli',
}

/** What it logs in by, and finds its models with. */
const NAMES = [
  'GEMINI_API_KEY',
  'GOOGLE_API_KEY',
  'GOOGLE_APPLICATION_CREDENTIALS',
  'GOOGLE_CLOUD_LOCATION',
  'GOOGLE_CLOUD_PROJECT',
  'GOOGLE_GEMINI_BASE_URL',
  'GOOGLE_GENAI_USE_GCA',
  'GOOGLE_GENAI_USE_VERTEXAI',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'NODE_EXTRA_CA_CERTS',
]

export const ACCOUNT: Account = {
  variables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_GENAI_USE_GCA', 'GOOGLE_GENAI_USE_VERTEXAI'],
  files: () => [
    { path: '.gemini/oauth_creds.json' },
    { path: '.gemini/google_accounts.json', says: /"active"\s*:\s*"/ },
    { path: '.gemini/.env', says: /^\s*(GEMINI|GOOGLE)_API_KEY\s*=/m },
  ],
  login: 'Run gemini once in a terminal, or set GEMINI_API_KEY where the daemon is started.',
}

/** Its parent process would take a signal for itself, and the turn would run on. */
const ENV = { GEMINI_CLI_NO_RELAUNCH: 'true' }

const count = z.int().min(0)
const Quota = z.object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) })

/**
 * Gemini CLI in its ACP mode: started for one prompt it takes no message and no interrupt. It counts the tokens of a turn and tells them at its
 * end, but for a turn that was interrupted.
 */
export const gemini = acpHarness({
  name: 'gemini',
  title: 'Gemini CLI',
  meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn' },
  options: z.strictObject({}),
  probe: () => probeProgram(PROGRAM),
  account: accountOf(ACCOUNT),
  plan(launch) {
    refuseTaken(launch, 'Gemini CLI', TAKEN_UNASKED.gemini)
    const { model } = launch
    const argv: [string, ...string[]] = [pathOf(PROGRAM) ?? PROGRAM.command, '--acp', '--skip-trust', ...(model ? ['-m', model] : [])]
    return { argv, env: ENV, inherit: NAMES }
  },
  modelByArgument: true,
  lingers: () => true,
  login: ACCOUNT.login,
  // It has no name for a call but in front of the id: run_shell_command__…
  nameOf: ({ toolCallId }) => /^(\w+?)__/.exec(toolCallId)?.[1],
  isOurs: ({ toolCallId, kind }) => toolCallId.startsWith(`mcp_${OURS}_`) && kind === 'other',
  usage({ _meta }): HarnessEvent | undefined {
    const told = Quota.safeParse(_meta).data?.quota.token_count
    return told && { type: 'usage', ...told, cached_tokens: 0, cost_usd: null, estimated: false }
  },
})
