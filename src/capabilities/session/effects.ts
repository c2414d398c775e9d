import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { NotHere } from '../../kernel/error.ts'
import { KEYS, type Signs } from '../../ports/terminal.ts'
import { hashOf, newSecret } from '../agent/index.ts'
import { environmentOfWork, makeReady } from '../setup/index.ts'
import { makeWorktree, workOf, workPlan } from '../work/index.ts'
import { briefFor } from './brief.ts'
import { type SessionRow, sessionStore } from './store.ts'
import '../../ports/runner.ts'
import {
  delivered,
  ended as sessionEnded,
  prepared as sessionPrepared,
  started as sessionStarted,
  typed as sessionTyped,
} from './reports.ts'

const ofSession = z.strictObject({ session_id: z.string() })

/** A busy repository may be free at the third attempt; a program that cannot be started will not be there at the tenth. */
const FAILS_BEFORE_GIVING_UP = 3
/** Daemons that are killed in the middle of it do not count. */
const MANY = 100
const GRACE_MS = 3_000
/** In the folder of the session: kept, so that whoever repeats a step does it with the same. */
const TOKEN = 'token'
const BRIEF = 'brief'
const BEGUN = 'prompt-begun'

/** Worktree, token, terminal: each step knows its earlier self, so a repeated one begins at the first. */
export const launchSession = defineEffect({
  type: 'session.open',
  payload: ofSession,
  attempts: MANY,
  async do(ctx, { session_id }) {
    try {
      await launch(ctx, session_id)
    } catch (error) {
      if (ctx.attempt < FAILS_BEFORE_GIVING_UP || ctx.signal.aborted) throw error
      await notOpened(ctx, session_id, (error as Error).message)
    }
  },
})

async function notOpened(ctx: EffectContext, session_id: string, why: string): Promise<void> {
  await ctx.report(sessionEnded, { session_id, state: 'closed', reason: shortened(`It could not be opened: ${why}`) })
}

/** As it waits for the setup of its worktree. */
export const launching = (session_id: string) => launchSession({ session_id }, { queue: session_id })

async function launch(ctx: EffectContext, session_id: string): Promise<void> {
  const { runner, terminal, daemon } = ctx.ports
  const row = await requireSession(ctx, session_id)
  // What was asked to close before it was open is ended by what closes it.
  if (row.state !== 'opening' || row.close_asked_at !== null) return
  const work = await workOf(ctx.view, row.task_id)
  if (!work) throw new Error(`the work of ${row.task_id} is not there`)
  const place = await makeWorktree(ctx, await workPlan(ctx, work))
  const ready = await makeReady(ctx, { work, place, by: session_id, next: launching(session_id) })
  if (ready === 'later') return
  if (ready !== 'ready') return notOpened(ctx, session_id, ready.problem)
  const own = await environmentOfWork(ctx, work)
  const token = await runner.keep(session_id, TOKEN, () => newSecret('agent'))
  await ctx.report(sessionPrepared, { session_id, host: daemon.host, token_hash: hashOf(token) })
  const { files, signs, ...plan } = await planOf(ctx, row, place.path)
  for (const [name, content] of Object.entries(files)) await runner.keep(session_id, name, () => content)
  if (signs) {
    const brief = await briefFor(ctx, row, place)
    await runner.keep(session_id, BRIEF, () => brief)
  }
  const tokenFile = `${await runner.folder(session_id)}/${TOKEN}`
  const env = { ...own, ...plan.env, SIGNALBOX_URL: `${await daemon.address()}/mcp`, SIGNALBOX_TASK: row.task_id }
  const { attach } = await terminal.open(row, { ...plan, env, cwd: place.path, tokenFile })
  await ctx.report(sessionStarted, { session_id, attach, prompt: signs ? 'waiting' : 'none' })
}

/** The first prompt, once: an attempt that finds that another one began only looks what came of it. */
export const promptSession = defineEffect({
  type: 'session.prompt',
  payload: ofSession,
  attempts: MANY,
  async do(ctx, { session_id }) {
    const { runner, terminal } = ctx.ports
    const row = await requireSession(ctx, session_id)
    if (row.state !== 'open') return
    requireHere(ctx, row)
    const signs = await signsOf(ctx, row)
    const text = await runner.keep(session_id, BRIEF, () => '')
    if (!signs || !text) return ctx.report(delivered, { session_id, prompt: 'failed', detail: 'What it is to be told is gone.' }).then()
    const mine = `${ctx.effectId} ${ctx.attempt}`
    const first = (await runner.keep(session_id, BEGUN, () => mine)) === mine
    const delivery = first ? await terminal.deliver(row, text, signs) : await whatCame(ctx, row, text, signs)
    const detail = delivery.state === 'sent' ? null : shortened(delivery.detail)
    await ctx.report(delivered, { session_id, prompt: delivery.state, detail })
  },
})

async function whatCame(ctx: EffectContext, row: SessionRow, text: string, signs: Signs) {
  if (await ctx.ports.terminal.taken(row, text, signs)) return { state: 'sent' as const }
  return { state: 'not_verified' as const, detail: 'The daemon was stopped while the prompt was being sent.' }
}

/** Cut off in the middle, nobody can tell how much of it was typed: it is shown as unknown, and not typed again. */
export const typeInto = defineEffect({
  type: 'session.type',
  payload: ofSession.extend({ request: z.string(), by: z.string(), text: z.string(), keys: z.array(z.enum(KEYS)) }),
  attempts: 1,
  once: true,
  async do(ctx, { session_id, request, by, text, keys }) {
    const row = await requireSession(ctx, session_id)
    const told = { session_id, request, by, characters: text.length, keys }
    if (row.state === 'open' && ctx.ports.daemon.shared) requireHere(ctx, row)
    const wrong = row.state !== 'open' ? 'The session is not open.' : isElsewhere(ctx, row) ? `It is on ${row.host}, not here.` : undefined
    const problem = wrong ?? (await ctx.ports.terminal.type(row, text, keys).then(() => null, messageOf))
    await ctx.report(sessionTyped, { ...told, problem })
  },
})

/** Ends the whole tree. Also of one that is over: what it left behind goes too. */
export const closeSession = defineEffect({
  type: 'session.close',
  payload: ofSession,
  attempts: MANY,
  async do(ctx, { session_id }) {
    const row = await requireSession(ctx, session_id)
    requireHere(ctx, row)
    const screen = row.state === 'open' ? (await ctx.ports.terminal.screen(row).catch(() => undefined))?.text : undefined
    await ctx.ports.terminal.close(row, GRACE_MS)
    await ctx.report(sessionEnded, { session_id, state: 'closed', reason: 'It was closed.', screen, all: true })
    await ctx.ports.runner.forget(session_id)
  },
})

export async function planOf(ctx: Pick<EffectContext, 'ports'>, row: SessionRow, cwd: string) {
  const program = ctx.ports.interactives.get(row.program)
  if (!program) throw new Error(`This daemon has no program "${row.program}".`)
  const { runner, daemon } = ctx.ports
  return program.launch({ folder: await runner.folder(row.id), cwd, mcp: { url: `${await daemon.address()}/mcp` } })
}

export async function signsOf(ctx: Pick<EffectContext, 'ports'>, row: SessionRow): Promise<Signs | undefined> {
  return (await planOf(ctx, row, '/')).signs
}

async function requireSession(ctx: EffectContext, id: string): Promise<SessionRow> {
  const row = await sessionStore(ctx.view).find(id)
  if (!row) throw new Error(`the session ${id} is not there`)
  return row
}

/** Where several daemons share a database, each sees the terminals of its own machine only. */
export function isElsewhere(ctx: Pick<EffectContext, 'ports'>, row: SessionRow): boolean {
  return row.host !== null && row.host !== ctx.ports.daemon.host
}

function requireHere(ctx: EffectContext, row: SessionRow): void {
  if (isElsewhere(ctx, row)) throw new NotHere('That session', row.host as string)
}

function messageOf(error: unknown): string {
  return shortened((error as Error).message)
}

function shortened(text: string): string {
  return text.slice(0, 1_000)
}
