import type { SettingDefinition } from './capability.ts'
import { refuse } from './error.ts'
import { closest } from './registry.ts'
import type { Tx } from './storage.ts'

/** The values in force. Reloaded when a change commits, so no restart is ever needed. */
export class Settings {
  readonly definitions: Record<string, SettingDefinition>
  readonly #load: (view: Tx) => Promise<Record<string, unknown>>
  #values = new Map<string, unknown>()

  constructor(definitions: Record<string, SettingDefinition>, load: (view: Tx) => Promise<Record<string, unknown>>) {
    this.definitions = definitions
    this.#load = load
    this.#adopt({})
  }

  async reload(view: Tx): Promise<void> {
    this.#adopt(await this.#load(view))
  }

  get<T>(key: string): T {
    if (!this.#values.has(key)) this.define(key)
    return this.#values.get(key) as T
  }

  define(key: string): SettingDefinition {
    const definition = Object.hasOwn(this.definitions, key) ? this.definitions[key] : undefined
    if (definition) return definition
    const suggestions = closest(key, Object.keys(this.definitions))
    throw refuse('INVALID_INPUT', `There is no setting "${key}".`, { suggestions, next_tool: 'setting_get', next_arguments: {} })
  }

  /** A stored value that this version no longer accepts must not stop the daemon: the default holds until it is mended. */
  #adopt(stored: Record<string, unknown>): void {
    this.#values = new Map(
      Object.entries(this.definitions).map(([key, definition]) => {
        const parsed = definition.schema.safeParse(stored[key])
        return [key, key in stored && parsed.success ? parsed.data : definition.default]
      }),
    )
  }
}
