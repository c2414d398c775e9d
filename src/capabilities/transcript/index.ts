import { defineCapability } from '../../kernel/capability.ts'
import { migrations } from './migrations.ts'
import { ENTRY_KINDS } from './schema.ts'
import { read, search } from './tools.ts'

export const transcript = defineCapability({
  name: 'transcript',
  tools: [read, search],
  migrations,
  values: { transcript_entries: { kind: ENTRY_KINDS } },
})

export { record, type Said } from './record.ts'
export type { EntryKind } from './schema.ts'
