import { z } from 'zod'
import { CODES, type Code, type ErrorBody, isCode, refuse } from '../kernel/error.ts'
import type { Answer, Kernel, Proof, Request } from '../kernel/invoke.ts'
import type { Principal } from '../kernel/policy.ts'
import { iso } from '../kernel/schema.ts'

/** One address for every tool, with the envelope of the document that it comes from. */
export const EXECUTE = '/mcp/execute'
const DIALECT = 'factory'

const Envelope = z.strictObject({
  agentId: z.string().min(1).max(64).optional(),
  toolName: z.string().min(1).max(200),
  input: z.record(z.string(), z.unknown()).optional(),
})

export interface Executed {
  status: number
  retrySeconds?: number
  body: Record<string, unknown>
}

type Asked = Pick<Request, 'surface' | 'lane' | 'source' | 'signal' | 'holdMs'> & { secret: string; proof?: Proof; body: unknown }

/** `agentId` says for whom; who calls is proven by the token, so it must be the caller, or an agent that a person acts for. */
export async function execute(kernel: Kernel, { secret, proof, body, ...how }: Asked): Promise<Executed> {
  const { agentId, toolName, input } = opened(body)
  const answer = await kernel.invoke({
    ...how,
    tool: toolName,
    input: input ?? {},
    credential: { secret, proof },
    dialect: DIALECT,
    actFor: agentId === undefined || isOwn(proof?.principal, agentId) ? undefined : agentId,
  })
  return enveloped(kernel, answer, toolName)
}

function enveloped(kernel: Kernel, answer: Answer, toolName: string): Executed {
  if (!answer.ok) return refusedWith(kernel, answer.error, toolName, answer.shaped)
  return { status: 200, body: { success: true, data: answer.value, timestamp: iso(kernel.parts.host.now()) } }
}

/** Also for what never became a call. The status is that of the code as the document has it. */
export function refusedWith(kernel: Kernel, error: ErrorBody, toolName: string, shaped?: Record<string, unknown>): Executed {
  const dialect = kernel.parts.registry.dialect(DIALECT)
  const called = dialect.codes[error.code]
  const code: Code = isCode(called) ? called : error.code
  const retry = error.details?.retry_after_seconds
  return {
    status: CODES[code].status,
    ...(typeof retry === 'number' ? { retrySeconds: retry } : {}),
    body: { success: false, ...(shaped ?? dialect.error(error, toolName)), timestamp: iso(kernel.parts.host.now()) },
  }
}

function isOwn(principal: Principal | undefined, agentId: string): boolean {
  return agentId === principal?.id || agentId === principal?.handle
}

function opened(body: unknown): z.output<typeof Envelope> {
  const result = Envelope.safeParse(body)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw refuse('INVALID_INPUT', `${issue?.path.join('.') || 'The body'}: ${issue?.message ?? 'does not fit'}`, {
    hint: 'Send {"agentId": …, "toolName": …, "input": {…}}.',
  })
}
