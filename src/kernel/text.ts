import { refuse } from './error.ts'

const MAX_DEPTH = 32

/**
 * Refuses what one of the engines, or JSON itself, could not store and give back unchanged: NUL, half a surrogate
 * pair, nesting that would overflow a recursive reader.
 */
export function checkText(value: unknown, path = 'input', depth = 0): void {
  if (typeof value === 'string') return checkString(value, path)
  if (typeof value !== 'object' || value === null) return
  if (depth >= MAX_DEPTH) throw refuse('INVALID_INPUT', `${path.slice(0, 60)}… is nested deeper than ${MAX_DEPTH} levels.`)
  for (const [key, inner] of Object.entries(value)) {
    checkString(key, `a key of ${path}`)
    checkText(inner, Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`, depth + 1)
  }
}

function checkString(text: string, path: string): void {
  if (text.includes('\0')) throw refuse('INVALID_INPUT', `${path} contains a NUL character.`)
  if (!text.isWellFormed()) throw refuse('INVALID_INPUT', `${path} contains half a surrogate pair: it is not valid Unicode.`)
}

/** As it can be stored: for what programs print and files are called, which nobody can be asked to say otherwise. */
export function storable<Value>(value: Value): Value {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\ufffd') as Value
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(storable) as Value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [storable(key), storable(inner)])) as Value
}

/** The same text for the same meaning: keys sorted, so that a repeated call is recognised. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, inner) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )
}
