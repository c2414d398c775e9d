import type { Harness, Harnesses } from '../ports/harness.ts'
import { claude } from './claude/index.ts'
import { codex } from './codex/index.ts'
import { command } from './command/index.ts'
import { scripted } from './scripted/index.ts'

/** One line each. */
export const HARNESSES: Harness[] = [command, scripted, claude, codex]

export function createHarnesses(list: Harness[] = HARNESSES): Harnesses {
  const byName = new Map(list.map((harness) => [harness.name, harness]))
  if (byName.size !== list.length) throw new Error('two harnesses have the same name')
  return { names: () => [...byName.keys()], get: (name) => byName.get(name) }
}
