import type { Tx } from '../../kernel/storage.ts'
import type { RunContext } from '../../kernel/tool.ts'

/** A repository, or with no `repo` a whole project. */
export interface Owner {
  project: string
  repo?: string
}

/** What belongs to a repository or a project and ends with it. */
export interface Belonging {
  /** What is not over, by name: `T-1 (REVIEW)`. */
  open(tx: Tx, owner: Owner): Promise<string[]>
  /** In the transaction in which its owner goes. */
  end(ctx: RunContext, owner: Owner, reason: string): Promise<void>
}

/** Said where the capabilities are put together, in the order in which they end. */
export const belongings: Belonging[] = []

const MOST_NAMED = 20

export async function stillOpen(tx: Tx, owner: Owner): Promise<string[]> {
  const open: string[] = []
  for (const belonging of belongings) open.push(...(await belonging.open(tx, owner)))
  return open
}

export async function endAll(ctx: RunContext, owner: Owner, reason: string): Promise<void> {
  for (const belonging of belongings) await belonging.end(ctx, owner, reason)
}

export function named(all: string[]): string {
  const shown = all.slice(0, MOST_NAMED).join(', ')
  return all.length > MOST_NAMED ? `${shown} and ${all.length - MOST_NAMED} more` : shown
}
