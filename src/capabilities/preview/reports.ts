import { z } from 'zod'
import { redactText } from '../../kernel/redact.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { withdraw } from '../setup/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { launching, stopPreview } from './effects.ts'
import { aboutPreview, addressOf, MINUTES } from './rules.ts'
import { previewEnded, previewReady, previewStarted } from './schema.ts'
import { type PreviewRow, previewStore } from './store.ts'

const MINUTE_MS = 60_000

/** What the daemon tells of previews. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ preview_id: z.string() })

export const started = defineTool({
  ...internal,
  name: 'preview_started',
  title: 'The program of a preview was started',
  description: 'From now on it is followed.',
  input: Told.extend({ host: z.string(), first_port: z.int(), last_port: z.int() }),
  async run(ctx, { preview_id, host, first_port, last_port }) {
    const { row, about } = await known(ctx, preview_id)
    if (row.state !== 'starting' || row.host !== null) return {}
    const silent_at = ctx.now + Math.round(ctx.setting<number>(MINUTES) * MINUTE_MS)
    await previewStore(ctx.tx).update(row.id, { host, first_port, last_port, silent_at })
    ctx.emit(previewStarted(aboutPreview(row), { ...about, host }))
    return {}
  },
})

export const ready = defineTool({
  ...internal,
  name: 'preview_ready',
  title: 'A preview answers',
  description: 'Its program listens on one of its ports.',
  input: Told.extend({ port: z.int() }),
  async run(ctx, { preview_id, port }) {
    const { row, about } = await known(ctx, preview_id)
    if (row.state !== 'starting') return {}
    await previewStore(ctx.tx).update(row.id, { state: 'ready', port })
    ctx.emit(previewReady(aboutPreview(row), { ...about, url: addressOf(port) }))
    return {}
  },
})

export const ended = defineTool({
  ...internal,
  name: 'preview_ended',
  title: 'A preview is over',
  description: 'It was stopped, its program ended, or it never answered.',
  input: Told.extend({ state: z.enum(['ended', 'failed']), reason: z.string(), log: z.string().nullable() }),
  async run(ctx, { preview_id, state, reason, log }) {
    const { row, about } = await known(ctx, preview_id)
    if (row.state !== 'starting' && row.state !== 'ready') return {}
    const told = row.stop_asked_at === null ? { state, reason: redactText(reason) } : { state: 'ended' as const, reason: 'It was stopped.' }
    await previewStore(ctx.tx).update(row.id, { ...told, log, ended_at: ctx.now })
    ctx.emit(previewEnded(aboutPreview(row), { ...about, ...told }))
    await withdraw(ctx, row.task_id, launching(row.id))
    // What its program left behind.
    if (row.stop_asked_at === null) ctx.enqueue(stopPreview({ preview_id }, { queue: row.id }))
    return {}
  },
})

async function known(ctx: RunContext, id: string): Promise<{ row: PreviewRow; about: { handle: string; command: string } }> {
  const row = await previewStore(ctx.tx).find(id)
  const task = row && (await taskStore(ctx.tx).find(row.task_id))
  if (!row || !task) throw new Error(`the preview ${id} is not there`)
  return { row, about: { handle: handleOf(task), command: row.command } }
}
