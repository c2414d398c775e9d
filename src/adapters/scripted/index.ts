import type { AgentProgram } from '../harness-shared/program.ts'
import { scripted as harness } from './harness.ts'

export const scripted: AgentProgram = { harness, interactive: { without: 'it follows its script and takes no prompt' } }
