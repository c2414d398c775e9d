import { z } from 'zod'
import { refuse } from './error.ts'
import type { Tx } from './storage.ts'

/**
 * How an id in an input is used:
 * - `act`: the call acts on it, so it must lie in the caller's scope (the default)
 * - `mention`: it is only named (an addressee, a dependency), so it must exist
 * - `self`: it must be the caller's own id (a seed's `agentId`)
 */
export type IdUse = 'act' | 'mention' | 'self'

interface IdMeta {
  kind: string
  use: IdUse
}

const ids = z.registry<IdMeta>()

/** A random part of 130 bits behind a 50-bit time: sortable by creation, not guessable. */
const ID_BODY = '[0-9a-hjkmnp-tv-z]{36}'

/** What the id of a thing looks like, and the short handle that is accepted in its place. */
export function idSchema(kind: string, prefix: string, handle?: RegExp) {
  const full = `${prefix}_${ID_BODY}`
  const pattern = new RegExp(handle ? `^(?:${full}|${handle.source})$` : `^${full}$`)
  const example = handle ? `an id like ${prefix}_… or a handle` : `an id like ${prefix}_…`
  const schema = z.string().max(64).regex(pattern, `expected ${example} of a ${kind}`)
  ids.add(schema, { kind, use: 'act' })
  return schema
}

export function mention<S extends z.ZodType>(schema: S): S {
  return withUse(schema, 'mention')
}

export function self<S extends z.ZodType>(schema: S): S {
  return withUse(schema, 'self')
}

function withUse<S extends z.ZodType>(schema: S, use: IdUse): S {
  const meta = ids.get(schema)
  if (!meta) throw new Error('mention() and self() take an id schema')
  const copy = schema.meta({}) as S
  ids.add(copy, { ...meta, use })
  return copy
}

/** Which scope a thing lies in: `{ project: …, task: … }`. */
export type Whereabouts = Record<string, string>

/** How a capability makes one of its things addressable: by id or handle, with the scope that it lies in. */
export interface Thing {
  kind: string
  /** Finds by full id or handle; undefined when there is none. The row is for a look that asks for it with `found`. */
  find(tx: Tx, ref: string): Promise<{ id: string; within: Whereabouts; row?: unknown } | undefined>
}

/** Where ids stand inside an input: compiled once from the schema, applied to every parsed value. */
export type Places =
  | { at: 'id'; kind: string; use: IdUse }
  | { at: 'object'; fields: [string, Places][] }
  | { at: 'each'; item: Places }
  | { at: 'any'; options: { places: Places; accepts(value: unknown): boolean }[] }

/**
 * Fails on a schema kind that it does not know and on an object that lets unknown keys through: an id that hides
 * there would never be scope-checked.
 */
export function placesOf(schema: z.ZodType, path = 'input'): Places | undefined {
  const meta = ids.get(schema)
  if (meta) return { at: 'id', ...meta }
  const def = (schema as unknown as { _zod: { def: Record<string, unknown> & { type: string } } })._zod.def
  const inner = (key: string, label = path) => placesOf(def[key] as z.ZodType, label)
  switch (def.type) {
    case 'object':
      return objectPlaces(def, path)
    case 'array':
      return each(inner('element', `${path}[]`))
    case 'record':
      if (inner('keyType')) throw new Error(`${path}: the keys of a record may hide an id; use an array of objects`)
      return each(inner('valueType', `${path}.*`))
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
    case 'nonoptional':
      return inner('innerType')
    case 'union': {
      const options = (def.options as z.ZodType[]).flatMap((option) => {
        const places = placesOf(option, path)
        return places ? [{ places, accepts: (value: unknown) => option.safeParse(value).success }] : []
      })
      return options.length ? { at: 'any', options } : undefined
    }
    case 'string':
    case 'number':
    case 'boolean':
    case 'enum':
    case 'literal':
    case 'null':
      return undefined
    default:
      throw new Error(`${path}: schema kind "${def.type}" may hide an id; teach placesOf about it first`)
  }
}

function objectPlaces(def: Record<string, unknown>, path: string): Places | undefined {
  const catchall = def.catchall as { _zod: { def: { type: string } } } | undefined
  if (catchall?._zod.def.type !== 'never') throw new Error(`${path}: use z.strictObject, unknown keys must be refused`)
  const fields = Object.entries(def.shape as Record<string, z.ZodType>).flatMap(([key, field]): [string, Places][] => {
    const places = placesOf(field, `${path}.${key}`)
    return places ? [[key, places]] : []
  })
  return fields.length ? { at: 'object', fields } : undefined
}

function each(item: Places | undefined): Places | undefined {
  return item && { at: 'each', item }
}

export type OnId = (kind: string, use: IdUse, ref: string) => Promise<string>

/** Returns the value with every id replaced by what `onId` says (handles become ids). The input is not changed. */
export async function mapIds(places: Places | undefined, value: unknown, onId: OnId): Promise<unknown> {
  if (!places || value === null || value === undefined) return value
  switch (places.at) {
    case 'id':
      return typeof value === 'string' ? onId(places.kind, places.use, value) : value
    case 'each': {
      if (Array.isArray(value)) return inOrder(value, (v) => mapIds(places.item, v, onId))
      const entries = Object.entries(value as Record<string, unknown>)
      return Object.fromEntries(await inOrder(entries, async ([k, v]) => [k, await mapIds(places.item, v, onId)] as const))
    }
    case 'object': {
      if (typeof value !== 'object' || Array.isArray(value)) return value
      const copy: Record<string, unknown> = { ...(value as object) }
      for (const [key, field] of places.fields) if (key in copy) copy[key] = await mapIds(field, copy[key], onId)
      return copy
    }
    case 'any': {
      const chosen = places.options.find((option) => option.accepts(value))
      return chosen ? mapIds(chosen.places, value, onId) : value
    }
  }
}

async function inOrder<A, B>(items: A[], step: (item: A) => Promise<B>): Promise<B[]> {
  const out: B[] = []
  for (const item of items) out.push(await step(item))
  return out
}

/** `lister` is the tool that lists things of the kind, where there is one. */
export function notFound(kind: string, ref: string, lister: string | undefined) {
  const code = kind === 'agent' ? 'AGENT_NOT_FOUND' : 'RESOURCE_NOT_FOUND'
  return refuse(code, `There is no ${kind} "${ref}".`, lister ? { hint: `List them with ${lister}.`, next_tool: lister } : {})
}
