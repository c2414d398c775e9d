import { resolve } from 'node:path'
import { UsageError } from '../../kernel/error.ts'
import type { Property } from './schema.ts'

/** Longer texts are sentences, which may hold a comma. */
const LONGEST_WORD = 100

/** The text of a flag as the schema wants it. What does not fit goes on as it is: the tool says best what is wrong with it. */
export function asValue(text: string, property: Property, flag: string): unknown {
  if (property.enum) return property.enum.find((value) => value.toLowerCase() === text.toLowerCase()) ?? text
  if (property.type === 'integer' || property.type === 'number') return text.trim() && !Number.isNaN(Number(text)) ? Number(text) : text
  if (property.type === 'boolean') return text === 'true' ? true : text === 'false' ? false : text
  if (property.type === 'object') return json(text, flag)
  if (property.type === 'array') return asList(text, property.items ?? {}, flag, false)
  if (property.type === undefined) return looselyTyped(text, property.anyOf)
  // A field that takes absolute paths only means this folder's when it is given a relative one.
  return property.pattern === '^\\/' ? resolve(text) : text
}

/** A JSON list; items between commas where an item is one word; lines where it came from a file; else one item. */
export function asList(text: string, item: Property, flag: string, whole: boolean): unknown[] {
  if (text.startsWith('[')) {
    const list = item.type === 'string' ? jsonOrNothing(text) : json(text, flag)
    if (Array.isArray(list)) return list
  }
  if (item.type === 'object') return [asValue(text, item, flag)]
  const parts = whole ? text.split(/\r?\n/) : isWord(item) ? text.split(',') : [text]
  const kept = whole || isWord(item) ? parts.map((part) => part.trim()).filter(Boolean) : parts
  return kept.map((part) => asValue(part, item, flag))
}

function isWord(item: Property): boolean {
  return item.type !== 'string' || Boolean(item.enum ?? item.pattern) || (item.maxLength ?? Number.POSITIVE_INFINITY) <= LONGEST_WORD
}

/** A value that may have several types is read as JSON where that fits, else as text. */
function looselyTyped(text: string, options: Property[] | undefined): unknown {
  const value = jsonOrNothing(text)
  if (value === undefined || !options) return value ?? text
  const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
  return options.some((option) => option.type === type || (option.type === 'integer' && type === 'number')) ? value : text
}

function json(text: string, flag: string): unknown {
  const value = jsonOrNothing(text)
  if (value === undefined) throw new UsageError(`--${flag} must be JSON.`)
  return value
}

function jsonOrNothing(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
