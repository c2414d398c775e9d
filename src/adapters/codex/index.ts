import type { AgentProgram } from '../harness-shared/program.ts'
import { codex as harness } from './harness.ts'
import { codex as interactive } from './interactive.ts'

export const codex: AgentProgram = { harness, interactive }
