import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import type { Harness } from '../../ports/harness.ts'

/** How a program shows that somebody has logged in to it. Whether its provider still takes that, only the provider knows. */
export interface Account {
  /** Any of these in the environment of the daemon will do. */
  variables: string[]
  /** A file that is there will do, below the home of the user; with `says`, one that has that in it. */
  files(env: NodeJS.ProcessEnv): { path: string; says?: RegExp }[]
  /** What a person does to log in. */
  login: string
}

export function accountOf({ variables, files, login }: Account, env = process.env, home = homedir()): NonNullable<Harness['account']> {
  const shows = ({ path, says = /\S/ }: { path: string; says?: RegExp }) => says.test(textOf(isAbsolute(path) ? path : join(home, path)))
  return async () => (variables.some((name) => env[name]) || files(env).some(shows) ? { signedIn: true } : { signedIn: false, how: login })
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
