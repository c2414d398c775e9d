import { now } from '../../kernel/clock.ts'
import { pause, within } from '../../kernel/patience.ts'
import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import type { Exit } from '../../ports/runner.ts'

import { lastOf, logOf, textOf } from '../command.ts'
import { repeatedly } from '../repeatedly.ts'
import { lastLines } from '../setup/index.ts'
import { between } from './effects.ts'
import { ended as previewEnded, ready } from './reports.ts'
import { previewStarted } from './schema.ts'
import { type PreviewRow, previewStore } from './store.ts'

/** Also after a daemon that was away for longer than the program had time. */
const SHORTEST_MS = 1_000
/** Nothing tells when somebody begins to listen: it is knocked, less and less often. */
const FIRST_REST_MS = 50
const LONGEST_REST_MS = 1_000

/** Follows the previews of this host: when one answers, and when it ends. */
export const follower: Reactor = {
  name: 'previews',
  async start(ctx) {
    const followed = new Map<string, Promise<void>>()
    const follow = (row: PreviewRow) => {
      if (followed.has(row.id) || ctx.signal.aborted) return
      followed.set(
        row.id,
        untilItsEnd(ctx, row).finally(() => followed.delete(row.id)),
      )
    }
    ctx.on(previewStarted, ({ subject, data }) => {
      if (data.host !== ctx.ports.daemon.host) return
      previewStore(ctx.view)
        .find(subject)
        .then((row) => row && follow(row), ctx.defect)
    })
    for (const row of await previewStore(ctx.view).livingOn(ctx.ports.daemon.host)) follow(row)
    return { ended: async () => void (await Promise.all(followed.values())) }
  },
}

async function untilItsEnd(ctx: ReactorContext, row: PreviewRow): Promise<void> {
  const over = new AbortController()
  const stop = () => over.abort()
  ctx.signal.addEventListener('abort', stop, { once: true })
  const answers = untilItAnswers(ctx, row, over.signal)
  await repeatedly(ctx, () => isOver(ctx, row))
  stop()
  ctx.signal.removeEventListener('abort', stop)
  await answers
}

async function isOver(ctx: ReactorContext, { id, command }: PreviewRow): Promise<boolean> {
  if ((await ctx.ports.runner.look(id)).state === 'absent') {
    await ctx.report(previewEnded, { preview_id: id, state: 'failed', reason: 'Its process is gone.', log: null })
    return true
  }
  let log = Buffer.alloc(0)
  for await (const { frames, exit } of ctx.ports.runner.follow(id, 0, ctx.signal)) {
    log = lastOf(log, frames)
    if (!exit) continue
    const printed = textOf(log)
    await ctx.report(previewEnded, { preview_id: id, ...howItEnded(command, exit, printed), log: printed })
    return true
  }
  return ctx.signal.aborted
}

function howItEnded(command: string, { reason, code, signal, detail }: Exit, log: string) {
  if (reason === 'stopped') return { state: 'ended' as const, reason: 'It was stopped.' }
  if (reason === 'wall_clock') return { state: 'ended' as const, reason: 'Its time was over.' }
  const how = reason === 'exited' ? `ended with ${code ?? signal}` : `could not go on: ${detail.replace(/\.$/, '')}`
  return { state: 'failed' as const, reason: `\`${command}\` ${how}.${lastLines(log)}`.slice(0, 4_000) }
}

async function untilItAnswers(ctx: ReactorContext, row: PreviewRow, over: AbortSignal): Promise<void> {
  const { id, state, first_port, last_port, silent_at } = row
  if (state !== 'starting' || first_port === null || last_port === null || silent_at === null) return
  const port = await within(Math.max(SHORTEST_MS, silent_at - now()), over, (either) =>
    answering(ctx, between(first_port, last_port), either),
  )
  if (over.aborted) return
  await repeatedly(ctx, async () => {
    if (port !== undefined) await ctx.report(ready, { preview_id: id, port })
    else await ctx.report(previewEnded, { preview_id: id, state: 'failed', ...(await howSilent(ctx, row)) })
    return true
  })
}

async function answering(ctx: ReactorContext, ports: number[], either: AbortSignal): Promise<number | undefined> {
  for (let rest = FIRST_REST_MS; !either.aborted; rest = Math.min(rest * 1.5, LONGEST_REST_MS)) {
    const port = await ctx.ports.listeners.answering(ports).catch((error) => void ctx.defect(error))
    if (port !== undefined) return port
    await pause(rest, either)
  }
  return undefined
}

/** Where it listens instead is often among what it printed. */
async function howSilent(ctx: ReactorContext, { id, command, first_port, last_port }: PreviewRow) {
  const { log } = await logOf(ctx, id, { waitMs: 0 })
  const why = `\`${command}\` did not answer in time on any port from ${first_port} to ${last_port}. Let it listen on $PORT.`
  return { reason: `${why}${lastLines(log)}`.slice(0, 4_000), log }
}
