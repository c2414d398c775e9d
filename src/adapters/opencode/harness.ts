import { z } from 'zod'
import type { Approvals } from '../../ports/harness.ts'
import { acpHarness } from '../acp/client.ts'
import { OURS } from '../acp/tools-server.ts'
import { accountOf } from '../harness-shared/account.ts'
import { pathOf, probeProgram } from '../harness-shared/program.ts'
import { refuseTaken, TAKEN_UNASKED } from '../harness-shared/repository.ts'
import { PROGRAM } from './program.ts'

/** On top of what the person's own settings say; our tools need no permission. */
const ASKING = { bash: 'ask', edit: 'ask', webfetch: 'ask', websearch: 'ask', external_directory: 'ask', [`${OURS}_*`]: 'allow' }
const PERMISSIONS: Record<Approvals, Record<string, string>> = { allow: { '*': 'allow' }, ask: ASKING, deny: { ...ASKING, edit: 'allow' } }

/** As it stands in its log when the model did not answer; the smaller model only makes titles. */
const STREAM_ERROR = /^timestamp=\S+ level=ERROR .*message="stream error" .*small=false .*error\.error="(?:AI_\w+: )?([^"]{0,1000})/

/**
 * opencode in its ACP mode: started for one prompt it takes no message and no interrupt. It tells the tokens of the last call of a turn only,
 * and the cost of a session with all its lives, so neither can be limited. That it tries a model again it says in its log alone, which
 * is why that is asked for.
 */
export const opencode = acpHarness({
  name: PROGRAM.command,
  title: PROGRAM.title,
  meters: { wall_clock: 'second', turns: 'turn' },
  options: z.strictObject({}),
  probe: () => probeProgram(PROGRAM),
  account: accountOf(PROGRAM.account),
  plan(launch) {
    refuseTaken(launch, PROGRAM.title, TAKEN_UNASKED.opencode)
    return {
      argv: [pathOf(PROGRAM) ?? PROGRAM.command, 'acp', '--print-logs', '--log-level', 'ERROR'],
      env: { OPENCODE_PERMISSION: JSON.stringify(PERMISSIONS[launch.approvals]), OPENCODE_DISABLE_AUTOUPDATE: '1' },
      inherit: PROGRAM.environment(),
    }
  },
  login: PROGRAM.account.login,
  retries: (line) => STREAM_ERROR.exec(line)?.[1],
})
