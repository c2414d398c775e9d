import { z } from 'zod'
import type { DialectRoute } from '../../kernel/dialect.ts'
import { refuse } from '../../kernel/error.ts'

const Envelope = z.strictObject({
  agentId: z.string().min(1).max(64).optional(),
  toolName: z.string().min(1).max(200),
  input: z.record(z.string(), z.unknown()).optional(),
})

/** One address for every tool. `agentId` says for whom; who calls is proven by the token. */
export const route: DialectRoute = {
  path: '/mcp/execute',
  operation: 'execute',
  opened: (body) => {
    const { data, error } = Envelope.safeParse(body)
    if (data) return { agent: data.agentId, tool: data.toolName, input: data.input ?? {} }
    const [issue] = error.issues
    throw refuse('INVALID_INPUT', `${issue?.path.join('.') || 'The body'}: ${issue?.message ?? 'does not fit'}`, {
      hint: 'Send {"agentId": …, "toolName": …, "input": {…}}.',
    })
  },
  done: (data, timestamp) => ({ success: true, data, timestamp }),
  refused: (error, timestamp) => ({ success: false, ...error, timestamp }),
  schemas: {
    request: closed(
      {
        agentId: { type: 'string', description: 'Id or handle: the caller, or the agent for which a person acts' },
        toolName: { type: 'string' },
        input: { type: 'object' },
      },
      ['toolName'],
    ),
    done: closed({ success: { const: true }, data: { type: 'object' }, timestamp: { type: 'string', format: 'date-time' } }),
    refused: closed({
      success: { const: false },
      error: closed({ code: { type: 'string' }, message: { type: 'string' }, details: { type: 'object' } }),
      timestamp: { type: 'string', format: 'date-time' },
    }),
  },
}

function closed(properties: Record<string, object>, required = Object.keys(properties)) {
  return { type: 'object', properties, required, additionalProperties: false }
}
