import type { z } from 'zod'
import { AgentId, MailId, TaskId } from '../capabilities/ids.ts'
import type { Tools } from '../capabilities/index.ts'
import { codesLike, type Dialect, type DialectTool, type Translation } from '../kernel/dialect.ts'
import { type Code, type ErrorBody, refuse } from '../kernel/error.ts'
import { notFound } from '../kernel/id.ts'
import type { Principal } from '../kernel/policy.ts'

export type Args = Record<string, unknown>

type Named<N extends Tools['name']> = Extract<Tools, { name: N }>
export type Input<N extends Tools['name']> = z.input<Named<N>['input']>
export type Output<N extends Tools['name']> = z.output<Named<N>['output']>

type Snake<S extends string> = S extends `${infer C}${infer Rest}` ? `${C extends Lowercase<C> ? C : `_${Lowercase<C>}`}${Snake<Rest>}` : ''

/** Translates values in both directions. `in` gets whatever a client sent, and must not throw. */
export interface Words {
  json: { type: string; enum?: string[] }
  in(documented: unknown): unknown
  out(native: unknown): unknown
}

/** A documented argument. `in` without an enum leaves it to the native tool to refuse a value. */
export interface Field<A = PropertyKey> extends Partial<Pick<Words, 'in' | 'out'>> {
  json: object
  /** The native argument, where that is not its name in snake_case; null when it is not passed on. */
  native?: A | null
  /** The kind of thing that it names. Documents have ids of other forms: those are not found, rather than invalid. */
  names?: keyof typeof IDS
}

/** A documented object: each field is a native field, a translated native field, or computed from all of them. */
export type Shape<T> = Record<string, (keyof T & string) | readonly [keyof T & string, Pick<Words, 'out'>] | ((from: T) => unknown)>

interface Asked {
  args: Args
  principal: Principal
}

/** What a documented call means: a native tool, its arguments and its answer. */
interface Meaning<N, In, Out, K extends string> {
  native: N
  fields?: { [P in K]: Snake<P> extends keyof In ? Field<keyof In> : Field<keyof In> & { native: keyof In | null } }
  required?: NoInfer<K>[]
  /** Native arguments for calls that leave them out. */
  defaults?: Partial<In>
  /** Native arguments that are always set, or that follow from the others and the caller; may throw a refusal. */
  adds?: Partial<In> | ((given: Partial<In>, principal: Principal) => Partial<In>)
  answer: Shape<Out> | ((answer: Out, asked: Asked) => Args)
}

type AnyMeaning = Meaning<string, Args, Args, string>

interface Told extends Pick<DialectTool, 'name' | 'description' | 'impact' | 'unlisted' | 'critical'> {
  /** Other meanings for some arguments; the first that matches. */
  instead?: { when(args: Args, principal: Principal): boolean; means: AnyMeaning }[]
}

type Typed<N extends Tools['name'], K extends string> = Meaning<N, Input<N>, Output<N>, K>
export type Declared = AnyMeaning & Told

/** A native tool or field that does not exist does not compile. */
export function tool<N extends Tools['name'], K extends string>(declared: Typed<N, K> & Told): Declared {
  return declared as unknown as Declared
}

export function meaning<N extends Tools['name'], K extends string>(declared: Typed<N, K>): AnyMeaning {
  return declared as unknown as AnyMeaning
}

/** An error in the names of the document. */
export interface Said extends Omit<ErrorBody, 'code' | 'details'> {
  tool: string
  caller?: Principal
  code: string
  native: Code
  /** The role that may not use the tool at all. */
  denied?: string
  facts: Args
  issues?: { path: string; message: string }[]
}

interface Declaration extends Omit<Dialect, 'tools' | 'codes' | 'error'> {
  /** Of the arguments. */
  casing: Casing
  tools: Declared[]
  /** Those whose name differs from the native one. */
  codes: Partial<Record<Code, string>>
  /** Wraps every answer. */
  done?(answer: Args, tool: Declared): Args
  error(said: Said): Args
}

export function defineDialect({ casing, tools: declared, codes: renamed, done, error, ...rest }: Declaration): Dialect {
  const codes = codesLike(renamed)
  const names = namesOf(declared, casing)
  return {
    ...rest,
    tools: declared.map((one) => dialectTool(one, casing, done)),
    codes,
    error: (body, tool, caller) => present(error({ ...inItsNames(body, tool, names), tool, caller, code: codes[body.code] })),
  }
}

function dialectTool(declared: Declared, casing: Casing, done: Declaration['done']): DialectTool {
  const { name, description, impact, unlisted, critical, fields = {}, required, instead } = declared
  const means = (meaning: AnyMeaning) => translation(name, meaning, casing, (answer) => done?.(answer, declared) ?? answer)
  return {
    ...{ name, description, impact, unlisted, critical },
    fields: Object.fromEntries(Object.entries(fields).map(([field, declared]) => [field, nativeOf(field, declared)])),
    inputJson: {
      type: 'object',
      // Not closed: an idempotency key is accepted too, and the native schema refuses unknown keys.
      properties: Object.fromEntries(Object.entries(fields).map(([field, { json }]) => [field, json])),
      ...(required ? { required } : {}),
    },
    ...means(declared),
    instead: instead?.map((other) => ({ when: other.when, ...means(other.means) })),
  }
}

function translation(tool: string, meaning: AnyMeaning, casing: Casing, done: (answer: Args) => Args): Translation {
  const { native, required = [], defaults, adds, answer } = meaning
  const fields = new Map<string, Field<string>>(Object.entries(meaning.fields ?? {}))
  return {
    native,
    toNative: (args, principal) => {
      checkDocumented(tool, fields, required, args)
      const given = { ...defaults, ...renamed(args, fields, casing) }
      return { ...given, ...(typeof adds === 'function' ? adds(given, principal) : adds) }
    },
    fromNative: (from, args, principal) => done(typeof answer === 'function' ? answer(from, { args, principal }) : shaped(answer, from)),
  }
}

function renamed(args: Args, fields: Map<string, Field<string>>, casing: Casing): Args {
  const entries = Object.entries(args).flatMap(([name, value]): [string, unknown][] => {
    const field = fields.get(name)
    const native = field ? nativeOf(name, field) : CASES[casing].native(name)
    return native === null || value === undefined ? [] : [[native, field?.in ? field.in(value) : value]]
  })
  return Object.fromEntries(entries)
}

/** Refuses what the native schema would accept, or would report in native words. */
function checkDocumented(tool: string, fields: Map<string, Field<string>>, required: string[], args: Args): void {
  const missing = required.filter((path) => args[path] === undefined).map((path) => ({ path, message: 'is missing' }))
  const wrong = Object.entries(args).flatMap(([path, value]) => {
    const { in: read, json } = fields.get(path) ?? {}
    const { enum: values } = (json ?? {}) as Words['json']
    return read && values && !(values as unknown[]).includes(value) ? [{ path, message: `must be one of ${values.join(', ')}` }] : []
  })
  const issues = [...missing, ...wrong]
  if (issues.length) throw refuse('INVALID_INPUT', `${tool}: ${issues.map(({ path }) => path).join(', ')}`, { details: { issues } })
  for (const [path, value] of Object.entries(args)) requirePossible(fields.get(path)?.names, value)
}

function requirePossible(kind: keyof typeof IDS | undefined, value: unknown): void {
  if (kind && typeof value === 'string' && !IDS[kind].safeParse(value).success) throw notFound(kind, value.slice(0, 64), undefined)
}

/** An object inside an answer. */
export function view<T>(shape: Shape<T>): (from: T) => Args {
  return (from) => shaped(shape as Shape<Args>, from as Args)
}

function shaped(shape: Shape<Args>, from: Args): Args {
  const value = (source: Shape<Args>[string]) => {
    if (typeof source === 'function') return source(from)
    return typeof source === 'string' ? from[source] : source[1].out(from[source[0]])
  }
  return Object.fromEntries(Object.entries(shape).map(([name, source]) => [name, value(source)]))
}

/** From native names to documented ones. */
interface Names {
  fact(native: string): string
  argument(tool: string, native: string): string
  /** Arguments with their values. */
  call(tool: string, args: Args): Args
}

function namesOf(tools: Declared[], casing: Casing): Names {
  const fact = CASES[casing].documented
  const fields = new Map(tools.map(({ name, fields = {} }) => [name, Object.entries<Field<string>>(fields)]))
  const find = (tool: string, native: string) => fields.get(tool)?.find(([name, field]) => nativeOf(name, field) === native)
  const argument = (tool: string, native: string) => find(tool, native)?.[0] ?? fact(native)
  const spoken = (tool: string, native: string, value: unknown) => find(tool, native)?.[1].out?.(value) ?? value
  const call = (tool: string, args: Args) =>
    Object.fromEntries(Object.entries(args).map(([native, value]) => [argument(tool, native), spoken(tool, native, value)]))
  return { fact, argument, call }
}

function inItsNames({ code, details = {}, ...body }: ErrorBody, tool: string, names: Names) {
  const { next_tool = '', next_arguments, message } = body
  const { issues, ...facts } = details
  const named = Array.isArray(issues) ? issues.map((issue) => inItsWords(issue, (native) => names.argument(tool, native))) : undefined
  return {
    ...body,
    message: named ? `${tool}: ${named.map((issue) => `${issue.path}: ${issue.message.replace(/^[A-Z_]+: /, '')}`).join('; ')}` : message,
    next_arguments: next_arguments && names.call(next_tool, next_arguments),
    native: code,
    denied: code === 'PERMISSION_DENIED' && typeof facts.role === 'string' ? facts.role : undefined,
    facts: renamedKeys(facts, names.fact),
    issues: named,
  }
}

/** Unknown keys were renamed on their way in too. */
function inItsWords({ path, message }: { path: unknown; message: unknown }, called: (native: string) => string) {
  const said = String(message)
  const inWords = said.startsWith('Unrecognized key') ? said.replace(/"(\w+)"/g, (_, key: string) => `"${called(key)}"`) : said
  return { path: called(String(path)) || 'input', message: inWords }
}

const nativeOf = (name: string, { native = snake(name) }: Field<string>): string | null => native

/** The documented word for every native value; a missing one does not compile. */
export function words<S extends string>(table: Record<S, string>): Words {
  const natives = new Map(Object.entries(table).map(([native, word]) => [word, native]))
  const outward = new Map<unknown, unknown>(Object.entries(table))
  return {
    json: { type: 'string', enum: [...natives.keys()] as string[] },
    in: (word) => natives.get(word as string) ?? word,
    out: (native) => outward.get(native) ?? native,
  }
}

const IDS = { agent: AgentId, mail: MailId, task: TaskId }

export const id = (names: keyof typeof IDS) => ({ json: { type: 'string', maxLength: 64 }, names })
export const text = (maxLength: number) => ({ json: { type: 'string', minLength: 1, maxLength } })

/** Drops undefined values. */
export const present = (facts: Args): Args => Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))

export const camelKeys = (facts: object): Args => renamedKeys(facts, camel)

const renamedKeys = (facts: object, rename: (key: string) => string): Args =>
  Object.fromEntries(Object.entries(facts).map(([key, value]) => [rename(key), value]))

const same = (name: string) => name
const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const CASES = { snake: { native: same, documented: same }, camel: { native: snake, documented: camel } }
type Casing = keyof typeof CASES
