import { within } from '../../kernel/patience.ts'
import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import { repeatedly } from '../repeatedly.ts'
import { taskDeleted, taskMoved, taskUpdated } from '../task/index.ts'
import { isElsewhere, signsOf } from './effects.ts'
import { delivered, readied, ended as sessionEnded, taskOver } from './reports.ts'
import { sessionOpened } from './schema.ts'
import { type SessionRow, sessionStore } from './store.ts'

/** A dialog that nobody answers for so long: whoever comes back tells the agent by themselves. */
const READY_WITHIN_MS = 15 * 60_000

/** Follows the terminals of this host: when the program takes its prompt, and when it ends. */
export const follower: Reactor = {
  name: 'sessions',
  async start(ctx) {
    const followed = new Map<string, Promise<void>>()
    const follow = (row: SessionRow) => {
      if (followed.has(row.id) || ctx.signal.aborted) return
      const both = Promise.all([untilItsEnd(ctx, row), untilReady(ctx, row)])
      followed.set(
        row.id,
        both.then(() => void followed.delete(row.id)),
      )
    }
    ctx.on(sessionOpened, (event) => {
      if (event.data.host === ctx.ports.daemon.host) void found(ctx, event.subject).then((row) => row && follow(row))
    })
    for (const type of [taskDeleted, taskUpdated]) ctx.on(type, ({ subject }) => void tellOver(ctx, subject))
    ctx.on(taskMoved, ({ subject, data }) => {
      if (data.to === 'DONE') void tellOver(ctx, subject)
    })
    for (const row of await sessionStore(ctx.view).openOn(ctx.ports.daemon.host)) follow(row)
    void endWhatIsOver(ctx)
    return { ended: async () => void (await Promise.all(followed.values())) }
  },
}

async function untilItsEnd(ctx: ReactorContext, row: SessionRow): Promise<void> {
  await repeatedly(ctx, async () => {
    const state = await ctx.ports.terminal.ended(row, ctx.signal)
    if (ctx.signal.aborted || state.state === 'running') return false
    const told =
      state.state === 'absent'
        ? { state: 'lost' as const, reason: 'Its terminal went away: its tmux server was killed, or the machine was started anew.' }
        : { state: 'closed' as const, reason: `Its program ended with ${state.how}.`, screen: state.screen }
    await ctx.report(sessionEnded, { session_id: row.id, ...told })
    return true
  })
}

async function untilReady(ctx: ReactorContext, row: SessionRow): Promise<void> {
  if (row.prompt !== 'waiting' && row.prompt !== 'needs_input') return
  const began = performance.now()
  const isLate = () => performance.now() - began >= READY_WITHIN_MS
  await repeatedly(ctx, async () => {
    const signs = await signsOf(ctx, row)
    if (!signs) return true
    const tell = (prompt: 'needs_input' | 'failed', detail: string) => ctx.report(delivered, { session_id: row.id, prompt, detail })
    const asks = (what: string) => void tell('needs_input', `It asks ${what}.`).catch(ctx.defect)
    const left = Math.max(1, READY_WITHIN_MS - (performance.now() - began))
    const outcome = await within(left, ctx.signal, (either) => ctx.ports.terminal.ready(row, signs, asks, either))
    if (ctx.signal.aborted) return true
    if (outcome === 'ready') await ctx.report(readied, { session_id: row.id })
    else if (isLate()) await tell('failed', `It did not take a prompt within ${READY_WITHIN_MS / 60_000} minutes.`)
    // Its end is told by who waits for that; a line that broke is tried again.
    return outcome === 'ready' || isLate() || (await ctx.ports.terminal.look(row)).state !== 'running'
  })
}

/** A task that was closed while nobody was there to hear of it. */
async function endWhatIsOver(ctx: ReactorContext): Promise<void> {
  try {
    for (const row of await sessionStore(ctx.view).living()) if (!isElsewhere(ctx, row)) await tellOver(ctx, row.task_id)
  } catch (error) {
    ctx.defect(error)
  }
}

async function tellOver(ctx: ReactorContext, task_id: string): Promise<void> {
  try {
    if (await sessionStore(ctx.view).livingOf(task_id)) await ctx.report(taskOver, { task_id })
  } catch (error) {
    ctx.defect(error)
  }
}

async function found(ctx: ReactorContext, id: string): Promise<SessionRow | undefined> {
  return sessionStore(ctx.view)
    .find(id)
    .catch((error) => void ctx.defect(error))
}
