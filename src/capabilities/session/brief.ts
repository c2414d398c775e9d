import type { EffectContext } from '../../kernel/effect.ts'
import type { Place } from '../../ports/git.ts'
import { briefOn } from '../job/index.ts'
import { type SessionRow, sessionStore } from './store.ts'

const TOGETHER = 'A person sits at this terminal with you. Say in a few words what you would do first, and ask when something is not clear.'

/** What the agent of a terminal is told first: the brief of every agent, and that it is not alone. */
export async function briefFor(ctx: EffectContext, row: SessionRow, place: Place): Promise<string> {
  const now = await sessionStore(ctx.view).find(row.id)
  if (!now) throw new Error(`the session ${row.id} is not there`)
  const told = await briefOn(ctx, row, place, { before: undefined, message: now.message ?? undefined })
  return `${told}\n\n${TOGETHER}`
}
