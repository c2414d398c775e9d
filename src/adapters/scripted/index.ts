import type { AgentProgram } from '../harness-shared/program.ts'
import { scripted as harness } from './harness.ts'

export const scripted: AgentProgram = { harness, interactive: { without: 'it does as its script says, and listens to nobody' } }
