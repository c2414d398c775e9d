import type { Tool } from './tool.ts'

/** Values under keys that end like this are secrets wherever they stand, in every dialect's casing. */
const SECRET_KEY = /(token|secret|password|passwd|api[_-]?key|authorization|private[_-]?key|credentials?)$/i

/** Things that look like a secret inside other text: ours, bearer headers, and the common providers' keys. */
const SECRET_TEXT =
  /\b(sbx_[a-z]+_[A-Za-z0-9_-]{20,}|[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}=*|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,}|xox[abprs]-[A-Za-z0-9-]{10,})/g

export const REDACTED = '[redacted]'

/** What a person keeps in files that git ignores: known to this process alone, and nowhere written down. */
const toHide = new Set<string>()
let hiddenText: RegExp | undefined
const MOST_HIDDEN = 2_000

/** From now on these are replaced wherever they stand. */
export function hide(secrets: Iterable<string>): void {
  const before = toHide.size
  for (const secret of secrets) if (toHide.size < MOST_HIDDEN) toHide.add(secret)
  if (toHide.size === before) return
  // The longest first: one may begin like another.
  const words = [...toHide].sort((a, b) => b.length - a.length).map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  hiddenText = new RegExp(words.join('|'), 'g')
}

export function redactText(text: string): string {
  const known = text.replace(SECRET_TEXT, REDACTED)
  return hiddenText ? known.replace(hiddenText, REDACTED) : known
}

/** Of a terminal so wide: a secret that goes on in the next line is one too. */
export function redactScreen(text: string, columns: number): string {
  const shown: string[] = []
  for (let rest = text.split('\n'); rest.length; ) {
    const end = rest.findIndex((line) => line.length < columns)
    const lines = rest.splice(0, end < 0 ? rest.length : end + 1)
    const whole = lines.join('')
    const hidden = redactText(whole)
    shown.push(...(hidden === whole ? lines : [hidden]))
  }
  return shown.join('\n')
}

/** A copy in which every secret is replaced. */
export function redact(value: unknown): unknown {
  return replaceSecrets(value, REDACTED)
}

/** A copy in which secret fields are null: what an idempotent replay may answer. */
export function withoutSecrets(value: unknown): unknown {
  return replaceSecrets(value, null)
}

function replaceSecrets(value: unknown, replacement: string | null): unknown {
  if (typeof value === 'string') return redactText(value)
  if (Array.isArray(value)) return value.map((item) => replaceSecrets(item, replacement))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([key, inner]) =>
    SECRET_KEY.test(key) && typeof inner === 'string' ? [key, replacement] : [redactText(key), replaceSecrets(inner, replacement)],
  )
  return Object.fromEntries(entries)
}

/** A copy that says of these fields only how long they are. */
export function lengthsOnly(value: unknown, unrecorded: Tool['unrecorded'] = []): unknown {
  if (typeof value !== 'object' || value === null) return value
  const fields = typeof unrecorded === 'function' ? unrecorded(value as Record<string, unknown>) : unrecorded
  if (!fields.length) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, fields.includes(key) ? `[${JSON.stringify(inner)?.length ?? 0} characters]` : inner]),
  )
}

/** JSON for the audit: redacted. Above `limit` characters long texts in it are shortened; what is too long even then is cut as a whole. */
export function auditJson(value: unknown, limit = 4_096): string {
  const safe = redact(value) ?? null
  const whole = JSON.stringify(safe)
  if (whole.length <= limit) return whole
  const text = JSON.stringify(shortened(safe))
  return text.length <= limit ? text : JSON.stringify({ cut: text.slice(0, limit - 100), characters: whole.length })
}

const LONGEST_TEXT = 500

function shortened(value: unknown): unknown {
  if (typeof value === 'string')
    return value.length <= LONGEST_TEXT ? value : `${value.slice(0, LONGEST_TEXT).toWellFormed()}… [${value.length} characters]`
  if (Array.isArray(value)) return value.map(shortened)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shortened(inner)]))
}
