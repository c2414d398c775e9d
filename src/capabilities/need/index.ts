import { defineCapability } from '../../kernel/capability.ts'
import { list } from './tools.ts'

/** What needs a person, as all the others know it. */
export const need = defineCapability({ name: 'need', tools: [list] })

export { isAfter, type Mark, type Need, type Needed, type NeedKind, needs, type Question, type Step } from './point.ts'
export { StepView } from './schema.ts'
