import { defineCapability } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { escalate } from './tools.ts'

export const escalation = defineCapability({ name: 'escalation', tools: [escalate], migrations })

export { escalate } from './tools.ts'
