import type { Dialect, DialectRoute } from '../kernel/dialect.ts'
import { CODES, type Code, type ErrorBody, isCode } from '../kernel/error.ts'
import type { Kernel, Proof, Request } from '../kernel/invoke.ts'
import type { Principal } from '../kernel/policy.ts'
import type { Registry } from '../kernel/registry.ts'
import { iso } from '../kernel/schema.ts'

export type RoutedDialect = Dialect & { route: DialectRoute }

export interface Executed {
  status: number
  retrySeconds?: number
  body: Record<string, unknown>
}

type Asked = Pick<Request, 'surface' | 'lane' | 'source' | 'signal' | 'holdMs'> & { secret: string; proof?: Proof; body: unknown }

/** The dialects whose document has an address of its own. */
export function routed({ dialects }: Registry): RoutedDialect[] {
  return [...dialects.values()].filter((dialect): dialect is RoutedDialect => dialect.route !== undefined)
}

/** Who calls is proven by the token, so an agent that the body names must be the caller, or one that a person acts for. */
export async function execute(kernel: Kernel, dialect: RoutedDialect, { secret, proof, body, ...how }: Asked): Promise<Executed> {
  const { agent, tool, input } = dialect.route.opened(body)
  const answer = await kernel.invoke({
    ...how,
    tool,
    input,
    credential: { secret, proof },
    dialect: dialect.name,
    actFor: agent === undefined || isOwn(proof?.principal, agent) ? undefined : agent,
  })
  if (!answer.ok) return refusedWith(kernel, dialect, answer.error, answer.shaped)
  return { status: 200, body: dialect.route.done(answer.value, iso(kernel.parts.host.now())) }
}

/** Also for what never became a call. The status is that of the code as the document has it. */
export function refusedWith(kernel: Kernel, dialect: RoutedDialect, error: ErrorBody, shaped = dialect.error(error, '')): Executed {
  const retry = error.details?.retry_after_seconds
  return {
    status: statusOf(dialect, error.code),
    ...(typeof retry === 'number' ? { retrySeconds: retry } : {}),
    body: dialect.route.refused(shaped, iso(kernel.parts.host.now())),
  }
}

export function statusOf({ codes }: Dialect, code: Code): number {
  const called = codes[code]
  return CODES[isCode(called) ? called : code].status
}

function isOwn(principal: Principal | undefined, agent: string): boolean {
  return agent === principal?.id || agent === principal?.handle
}
