import type { Places } from '../../kernel/id.ts'
import { code, codes } from './markdown.ts'

/** As much of JSON Schema as comes out of our declarations. */
export interface JsonSchema {
  type?: string | string[]
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  items?: JsonSchema
  properties?: Record<string, JsonSchema>
  required?: string[]
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minItems?: number
  maxItems?: number
}

export interface Field {
  /** `tasks[].title` for what is nested. */
  path: string
  schema: JsonSchema
  required: boolean
  id: Extract<Places, { at: 'id' }> | undefined
}

/** Every field of an object, those of nested objects after the one that holds them. */
export function fieldsOf(schema: JsonSchema, places?: Places, prefix = ''): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const inner = single(property)
    const here = placesAt(places, name)
    const path = `${prefix}${name}`
    const field: Field = { path, schema: property, required: schema.required?.includes(name) ?? false, id: idOf(here) }
    const nested =
      inner.type === 'array' && inner.items
        ? fieldsOf(inner.items, here?.at === 'each' ? here.item : undefined, `${path}[].`)
        : fieldsOf(inner, here, `${path}.`)
    return [field, ...nested]
  })
}

/** Of a schema that may also be null, the other part. */
export function single(schema: JsonSchema): JsonSchema {
  const [only, another] = optionsOf(schema).filter((option) => option.type !== 'null')
  return only && !another ? only : schema
}

export function typeOf(schema: JsonSchema, id?: Field['id']): string {
  const options = optionsOf(schema)
  if (options.length > 1) return options.map((option) => (option.type === 'null' ? 'null' : typeOf(option, id))).join(' or ')
  if (schema.type === 'array') return `list of ${id || !schema.items ? `${id?.kind ?? 'any'} ids` : plural(schema.items)}`
  if (id) return `${id.kind} id`
  if (schema.enum) return `one of ${codes(schema.enum.map(String))}`
  if (schema.const !== undefined) return code(JSON.stringify(schema.const))
  return schema.format === 'date-time' ? 'time' : String(schema.type ?? 'any')
}

/** What a value must keep to besides its type, as phrases. */
export function limitsOf(schema: JsonSchema, id?: Field['id']): string[] {
  const s = single(schema)
  if (s.type === 'array') return [...between(s.minItems, s.maxItems, 'items'), ...(id || !s.items ? [] : limitsOf(s.items).map(each))]
  if (id || s.enum) return []
  return [
    ...between(s.minLength, s.maxLength, 'characters'),
    ...between(bound(s.minimum), bound(s.maximum), ''),
    ...(s.exclusiveMinimum === undefined ? [] : [`above ${s.exclusiveMinimum}`]),
    ...(s.pattern === undefined || s.format ? [] : [`matches ${code(s.pattern)}`]),
  ]
}

function optionsOf(schema: JsonSchema): JsonSchema[] {
  if (Array.isArray(schema.type)) return schema.type.map((type) => (type === 'null' ? { type } : { ...schema, type }))
  return schema.anyOf ?? [schema]
}

function plural(items: JsonSchema): string {
  if (items.enum) return codes(items.enum.map(String))
  return optionsOf(items).length > 1 || !items.type ? typeOf(items) : `${items.type}s`
}

function between(least: number | undefined, most: number | undefined, unit: string): string[] {
  const words = (text: string) => [`${text} ${unit}`.trim()]
  if (least !== undefined && most !== undefined) return words(least === 0 && unit ? `at most ${most}` : `${least} to ${most}`)
  if (most !== undefined) return words(`at most ${most}`)
  return least === undefined ? [] : words(`at least ${least}`)
}

const each = (phrase: string) => `each ${phrase}`

/** Every integer has these; they say nothing. */
function bound(value: number | undefined): number | undefined {
  return value !== undefined && Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : value
}

function placesAt(places: Places | undefined, name: string): Places | undefined {
  return places?.at === 'object' ? places.fields.find(([field]) => field === name)?.[1] : undefined
}

function idOf(places: Places | undefined): Field['id'] {
  if (places?.at === 'each') return idOf(places.item)
  return places?.at === 'id' ? places : undefined
}
