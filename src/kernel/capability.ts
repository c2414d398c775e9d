import type { z } from 'zod'
import type { EffectType } from './effect.ts'
import type { EventType } from './event.ts'
import type { Thing } from './id.ts'
import type { PointAnswer } from './point.ts'
import type { Principal } from './policy.ts'
import type { Reactor } from './reactor.ts'
import type { Tool } from './tool.ts'

/** The words in which the engines differ when a table is made. */
export interface ColumnTypes {
  /** 64-bit integer. */
  int: string
  /** Text that sorts by code point. */
  text: string
  /** A growing primary key. */
  identity: string
  /** Stands behind the closing bracket of every table. */
  strict: string
  /** A column of `events` that keeps the order of commits, where the growing key does not. */
  commitOrder: string
  /** Statements that let only these values into a column from now on. What is there already stays, and can be put right. */
  known(table: string, column: string, values: readonly string[]): string[]
}

/** Applied once, in order, each in its own transaction. Never edited after it landed; add another. */
export interface Migration {
  name: string
  up(types: ColumnTypes): string[]
}

export interface SettingDefinition<S extends z.ZodType = z.ZodType> {
  schema: S
  default: z.output<S>
  description: string
  /** Only the owner reads it back; elsewhere it is masked. */
  secret?: boolean
}

/** A thing that MCP clients can read and subscribe to by URI; answered by a tool, so the same permissions hold. */
export interface Resource {
  /** `signalbox://task/{id}` */
  uri: string
  name: string
  description: string
  tool: string
  /** The tool's argument that takes the `{id}`; none when the URI has no variable. */
  argument?: string
}

export interface Prompt {
  name: string
  title: string
  description: string
  text(principal: Principal): string
}

/** By table and column: every value that there is, or that each is JSON. */
export type KnownValues = Record<string, Record<string, readonly string[] | typeof JSON_TEXT>>
export const JSON_TEXT = 'json'

export interface Capability {
  name: string
  tools: Tool[]
  migrations?: Migration[]
  /** What the program knows of the values in its columns. A check looks for others; a migration keeps those of closed sets out. */
  values?: KnownValues
  things?: Thing[]
  events?: EventType[]
  effects?: EffectType[]
  reactors?: Reactor[]
  /** What it says where others ask; see point.ts. */
  answers?: PointAnswer[]
  settings?: Record<string, SettingDefinition>
  resources?: Resource[]
  prompts?: Prompt[]
}

export function defineCapability<const C extends Capability>(capability: C): C {
  return capability
}

export function setting<S extends z.ZodType>(
  schema: S,
  value: z.output<S>,
  description: string,
  more: Pick<SettingDefinition, 'secret'> = {},
): SettingDefinition<S> {
  return { schema, default: value, description, ...more }
}
