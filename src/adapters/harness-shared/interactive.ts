import type { Interactive, InteractiveLaunch, Signs } from '../../ports/terminal.ts'
import { type Program, pathOf, probeProgram } from './program.ts'

/** What is special about one program in a terminal. */
export interface InTerminal {
  args: string[]
  env?: Record<string, string>
  files?: Record<string, string>
  signs: Signs
}

export function interactiveOf(program: Program, plan: (launch: InteractiveLaunch) => InTerminal): Interactive {
  const { command, title } = program
  return {
    name: command,
    title,
    probe: () => probeProgram(program),
    launch(launch) {
      const { args, env = {}, files = {}, signs } = plan(launch)
      return { argv: [pathOf(program) ?? command, ...args], env, inherit: program.environment(), files, signs }
    },
  }
}
