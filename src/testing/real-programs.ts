import { existsSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import pins from '../../test/real-agents/programs.json' with { type: 'json' }

export type RealProgram = keyof typeof pins.programs

/** What a person's own settings say would reach the program that is tested, and it somebody's account. */
const OF_PROGRAMS = /^(ANTHROPIC|CLAUDE|OPENAI|CODEX|GEMINI|GOOGLE|OPENCODE)(_|[A-Z]*$)/

/** Where `npm run test:real` has put the pinned programs. */
function folder(): string {
  const set = process.env.SIGNALBOX_REAL_AGENTS
  if (!set) throw new Error('SIGNALBOX_REAL_AGENTS names no folder with the agent programs: run `npm run test:real`, which makes one')
  return join(set, 'node_modules')
}

/** The file to start. */
export function realProgram(name: RealProgram): string {
  const file = join(folder(), '.bin', name)
  if (!existsSync(file)) throw new Error(`${name} is not in ${folder()}: run \`npm run test:real\`, which installs it`)
  return file
}

/** A PATH with all of them in front. */
export function realPath(): string {
  return [join(folder(), '.bin'), process.env.PATH ?? ''].join(delimiter)
}

export function realVersion(name: RealProgram): string {
  return JSON.parse(readFileSync(join(folder(), pins.programs[name].package, 'package.json'), 'utf8')).version
}

/** Takes them out of the environment of this process. */
export function forgetOwnSettings(): void {
  for (const name of Object.keys(process.env)) if (OF_PROGRAMS.test(name)) delete process.env[name]
}
