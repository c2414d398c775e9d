import type { AgentProgram } from '../harness-shared/program.ts'
import { command as harness } from './harness.ts'

export const command: AgentProgram = { harness, interactive: { without: 'a person starts it in a shell' } }
