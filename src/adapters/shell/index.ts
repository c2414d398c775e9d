import type { AgentProgram } from '../harness-shared/program.ts'
import { shell as interactive } from './interactive.ts'

export const shell: AgentProgram = {
  harness: { without: 'the command harness runs what needs no person' },
  interactive,
}
