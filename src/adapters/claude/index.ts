import type { AgentProgram } from '../harness-shared/program.ts'
import { claude as harness } from './harness.ts'
import { claude as interactive } from './interactive.ts'

export const claude: AgentProgram = { harness, interactive }
