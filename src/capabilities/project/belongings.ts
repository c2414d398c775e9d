import { definePoint } from '../../kernel/point.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'

/** A repository, or with no `repo` a whole project. */
export interface Owner {
  project: string
  repo?: string
}

/** What belongs to a repository or a project and ends with it. */
export interface Belonging {
  /** What is not over, by name: `T-1 (REVIEW)`. */
  open(ctx: Reading, owner: Owner): Promise<string[]>
  /** In the transaction in which its owner goes. */
  end(ctx: RunContext, owner: Owner, reason: string): Promise<void>
}

/** In the order in which they end: an epic ends its tasks, and a line lets go of what still lands on it. */
export const belongings = definePoint.all<() => Promise<Belonging>>('project.belongings', ['epics', 'tasks', 'work', 'lines'])

const MOST_NAMED = 20

export async function stillOpen(ctx: Reading, owner: Owner): Promise<string[]> {
  const open: string[] = []
  for (const belonging of await ctx.ask(belongings)) open.push(...(await belonging.open(ctx, owner)))
  return open
}

export async function endAll(ctx: RunContext, owner: Owner, reason: string): Promise<void> {
  for (const belonging of await ctx.ask(belongings)) await belonging.end(ctx, owner, reason)
}

export function named(all: string[]): string {
  const shown = all.slice(0, MOST_NAMED).join(', ')
  return all.length > MOST_NAMED ? `${shown} and ${all.length - MOST_NAMED} more` : shown
}
