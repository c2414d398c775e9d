import type { Places } from '../../kernel/id.ts'
import type { Tool } from '../../kernel/tool.ts'

/** What the command line reads of a JSON schema. */
export interface Property {
  type?: string
  items?: Property
  enum?: string[]
  anyOf?: Property[]
  properties?: Record<string, Property>
  pattern?: string
  format?: string
  maxLength?: number
  description?: string
  default?: unknown
  /** It may also be null. */
  nullable?: boolean
}

/** The arguments of a tool; one that may also be null is offered as what it is otherwise. */
export function argumentsOf(tool: Tool): Record<string, Property> {
  return propertiesOf(tool.inputJson as Property)
}

export function propertiesOf(schema: Property | undefined): Record<string, Property> {
  return Object.fromEntries(Object.entries(schema?.properties ?? {}).map(([name, property]) => [name, unwrapped(property)]))
}

export function unwrapped(property: Property): Property {
  const [only, another] = (property.anyOf ?? []).filter((option) => option.type !== 'null')
  const nullable = property.anyOf?.some((option) => option.type === 'null')
  if (!only || another) return { ...property, nullable }
  return { ...only, description: property.description ?? only.description, default: property.default, nullable }
}

/** Those without which the tool cannot be called. */
export function requiredOf(tool: Tool): string[] {
  const properties = argumentsOf(tool)
  return ((tool.inputJson.required as string[]) ?? []).filter((name) => name in properties && properties[name]?.default === undefined)
}

/** What may stand without its flag: what is required, then the id of what the noun names (`epic get E-1`), also where that may be left out. */
export function wordsOf(tool: Tool): string[] {
  const own = `${tool.name.slice(0, tool.name.indexOf('_'))}_id`
  const required = requiredOf(tool)
  return own in argumentsOf(tool) && !required.includes(own) ? [...required, own] : required
}

export const flagOf = (name: string): string => name.replaceAll('_', '-')

/** The kind of thing whose id an argument takes: `task`, `agent` … */
export function kindOf(tool: Tool, argument: string): string | undefined {
  const fields = tool.places?.at === 'object' ? tool.places.fields : []
  return kindAt(fields.find(([name]) => name === argument)?.[1])
}

function kindAt(places: Places | undefined): string | undefined {
  if (places?.at === 'id') return places.kind
  return places?.at === 'each' ? kindAt(places.item) : undefined
}
