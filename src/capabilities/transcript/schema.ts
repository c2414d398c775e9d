import { z } from 'zod'
import { Timestamp } from '../../kernel/schema.ts'
import { RunId } from '../ids.ts'

/** Who or what is heard: the agent, its thoughts, a person, the program's plain output or complaint, its tools, or Signalbox. */
export const ENTRY_KINDS = ['agent', 'thought', 'person', 'program', 'error', 'tool_call', 'tool_result', 'signalbox'] as const
export type EntryKind = (typeof ENTRY_KINDS)[number]

export const EntryView = z.strictObject({
  run_id: RunId,
  number: z.int(),
  turn: z.int(),
  kind: z.enum(ENTRY_KINDS),
  name: z.string().nullable().describe('Of the tool that was called'),
  body: z.string(),
  at: Timestamp,
})
