import type { Capability, SettingDefinition } from './capability.ts'
import type { Dialect, DialectTool } from './dialect.ts'
import { callLater, type EffectType } from './effect.ts'
import { type ErrorBody, refuse } from './error.ts'
import type { Thing } from './id.ts'
import { Points } from './point.ts'
import type { Lane } from './policy.ts'
import type { Tool } from './tool.ts'

export interface Found {
  tool: Tool
  calledAs: string
  dialect?: Dialect
  adapter?: DialectTool
}

const TOOL_NAME = /\b[a-z]+(?:_[a-z]+)+\b/g
const NOWHERE = '\0'

/** Everything that the capabilities and dialects declare, looked up by name. */
export class Registry {
  readonly tools: Tool[]
  readonly capabilities: Capability[]
  readonly dialects: Map<string, Dialect>
  readonly settings: Record<string, SettingDefinition>
  readonly #byName: Map<string, Tool>
  readonly #spoken: Map<string, { dialect: Dialect; lane?: Lane }>
  readonly #things: Map<string, Thing>
  readonly effects: Map<string, EffectType>
  readonly points: Points

  constructor(capabilities: Capability[], dialects: Dialect[]) {
    this.capabilities = capabilities
    this.tools = capabilities.flatMap((c) => c.tools)
    this.#byName = unique(this.tools, (tool) => tool.name)
    this.#things = unique(
      capabilities.flatMap((c) => c.things ?? []),
      (thing) => thing.kind,
    )
    this.effects = unique(
      capabilities.flatMap((c) => [...(c.effects ?? []), ...c.tools.flatMap((tool) => callLater(tool) ?? [])]),
      (effect) => effect.type,
    )
    this.points = new Points(capabilities.flatMap((c) => c.answers ?? []))
    this.dialects = unique(dialects, (dialect) => dialect.name)
    const others = dialects.flatMap((dialect) => Object.entries(dialect.lanes ?? {}).map(([name, lane]) => ({ name, dialect, lane })))
    this.#spoken = unique([...dialects.map((dialect) => ({ name: dialect.name, dialect })), ...others], ({ name }) => name)
    this.settings = Object.assign({}, ...capabilities.map((c) => c.settings ?? {}))
    for (const dialect of dialects)
      for (const tool of unique(dialect.tools, (tool) => tool.name).values())
        for (const { native } of [tool, ...(tool.instead ?? [])]) this.tool(native)
  }

  tool(name: string): Tool {
    const tool = this.#byName.get(name)
    if (!tool) throw new Error(`no tool is declared as ${name}`)
    return tool
  }

  /** Whether a failure of this call always reaches the human; a dialect may say so of its own name. */
  isCritical({ tool, dialect, name }: { tool: string; dialect: string | null; name: string }): boolean {
    const adapter = this.dialects.get(dialect ?? '')?.tools.find((known) => known.name === name)
    return adapter?.critical ?? this.#byName.get(tool)?.critical ?? false
  }

  thing(kind: string): Thing {
    const thing = this.#things.get(kind)
    if (!thing) throw new Error(`no capability says how to find a ${kind}`)
    return thing
  }

  effect(type: string): EffectType {
    const effect = this.effects.get(type)
    if (!effect) throw new Error(`no capability declares the effect ${type}`)
    return effect
  }

  /** The name of the tool that lists things of this kind. */
  lister(kind: string): string | undefined {
    return this.#byName.get(`${kind}_list`)?.name
  }

  dialect(name: string): Dialect {
    const found = this.spoken(name)
    if (found) return found.dialect
    throw refuse('INVALID_INPUT', `There is no dialect "${name}".`, { suggestions: [...this.#spoken.keys()] })
  }

  /** The dialect of that name, and the lane that is asked for by it. */
  spoken(name: string | undefined): { dialect: Dialect; lane?: Lane } | undefined {
    return this.#spoken.get(name ?? '')
  }

  /** Native names win; without a dialect a seed's name works when only one dialect has it. */
  find(name: string, dialectName?: string): Found {
    if (dialectName !== undefined) {
      const dialect = this.dialect(dialectName)
      const adapter = dialect.tools.find((tool) => tool.name === name)
      if (adapter) return { tool: this.tool(adapter.native), calledAs: name, dialect, adapter }
    }
    const native = this.#byName.get(name)
    if (native) return { tool: native, calledAs: name }
    const candidates = dialectName === undefined ? this.#seeds(name) : []
    if (candidates.length > 1) throw this.#ambiguous(name, candidates)
    return candidates[0] ?? this.#unknown(name, dialectName)
  }

  /** A caller that speaks a dialect is pointed to its tools; a sentence that names another one would lead nowhere. */
  hintsIn({ tools }: Dialect, { hint = '', next_tool = '', next_arguments, ...body }: ErrorBody): ErrorBody {
    // Of several names for one tool, the first.
    const called = new Map(tools.toReversed().map(({ native, name }) => [native, name]))
    const words = hint
      .split(/(?<=\.) /)
      .map((sentence) => sentence.replace(TOOL_NAME, (word) => (this.#byName.has(word) ? (called.get(word) ?? NOWHERE) : word)))
      .filter((sentence) => sentence && !sentence.includes(NOWHERE))
      .join(' ')
    return {
      ...body,
      ...(words ? { hint: words } : {}),
      ...(called.has(next_tool) ? { next_tool: called.get(next_tool), next_arguments } : {}),
    }
  }

  #seeds(name: string): Found[] {
    return [...this.dialects.values()].flatMap((dialect) => {
      const adapter = dialect.tools.find((tool) => tool.name === name)
      return adapter ? [{ tool: this.tool(adapter.native), calledAs: name, dialect, adapter }] : []
    })
  }

  #ambiguous(name: string, candidates: Found[]) {
    const options = candidates.map((c) => `${c.tool.name} (dialect ${c.dialect?.name})`)
    return refuse('AMBIGUOUS_TOOL', `"${name}" means ${options.join(' or ')}.`, {
      hint: 'Use the native name, or connect with ?dialect=<name>.',
      suggestions: candidates.map((c) => c.tool.name),
    })
  }

  #unknown(name: string, dialectName: string | undefined): never {
    const known = this.spoken(dialectName)?.dialect.tools ?? this.tools.filter((tool) => !tool.internal)
    const suggestions = closest(
      name,
      known.map((tool) => tool.name),
    )
    throw refuse('TOOL_NOT_FOUND', `There is no tool "${name.slice(0, 80)}".`, {
      hint: suggestions.length ? `Did you mean ${suggestions[0]}?` : 'tools/list names what you may call.',
      suggestions,
    })
  }
}

function unique<T>(items: T[], key: (item: T) => string): Map<string, T> {
  const map = new Map<string, T>()
  for (const item of items) {
    if (map.has(key(item))) throw new Error(`"${key(item)}" is declared twice`)
    map.set(key(item), item)
  }
  return map
}

/** Up to three names that are a few keystrokes away. */
export function closest(name: string, names: string[]): string[] {
  const wanted = name.slice(0, 60)
  return names
    .map((candidate) => ({ candidate, d: distance(wanted, candidate) }))
    .filter(({ d, candidate }) => d <= Math.max(2, candidate.length / 3))
    .sort((a, b) => a.d - b.d)
    .slice(0, 3)
    .map(({ candidate }) => candidate)
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swap = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
