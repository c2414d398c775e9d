import { z } from 'zod'
import type { HarnessEvent } from '../../ports/harness.ts'
import { acpHarness } from '../acp/client.ts'
import { OURS } from '../acp/tools-server.ts'
import { accountOf } from '../harness-shared/account.ts'
import { pathOf, probeProgram } from '../harness-shared/program.ts'
import { refuseTaken, TAKEN_UNASKED } from '../harness-shared/repository.ts'
import { PROGRAM } from './program.ts'

/** Its parent process would take a signal for itself, and the turn would run on. */
const ENV = { GEMINI_CLI_NO_RELAUNCH: 'true' }

const count = z.int().min(0)
const Quota = z.object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) })

/**
 * Gemini CLI in its ACP mode: started for one prompt it takes no message and no interrupt. It counts the tokens of a turn and tells them at its
 * end, but for a turn that was interrupted.
 */
export const gemini = acpHarness({
  name: PROGRAM.command,
  title: PROGRAM.title,
  meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn' },
  options: z.strictObject({}),
  probe: () => probeProgram(PROGRAM),
  account: accountOf(PROGRAM.account),
  plan(launch) {
    refuseTaken(launch, PROGRAM.title, TAKEN_UNASKED.gemini)
    const { model } = launch
    const argv: [string, ...string[]] = [pathOf(PROGRAM) ?? PROGRAM.command, '--acp', '--skip-trust', ...(model ? ['-m', model] : [])]
    return { argv, env: ENV, inherit: PROGRAM.environment() }
  },
  modelByArgument: true,
  lingers: () => true,
  login: PROGRAM.account.login,
  // It has no name for a call but in front of the id: run_shell_command__…
  nameOf: ({ toolCallId }) => /^(\w+?)__/.exec(toolCallId)?.[1],
  isOurs: ({ toolCallId, kind }) => toolCallId.startsWith(`mcp_${OURS}_`) && kind === 'other',
  usage({ _meta }): HarnessEvent | undefined {
    const told = Quota.safeParse(_meta).data?.quota.token_count
    return told && { type: 'usage', ...told, cached_tokens: 0, cost_usd: null, estimated: false }
  },
})
