import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type At, LONG_MS } from './run.ts'

/** What lies inside of a submodule has a configuration of its own, whose filters git would run. */
const NOT_INSIDE = '--ignore-submodules=dirty'
const SUBMODULE = '160000 '

export async function extras(at: At): Promise<{ ignored: string[]; untracked: string[]; changed: string[] }> {
  const status = ['status', '--porcelain', '-z', '--no-renames', '--ignored=traditional', '--untracked-files=normal', NOT_INSIDE]
  const lines = await listed(at, status)
  const those = (mark: string) => lines.flatMap((line) => (line.startsWith(mark) ? [line.slice(3).replace(/\/$/, '')] : []))
  const changed = lines.flatMap((line) => (/^(!!|\?\?) /.test(line) ? [] : [line.slice(3)]))
  return { ignored: those('!! '), untracked: those('?? '), changed: [...new Set([...changed, ...(await filledSubmodules(at))])] }
}

/** Git does not say what is inside of them, and a fresh checkout has them empty. */
async function filledSubmodules(at: At): Promise<string[]> {
  const staged = await listed(at, ['ls-files', '--stage', '-z'])
  const paths = staged.filter((line) => line.startsWith(SUBMODULE)).map((line) => line.slice(line.indexOf('\t') + 1))
  const inside = await Promise.all(paths.map((path) => readdir(join(at.cwd, path)).catch(() => [])))
  return paths.filter((_, i) => inside[i]?.length)
}

async function listed(at: At, args: string[]): Promise<string[]> {
  return (await at.git(args, { timeoutMs: LONG_MS })).toString().split('\0').filter(Boolean)
}
