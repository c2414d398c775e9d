import type { AgentProgram } from '../harness-shared/program.ts'
import { acp as harness } from './harness.ts'

export const acp: AgentProgram = {
  harness,
  interactive: { without: 'the protocol has no screen; a program behind it that has one gets a folder of its own' },
}
