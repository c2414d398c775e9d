import type { Row } from './call.ts'
import type { Handles } from './handles.ts'
import type { Property } from './schema.ts'
import { type Paint, toneOf } from './style.ts'
import { oneLine, plain } from './text.ts'
import { ago, bytes, span } from './when.ts'

/** What a view needs beside the answer. */
export interface Look {
  columns: number
  paint: Paint
  handles: Handles
  now: number
}

const TIME_KEY = /(?:^|_)(?:at|timestamp)$/
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/

export function isRow(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isRows(value: unknown): value is Row[] {
  return Array.isArray(value) && value.length > 0 && value.every(isRow)
}

export function isEmpty(value: unknown): boolean {
  return (
    value === null ||
    value === undefined ||
    value === '' ||
    (Array.isArray(value) && !value.length) ||
    (isRow(value) && !Object.keys(value).length)
  )
}

/**
 * What the name of a field says in words: `assignee_id` is `assignee`, and in a list of tasks `task_type` is `type`.
 * `beside`: the other fields, so that `token_id` beside `token` stays a `token id`.
 */
export function labelOf(key: string, noun = '', beside: string[] = []): string {
  const own = noun && key.startsWith(`${noun}_`) && key !== `${noun}_id` ? key.slice(noun.length + 1) : key
  const cut = own.replace(/_(?:id|at|bytes|seconds|ms)$/, '').replace(/_ids$/, 's')
  const short = cut !== key && beside.includes(cut) ? own : cut
  return oneLine(short.replaceAll('_', ' ') || key)
}

/** `holder_id` beside `holder`, or the id of the very thing whose handle stands there. */
export function saysTwice(key: string, row: Row, look: Look): boolean {
  const handle = key.endsWith('_id') ? look.handles.get(String(row[key])) : undefined
  return handle !== undefined && (handle === row.handle || handle === row[key.slice(0, -3)])
}

/** A value as a person reads it: handles for ids, how long ago, yes and no, sizes with a unit. Line breaks stay. */
export function textOf(key: string, value: unknown, look: Look): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (typeof value === 'number') return numberOf(key, value)
  if (Array.isArray(value)) return value.map((item) => textOf(key, item, look)).join(', ')
  if (isRow(value)) return pairs(value, look)
  const text = String(value)
  if (TIME_KEY.test(key) && TIME.test(text)) return ago(text, look.now)
  return plain(key === 'id' ? text : (look.handles.get(text) ?? text))
}

export function lineOf(key: string, value: unknown, look: Look): string {
  return isEmpty(value) ? '-' : oneLine(textOf(key, value, look))
}

/** Words out of a closed set, yes and no: what colours help with. */
export function isState(property: Property | undefined): boolean {
  return Boolean(property?.enum) || property?.type === 'boolean'
}

export function toned(text: string, property: Property | undefined, look: Look): string {
  return isState(property) && property?.type !== 'boolean' ? look.paint(toneOf(text.trim()), text) : text
}

function numberOf(key: string, value: number): string {
  if (key.endsWith('_bytes')) return bytes(value)
  if (key.endsWith('_seconds')) return span(value)
  if (key.endsWith('_ms')) return `${Number(value.toFixed(1))} ms`
  return String(value)
}

function pairs(row: Row, look: Look): string {
  return Object.entries(row)
    .filter(([, value]) => !isEmpty(value))
    .map(([key, value]) => `${oneLine(key)}=${lineOf(key, value, look)}`)
    .join(' ')
}
