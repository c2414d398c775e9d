import type { Answer } from './answer.ts'
import type { Conversation } from './conversation.ts'
import type { Fault } from './script.ts'

// biome-ignore lint/suspicious/noExplicitAny: what programs send is read by name, and nothing of it is trusted
export type Body = any

/** One line of a stream; `event` where the API names them. */
export interface Chunk {
  event?: string
  data: unknown
}

/** One way in which a model is asked. */
export interface Api {
  name: string
  path: RegExp
  read(body: Body, path: string): Conversation
  stream(answer: Answer, conversation: Conversation): Chunk[]
  whole(answer: Answer, conversation: Conversation): unknown
  refusal(fault: Omit<Fault, 'times'>): unknown
}

/** Of a content that is a text or a list of parts. */
export function textIn(content: Body): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? content.map((part) => (typeof part === 'string' ? part : (part?.text ?? ''))).join('\n') : ''
}

export function listIn(value: Body): Body[] {
  return Array.isArray(value) ? value : []
}

let made = 0
export function freshId(prefix: string): string {
  made += 1
  return `${prefix}${made}_${Math.random().toString(36).slice(2, 12)}`
}

export function messageOf({ status }: Pick<Fault, 'status'>): string {
  return `The scripted model says ${status}.`
}
