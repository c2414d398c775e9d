import { z } from 'zod'
import { type Refusal, refuse } from './error.ts'

/** How the answer of a list names the rows that it leaves out. */
export const UNREADABLE = 'unreadable'
const MOST_SHOWN = 200

/** Strings, not rows: the list that the answer is stays the only one in it. */
export const Unreadable = z.array(z.string()).optional().describe('Rows left out, and which unknown value each holds')

/** Of a look whose answer has a list of things. */
export function isList(output: z.ZodObject): boolean {
  return Object.values(output.shape).some((field) => field instanceof z.ZodArray && field.element instanceof z.ZodObject)
}

/**
 * The answer without the rows that break its schema, each the innermost of its list, and what is wrong with each. One row that somebody else
 * wrote must not hide all the others. Undefined: something that is no row of a list is wrong.
 */
export function withoutUnreadable(value: unknown, { issues }: z.ZodError): Record<string, unknown> | undefined {
  const bad = new Map<string, { path: PropertyKey[]; what: string }>()
  for (const { path, message } of issues) {
    const last = path.findLastIndex((step) => typeof step === 'number')
    if (last < 0) return undefined
    const at = path.slice(0, last + 1)
    const wrong = path.slice(last + 1)
    const what = wrong.length ? `${wrong.join('.')} is ${shown(reach(value, path))}` : message
    bad.set(at.join('.'), { path: at, what: `${nameOf(reach(value, at))}: ${what}` })
  }
  return {
    ...(without(value, new Set(bad.keys()), '') as object),
    [UNREADABLE]: [...bad.values()].map(({ what }) => what).slice(0, MOST_SHOWN),
  }
}

/**
 * What is wrong with an answer about one thing whose row holds values that nobody knows. Undefined: something else is wrong, and that is a
 * defect of ours.
 */
export function strangeValues(value: unknown, { issues }: z.ZodError): string | undefined {
  const own = issues.filter(({ path }) => !path.some((step) => typeof step === 'number'))
  const strange = own.every(({ code, path }) => code === 'invalid_value' || reach(value, path) instanceof NotJson)
  return own.length > 0 && strange ? own.map(({ path }) => `${path.join('.')} is ${shown(reach(value, path))}`).join('; ') : undefined
}

export function unreadable(strange: string): Refusal {
  return refuse('CONFLICT', `It cannot be read, since its row holds a value that nobody knows: ${strange.slice(0, 500)}.`, {
    hint: 'If a newer Signalbox wrote it, update this one. Otherwise system_health with deep, or `signalbox db check`, names such rows; put them right.',
    next_tool: 'system_health',
    next_arguments: { deep: true },
  })
}

/** Fits no schema, so that its row alone is unreadable. */
class NotJson {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  toJSON(): string {
    return this.#text
  }
}

/** What a column of JSON holds. Text that cannot be read makes the row unreadable, not the call. */
export function fromJson<T, R = T>(text: string, read: (value: T) => R = (value) => value as unknown as R): R {
  try {
    return read(JSON.parse(text) as T)
  } catch {
    return new NotJson(text) as R
  }
}

function reach(value: unknown, path: PropertyKey[]): unknown {
  return path.reduce((inner, step) => (inner as Record<PropertyKey, unknown> | undefined)?.[step], value)
}

function nameOf(row: unknown): string {
  const { handle, id } = (row ?? {}) as Record<string, unknown>
  return String(handle ?? id ?? 'a row')
}

function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'missing').slice(0, 80)
}

function without(value: unknown, left: Set<string>, at: string): unknown {
  const inside = (step: string) => (at ? `${at}.${step}` : step)
  if (Array.isArray(value)) return value.flatMap((item, i) => (left.has(inside(String(i))) ? [] : [without(item, left, inside(String(i)))]))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, without(inner, left, inside(key))]))
}
