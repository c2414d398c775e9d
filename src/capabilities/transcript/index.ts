import { defineCapability } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { read, search } from './tools.ts'

export const transcript = defineCapability({ name: 'transcript', tools: [read, search], migrations })

export { record, type Said } from './record.ts'
export type { EntryKind } from './schema.ts'
