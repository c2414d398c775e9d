import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Step } from '../capabilities/need/index.ts'
import { commandOf, named } from '../surfaces/cli/names.ts'
import { asTyped } from '../surfaces/cli/shell.ts'

interface Need {
  id: string
  handle: string | null
  steps: Step[]
}

/** What to type about them: for the first of those that need the same. Every line is accepted as it stands. */
export function nextSteps(needs: Need[]): string[] {
  const seen = new Set<string>()
  return needs.flatMap(({ id, handle, steps }) => {
    const same = JSON.stringify(steps).replaceAll(handle ?? id, '')
    if (seen.has(same)) return []
    seen.add(same)
    return steps.map(typed)
  })
}

/** Where the person stands, if that is a repository. */
function repositoryHere(): string | undefined {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder
    if (folder === dirname(folder)) return undefined
  }
}

/** One whose arguments nobody can guess is explained. */
function typed({ tool, arguments: given }: Step): string {
  const input = tool === 'repo_add' ? { ...given, path: repositoryHere() } : given
  const found = named(tool)
  if (!found) throw new Error(`there is no tool ${tool}`)
  if (Object.values(input).includes(undefined)) return `signalbox ${commandOf(found)} --help`
  return asTyped(found, input)
}
