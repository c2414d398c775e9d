import type { AgentProgram } from '../harness-shared/program.ts'
import { gemini as harness } from './harness.ts'
import { gemini as interactive } from './interactive.ts'

export const gemini: AgentProgram = { harness, interactive }
