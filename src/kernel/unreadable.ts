import { z } from 'zod'

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
