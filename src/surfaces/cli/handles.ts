import { call, type Reach, type Row } from './call.ts'
import { named, tools } from './names.ts'
import { argumentsOf, kindOf, type Property, propertiesOf } from './schema.ts'

const ID = /^([a-z]+)_[0-9a-hjkmnp-tv-z]{36}$/
const HANDLE = /^[A-Za-z][A-Za-z0-9-]*$/
const PATIENCE_MS = 2_000
const MOST = 200

/** Ids as people know them: `ann` for `agent_01…`. One that has no handle, or that is not found, stays as it is. */
export type Handles = Map<string, string>

/** Of every id in an answer: from the answer itself, else from the list of its kind. Never fails: an id is readable too. */
export async function handlesIn(result: Row, reach: Reach): Promise<Handles> {
  const handles: Handles = new Map()
  const wanted = new Set<string>()
  collect(result, wanted, handles)
  const open = [...wanted].filter((id) => !handles.has(id))
  const kinds = new Set(open.map((id) => ID.exec(id)?.[1] as string))
  const sources = [...kinds].flatMap((kind) => lister(kind) ?? [])
  const rows = await Promise.all(sources.map((source) => source(reach).catch(() => [])))
  for (const { id, handle } of rows.flat()) handles.set(String(id), String(handle))
  return handles
}

/** Whether some verb takes ids of this kind: only those are worth a column. */
export function isTaken(id: string): boolean {
  // Entries of the decision log have the id of their call, and which of its entries they are.
  const kind = ID.exec(id.split('.')[0] as string)?.[1]
  return kind === undefined || tools.some((tool) => Object.keys(argumentsOf(tool)).some((name) => kindOf(tool, name) === kind))
}

/** The handles of one kind, with what they stand for. */
export async function listed(kind: string, reach: Reach, signal: AbortSignal): Promise<{ handle: string; label: string }[]> {
  const rows = (await lister(kind)?.(reach, signal)) ?? []
  return rows.map((row) => ({ handle: String(row.handle), label: String(row.title ?? row.name ?? '') }))
}

/** What a thing is called, to be sure that it is the right one; undefined when that cannot be found out. */
export async function titleOf(kind: string, ref: string, reach: Reach): Promise<string | undefined> {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const getter = named(`${kind}_get`)
  try {
    if (!getter) return (await listed(kind, reach, signal)).find(({ handle }) => handle === ref)?.label
    const result = await call(reach, getter.name, { [`${kind}_id`]: ref }, { signal })
    const thing = { ...result, ...(result[kind] as Row | undefined) }
    return (thing.title ?? thing.name) as string | undefined
  } catch {
    return undefined
  }
}

function collect(value: unknown, ids: Set<string>, handles: Handles): void {
  if (typeof value === 'string' && ID.test(value)) ids.add(value)
  if (typeof value !== 'object' || value === null) return
  const { id, handle } = value as Row
  if (typeof id === 'string' && typeof handle === 'string') handles.set(id, handle)
  for (const [key, inner] of Object.entries(value)) {
    collect(inner, ids, handles)
    // `holder_id` beside `holder`: its handle stands there already.
    const beside = key.endsWith('_id') ? (value as Row)[key.slice(0, -3)] : undefined
    if (typeof beside === 'string' && HANDLE.test(beside)) handles.set(String(inner), beside)
  }
}

type Source = (reach: Reach, signal?: AbortSignal) => Promise<Row[]>

const listers = new Map<string, Source | undefined>()

/** `<kind>_list`, where its rows have handles. */
function lister(kind: string): Source | undefined {
  if (!listers.has(kind)) listers.set(kind, makeLister(kind))
  return listers.get(kind)
}

function makeLister(kind: string): Source | undefined {
  const tool = named(`${kind}_list`)
  const [key] = Object.entries(propertiesOf(tool?.outputJson as Property)).find(([, list]) => list.items?.properties?.handle) ?? []
  if (!tool || !key) return undefined
  const takes = argumentsOf(tool)
  // What is worked on now is among the newest.
  const input = { ...('limit' in takes ? { limit: MOST } : {}), ...(takes.order?.enum?.includes('newest') ? { order: 'newest' } : {}) }
  return async (reach, signal = AbortSignal.timeout(PATIENCE_MS)) => (await call(reach, tool.name, input, { signal }))[key] as Row[]
}
