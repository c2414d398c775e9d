import type { AgentProgram } from '../harness-shared/program.ts'
import { acp as harness } from './harness.ts'

export const acp: AgentProgram = {
  harness,
  interactive: { without: 'the protocol has no screen: a program that speaks it may have one, and is then a program of its own here' },
}
