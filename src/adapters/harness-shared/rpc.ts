import { z } from 'zod'

const Id = z.union([z.int(), z.string().max(200)])
const Params = z.record(z.string(), z.unknown()).optional()

const Request = z.object({ id: Id, method: z.string(), params: Params })
const Notification = z.object({ method: z.string(), params: Params })
const Failure = z.object({ id: Id, error: z.object({ code: z.number(), message: z.string(), data: z.unknown().optional() }) })
const Answer = z.object({ id: Id, result: z.unknown() })

type Fields = Record<string, unknown>

/** One line of JSON-RPC from a program. */
export type Message =
  | { kind: 'request'; id: string | number; method: string; params: Fields }
  | { kind: 'notification'; method: string; params: Fields }
  | { kind: 'answer'; id: string | number; result: unknown }
  | { kind: 'failure'; id: string | number; code: number; message: string; data: unknown }

/** What the line says; nothing when it is no message. What cannot fit is not tried: that takes ten times as long as what does. */
export function readMessage(text: string): Message | undefined {
  const value = parsed(text)
  const has = (name: string) => typeof value === 'object' && value !== null && name in value
  const request = has('method') && has('id') ? Request.safeParse(value).data : undefined
  if (request) return { kind: 'request', ...request, params: request.params ?? {} }
  const notification = has('method') ? Notification.safeParse(value).data : undefined
  if (notification) return { kind: 'notification', ...notification, params: notification.params ?? {} }
  const failure = has('error') ? Failure.safeParse(value).data : undefined
  if (failure)
    return { kind: 'failure', id: failure.id, code: failure.error.code, message: failure.error.message, data: failure.error.data }
  const answer = has('result') ? Answer.safeParse(value).data : undefined
  return answer && { kind: 'answer', id: answer.id, result: answer.result }
}

export const request = (id: string | number, method: string, params: unknown) => line({ id, method, params })
export const notification = (method: string, params?: unknown) => line({ method, ...(params === undefined ? {} : { params }) })
export const answer = (id: string | number, result: unknown) => line({ id, result })
export const failure = (id: string | number, code: number, message: string) => line({ id, error: { code, message } })

function line(message: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
