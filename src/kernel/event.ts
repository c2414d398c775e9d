import type { z } from 'zod'

/** Opaque to everyone but the engine that issued it. Follows commit order. */
export type Cursor = string

/** Who may read an event: everyone in its project, people only, or one principal (and people). */
export type Audience = 'everyone' | 'people' | { only: string }

export interface NewEvent {
  type: string
  /** The id of the thing that changed. */
  subject: string
  project?: string | null
  task?: string | null
  audience?: Audience
  data: Record<string, unknown>
}

export interface LoggedEvent extends NewEvent {
  cursor: Cursor
  at: number
  actor: string
  call_id: string
}

export interface EventType<Data extends z.ZodType = z.ZodType> {
  type: string
  data: Data
  (about: Omit<NewEvent, 'type' | 'data'>, data: z.output<Data>): NewEvent
}

/** As it stands in the log. */
export type EventOf<E extends EventType> = Omit<LoggedEvent, 'data'> & { data: z.output<E['data']> }

export function isEvent<E extends EventType>(event: LoggedEvent, type: E): event is LoggedEvent & { data: z.output<E['data']> } {
  return event.type === type.type
}

export function defineEvent<Data extends z.ZodType>(type: string, data: Data): EventType<Data> {
  const make = (about: Omit<NewEvent, 'type' | 'data'>, values: z.output<Data>): NewEvent => ({
    ...about,
    type,
    data: values as Record<string, unknown>,
  })
  return Object.assign(make, { type, data })
}

export interface EventFilter {
  /** Exact types, or all of a noun as `task.*`; with `!` before it what is left out. */
  types?: string[]
  subject?: string
  project?: string
  task?: string
}

export function matches(filter: EventFilter, event: LoggedEvent): boolean {
  if (filter.subject !== undefined && event.subject !== filter.subject) return false
  if (filter.project !== undefined && event.project !== filter.project) return false
  if (filter.task !== undefined && event.task !== filter.task) return false
  const { wanted, unwanted } = sides(filter)
  return !unwanted.some((t) => fits(t, event.type)) && (!wanted.length || wanted.some((t) => fits(t, event.type)))
}

/** What a filter asks for and what it leaves out. */
export function sides({ types = [] }: EventFilter): { wanted: string[]; unwanted: string[] } {
  return { wanted: types.filter((t) => !t.startsWith('!')), unwanted: types.filter((t) => t.startsWith('!')).map((t) => t.slice(1)) }
}

function fits(wanted: string, type: string): boolean {
  return wanted.endsWith('.*') ? type.startsWith(wanted.slice(0, -1)) : wanted === type
}
