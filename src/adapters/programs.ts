import type { Harnesses } from '../ports/harness.ts'
import type { Interactives } from '../ports/terminal.ts'
import { acp } from './acp/index.ts'
import { claude } from './claude/index.ts'
import { codex } from './codex/index.ts'
import { command } from './command/index.ts'
import { gemini } from './gemini/index.ts'
import type { AgentProgram, Without } from './harness-shared/program.ts'
import { opencode } from './opencode/index.ts'
import { scripted } from './scripted/index.ts'
import { shell } from './shell/index.ts'

/** One line each. */
export const PROGRAMS: AgentProgram[] = [command, scripted, claude, codex, acp, gemini, opencode, shell]

export const harnesses: Harnesses = byName(PROGRAMS.map(({ harness }) => harness))
export const interactives: Interactives = byName(PROGRAMS.map(({ interactive }) => interactive))

function byName<T extends { name: string }>(list: (T | Without)[]) {
  const there = list.filter((one): one is T => !('without' in one))
  const named = new Map(there.map((one) => [one.name, one]))
  if (named.size !== there.length) throw new Error('two programs have the same name')
  return { names: () => [...named.keys()], get: (name: string) => named.get(name) }
}
