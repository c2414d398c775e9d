import { z } from 'zod'
import { iso, isoOrNull, Timestamp } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { logOf } from '../command.ts'
import { TaskId } from '../ids.ts'
import { requireTask } from '../task/index.ts'
import { checkMayReadFiles, workOf } from '../work/index.ts'
import { leaseOf } from './ports.ts'
import { SETUP_STATES } from './schema.ts'
import { isUndone, type SetupRow, setupStore } from './store.ts'

const MOST_WAIT_SECONDS = 25

const SetupView = z.strictObject({
  state: z.enum([...SETUP_STATES, 'cleaned_up']).describe('cleaned_up: it had passed, and the cleanup was run since'),
  command: z.string().nullable().describe('Null: only files are copied'),
  how: z.enum(['made', 'kept']).nullable().describe('kept: packages that an earlier setup has installed were copied'),
  reason: z.string().nullable(),
  host: z.string().describe('The daemon on whose machine it runs'),
  log: z.string().describe('What it printed last'),
  mark: z.int().nullable().describe('While it runs here: where `log` ends'),
  started_at: Timestamp,
  ended_at: Timestamp.nullable(),
})

export const get = defineTool({
  name: 'setup_get',
  title: 'Read the setup of a worktree',
  description: "The newest setup of a task's worktree, and what it prints; and the ports and the name that the worktree has.",
  input: z.strictObject({
    task_id: TaskId,
    after: z.int().min(0).optional().describe('`mark` of an earlier answer: waits until more is printed, or the setup has ended'),
    wait_seconds: z.int().min(0).max(MOST_WAIT_SECONDS).default(MOST_WAIT_SECONDS).describe('With `after`: how long at the most'),
  }),
  output: z.strictObject({
    setup: SetupView.nullable(),
    ports: z.strictObject({ first: z.int(), last: z.int() }).nullable(),
    name: z.string().nullable(),
  }),
  example: { task_id: 'T-3' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, after, wait_seconds }) {
    const task = await requireTask(ctx, task_id)
    const denied = await checkMayReadFiles(ctx.view, ctx.principal, task)
    if (denied) return denied
    const work = await workOf(ctx.view, task.id)
    const row = work && (await setupStore(ctx.view).newest(work.id))
    const lease = work?.state === 'made' ? await leaseOf(ctx.view, work) : undefined
    const place = { ports: lease ? { first: lease.port, last: lease.port + lease.ports - 1 } : null, name: lease?.name ?? null }
    if (!row) return { setup: null, ...place }
    if (row.state !== 'running' || row.host !== ctx.ports.daemon.host) return { setup: setupView(row, row.log ?? '', null), ...place }
    const { log, mark } = await logOf(ctx, row.id, { after, waitMs: wait_seconds * 1_000 })
    const now = (await setupStore(ctx.view).find(row.id)) ?? row
    return { setup: setupView(now, now.log ?? log, now.state === 'running' ? mark : null), ...place }
  },
})

function setupView(row: SetupRow, log: string, mark: number | null): z.output<typeof SetupView> {
  const { command, how, reason, host, created_at, ended_at } = row
  const state = isUndone(row) ? 'cleaned_up' : row.state
  return { state, command, how, reason, host, log, mark, started_at: iso(created_at), ended_at: isoOrNull(ended_at) }
}
