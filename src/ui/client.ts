import type { z } from 'zod'
import type { Tools } from '../capabilities/index.ts'
import type { ErrorBody } from '../kernel/error.ts'
import { session } from './session.ts'

export type ToolName = Tools['name']
type Named<N extends ToolName> = Extract<Tools, { name: N }>
export type Input<N extends ToolName> = z.input<Named<N>['input']>
export type Output<N extends ToolName> = z.output<Named<N>['output']>

/** What the daemon refused, or that it could not be reached. */
export class CallError extends Error {
  readonly body: ErrorBody
  constructor(body: ErrorBody) {
    super(body.message)
    this.name = 'CallError'
    this.body = body
  }
}

const UNREACHABLE: ErrorBody = {
  code: 'DISCONNECTED',
  message: 'Signalbox does not answer.',
  hint: 'Is it running? Start it with: signalbox serve. What you typed is still here; try again then.',
}

/** The one way from a page to the daemon: names, arguments and answers are those of the registry. */
export async function call<N extends ToolName>(
  tool: N,
  input: Input<N>,
  more: { key?: string; signal?: AbortSignal } = {},
): Promise<Output<N>> {
  const token = session.current()?.token
  const body = more.key === undefined ? input : { ...input, idempotency_key: more.key }
  const answer = await post(tool, body, token, more.signal)
  if (answer.ok) return answer.result as Output<N>
  if (answer.error.code === 'UNAUTHENTICATED' || answer.error.code === 'AUTH_STALE_TOKEN') session.end(answer.error.message)
  throw new CallError(answer.error)
}

/** As long as a read may take: one that hangs is given up, and tried again by whoever asked. */
const PATIENCE_MS = 15_000

/** A call for what a page shows. */
export function read<N extends ToolName>(tool: N, input: Input<N>, signal: AbortSignal): Promise<Output<N>> {
  return call(tool, input, { signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]) })
}

/** The names of what whoever is signed in may call. */
export async function permitted(signal: AbortSignal): Promise<string[]> {
  const headers = { authorization: `Bearer ${session.current()?.token}` }
  const answer = await fetch('/api/tools', { headers, signal }).then(
    (response) => response.json() as Promise<{ ok: true; tools: { name: string }[] } | { ok: false; error: ErrorBody }>,
    () => ({ ok: false as const, error: UNREACHABLE }),
  )
  if (!answer.ok) throw new CallError(answer.error)
  return answer.tools.map(({ name }) => name)
}

/** Whose token this is, before it is kept. */
export async function check(token: string): Promise<Output<'agent_me'>> {
  const answer = await post('agent_me', {}, token)
  if (!answer.ok) throw new CallError(answer.error)
  return answer.result as Output<'agent_me'>
}

/** A link is a token for one call alone. */
export async function redeem(link: string): Promise<Output<'token_redeem'>> {
  const answer = await post('token_redeem', {}, link)
  if (!answer.ok) throw new CallError(answer.error)
  return answer.result as Output<'token_redeem'>
}

type Answer = { ok: true; result: unknown } | { ok: false; error: ErrorBody }

async function post(tool: ToolName, body: object, token: string | undefined, signal?: AbortSignal): Promise<Answer> {
  try {
    const response = await fetch(`/api/tools/${tool}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}) },
      body: JSON.stringify(body),
      signal,
    })
    return (await response.json()) as Answer
  } catch (error) {
    if (signal?.aborted && (signal.reason as Error).name !== 'TimeoutError') throw error
    return { ok: false, error: UNREACHABLE }
  }
}
