import type { AgentProgram } from '../harness-shared/program.ts'
import { shell as interactive } from './interactive.ts'

export const shell: AgentProgram = {
  harness: { without: 'nobody is in it: what is to be run without a person, command runs' },
  interactive,
}
