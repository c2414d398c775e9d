import { z } from 'zod'
import { defineTool } from '../../kernel/tool.ts'
import '../../ports/seals.ts'

const Head = z
  .string()
  .regex(/^[1-9][0-9]{0,14}\.[0-9a-f]{64}$/, 'not a head: <number>.<64 hex digits>')
  .describe('A head that was noted elsewhere')

export const verify = defineTool({
  name: 'audit_verify',
  title: 'Verify the audit',
  description: 'Check the log and the audit against their seals; names the first row that does not fit.',
  input: z.strictObject({ expect: Head.optional() }),
  output: z.strictObject({
    ok: z.boolean(),
    head: z.string().nullable().describe('Note it elsewhere, and give it as `expect` later'),
    sealed_events: z.number(),
    sealed_calls: z.number(),
    unsealed_events: z.number(),
    unsealed_calls: z.number(),
    first_bad: z
      .strictObject({
        table: z.enum(['events', 'calls', 'seals']),
        seq: z.number(),
        problem: z.enum(['changed', 'missing', 'inserted', 'moved']),
        seal: z.number(),
        sealed_at: z.number().nullable().describe('Milliseconds since 1970'),
      })
      .nullable(),
    expected: z.enum(['found', 'rewritten', 'cut']).nullable(),
    meaning: z.string(),
  }),
  example: {},
  impact: 'read',
  profile: 'viewer',
  look: (ctx, { expect }) => ctx.ports.seals.verify(expect),
})

export const exportAudit = defineTool({
  name: 'audit_export',
  title: 'Export the audit',
  description: 'Sealed rows and their seals as lines of JSON, a page at a time, secrets left out.',
  input: z.strictObject({ after: z.int().min(0).max(Number.MAX_SAFE_INTEGER).default(0).describe('Number of the seal to go on after') }),
  output: z.strictObject({ lines: z.array(z.string()), previous: z.string(), last: z.number(), head: z.string().nullable() }),
  example: { after: 0 },
  impact: 'read',
  profile: 'maintainer',
  by: 'person',
  look: (ctx, { after }) => ctx.ports.seals.page(after),
})
