import { defineCapability } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { escalate, send } from './tools.ts'

export const escalation = defineCapability({ name: 'escalation', tools: [send], migrations, effects: [escalate] })

export { escalate } from './tools.ts'
