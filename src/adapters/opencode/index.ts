import type { AgentProgram } from '../harness-shared/program.ts'
import { opencode as harness } from './harness.ts'
import { opencode as interactive } from './interactive.ts'

export const opencode: AgentProgram = { harness, interactive }
