import type { HarnessEvent } from '../../ports/harness.ts'
import { clean, clip } from '../harness-shared/lines.ts'
import { parsed } from '../harness-shared/rpc.ts'

export interface Complaint {
  code: number
  message: string
  data: unknown
}

const AUTH_REQUIRED = -32_000
const LIMIT_WORDS = /\b429\b|rate.?limit|too many requests|resource.?exhausted|quota|usage limit|overloaded/i
const LOGIN_WORDS = /\b401\b|\bunauthori[sz]ed\b|authenticat|api.?key/i

/** What a program's error means for the run, in words for a person. `login`: how one logs in to it. */
export function failureOf(complaint: Complaint, login: string, at: number): HarnessEvent {
  const words = reasonOf(complaint)
  if (isLimit(complaint)) return { type: 'limit_reached', message: words, resets_at: resetOf(complaint, at) }
  if (isLogin(complaint)) return { type: 'failed', reason: clip(`It is not logged in: ${words}. ${login}`) }
  return { type: 'failed', reason: words }
}

/** Numbers and kinds are believed first; its words only when it gives neither. */
function isLimit({ code, message, data }: Complaint): boolean {
  const { errorKind, status, codexErrorInfo } = fields(data)
  if (code === 429 || status === 429 || errorKind === 'rate_limit' || errorKind === 'overloaded') return true
  if (codexErrorInfo === 'usageLimitExceeded') return true
  return !isNumbered({ code, data }) && LIMIT_WORDS.test(`${message} ${detailsOf(data)}`)
}

function isLogin({ code, message, data }: Complaint): boolean {
  const { errorKind, status } = fields(data)
  if (code === AUTH_REQUIRED || code === 401 || code === 403 || status === 401 || errorKind === 'authentication') return true
  return !isNumbered({ code, data }) && LOGIN_WORDS.test(`${message} ${detailsOf(data)}`)
}

const isNumbered = ({ code, data }: Pick<Complaint, 'code' | 'data'>) =>
  code >= 400 || code === AUTH_REQUIRED || typeof fields(data).status === 'number'

/** Some programs put the provider's whole answer into the message. */
export function reasonOf({ message, data }: Pick<Complaint, 'message' | 'data'>): string {
  const inner = fields(fields(parsed(message)).error).message
  const plain = (typeof inner === 'string' ? inner : message).replace(/^Internal error: /, '')
  const details = detailsOf(data)
  const all = details && !plain.includes(details) ? `${plain}: ${details}` : plain
  return clip(clean(all)) || 'it told an error without words'
}

function detailsOf(data: unknown): string {
  if (typeof data === 'string') return data
  const { details, message } = fields(data)
  return [details, message].find((text) => typeof text === 'string') ?? ''
}

const LENGTH = '((?:[0-9.]{1,12} ?(?:h|m|s|hours?|minutes?|seconds?)[ ,]*(?:and )?){1,3})'
const UNTIL = new RegExp(`(?:retry|again|resets?|reset)[^0-9]{0,20}?(?:in|after)? ?${LENGTH}|retryDelay[^0-9]{1,8}${LENGTH}`, 'i')
const PART = /([0-9.]+) ?([hms])/gi
const MS = { h: 3_600_000, m: 60_000, s: 1_000 }
const LONGEST_MS = 31 * 24 * 3_600_000

/** When it gives again: `quota will reset after 3h22m10s`, `"retryDelay":"34s"`. */
function resetOf({ message, data }: Complaint, at: number): number | null {
  const { retryAfter } = fields(data)
  const found = UNTIL.exec(`${message} ${typeof data === 'string' ? data : (JSON.stringify(data) ?? '')}`)
  const told = typeof retryAfter === 'number' ? retryAfter * 1_000 : found && lengthOf(found[1] ?? found[2] ?? '')
  if (!told || !(told > 0) || told > LONGEST_MS) return null
  return Math.round(at + told)
}

function lengthOf(text: string): number {
  return [...text.matchAll(PART)].reduce((sum, [, number, unit]) => sum + Number(number) * MS[(unit as string).toLowerCase() as 'h'], 0)
}

function fields(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
