import { z } from 'zod'
import { iso, PageSize, PageToken, Timestamp } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool } from '../../kernel/tool.ts'
import { ProjectId, RunId, TaskId } from '../ids.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { quotaWaits } from './points.ts'
import { MICROS } from './schema.ts'
import { type TurnUsage, usageStore } from './store.ts'

const MOST_TURNS = 500

const Used = z.strictObject({
  input_tokens: z.int(),
  output_tokens: z.int(),
  cached_tokens: z.int().describe('Of the input, what the provider had kept'),
  cost_usd: z.number(),
  estimated: z.boolean().describe('Some of it is not reported by the program itself'),
})
const UNTOLD = ['tokens', 'cost'] as const
const Untold = z.array(z.enum(UNTOLD)).describe('What the program does not tell: the figures have nothing of it')
const Total = z.strictObject({ runs: z.int(), turns: z.int(), ...Used.shape, untold: Untold })
const Program = { harness: z.string(), model: z.string().nullable() }

export const getUsage = defineTool({
  name: 'usage_get',
  title: 'Read what was used',
  description: 'Tokens and cost of the agents of a task, a project, a run or all; by program, run and turn; and whose quota is used up.',
  input: z
    .strictObject({
      task_id: TaskId.optional(),
      project_id: ProjectId.optional(),
      run_id: RunId.optional().describe('With its turns'),
      limit: PageSize,
      before: PageToken.optional(),
    })
    .refine(
      ({ task_id, project_id, run_id }) => [task_id, project_id, run_id].filter((id) => id !== undefined).length < 2,
      'name one of task_id, project_id and run_id, or none for all',
    ),
  output: z.strictObject({
    total: Total,
    programs: z.array(z.strictObject({ ...Program, ...Total.shape })),
    runs: z.array(
      z.strictObject({
        run_id: RunId,
        task_id: z.string().nullable(),
        task: z.string().nullable().describe('Its handle'),
        ...Program,
        turns: z.int(),
        ...Used.shape,
        untold: Untold,
        created_at: Timestamp,
      }),
    ),
    turns: z.array(z.strictObject({ turn: z.int(), ...Used.shape })).describe('Of the run that was named, newest first'),
    limits: z
      .array(z.strictObject({ ...Program, resets_at: Timestamp, jobs: z.int(), message: z.string().nullable() }))
      .describe('Providers that give no more until then, and how many jobs wait for it'),
    next: z.string().nullable(),
  }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, project_id, run_id, limit, before }) {
    const store = usageStore(ctx.view)
    const untoldBy = (harness: string) => {
      const meters = ctx.ports.harnesses.get(harness)?.meters
      return UNTOLD.filter((meter) => meters && !(meter in meters))
    }
    const where = { task: task_id, project: project_id, run: run_id }
    const programs = (await store.byProgram(where)).map(({ runs, turns, harness, model, ...used }) => ({
      harness,
      model,
      runs,
      turns,
      ...shown(used),
      untold: untoldBy(harness),
    }))
    const rows = await store.runs(where, before, limit)
    const handles = await handlesOf(ctx.view, rows)
    const turns = run_id ? await store.ofRun(run_id, MOST_TURNS) : []
    const limits = (await ctx.ask(quotaWaits, ctx.now)).flat()
    return {
      total: programs.reduce(added, NOTHING),
      programs,
      runs: rows.map((run) => {
        const { id, task_id, harness, model, turns, created_at } = run
        return {
          run_id: id,
          task_id,
          task: task_id === null ? null : (handles.get(task_id) ?? task_id),
          harness,
          model,
          turns,
          ...shown(run),
          untold: untoldBy(harness),
          created_at: iso(created_at),
        }
      }),
      turns: turns.map((row) => ({ turn: row.turn, ...shown(row) })),
      limits: limits.map(({ resets_at, ...rest }) => ({ ...rest, resets_at: iso(resets_at) })),
      next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null,
    }
  },
})

async function handlesOf(view: Tx, rows: { task_id: string | null }[]): Promise<Map<string, string>> {
  const handles = new Map<string, string>()
  for (const id of new Set(rows.flatMap(({ task_id }) => task_id ?? []))) {
    const task = await taskStore(view).find(id)
    if (task) handles.set(id, handleOf(task))
  }
  return handles
}

type Total = z.output<typeof Total>

const NOTHING: Total = { runs: 0, turns: 0, input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0, estimated: false, untold: [] }

function added(sum: Total, one: Total): Total {
  return {
    runs: sum.runs + one.runs,
    turns: sum.turns + one.turns,
    input_tokens: sum.input_tokens + one.input_tokens,
    output_tokens: sum.output_tokens + one.output_tokens,
    cached_tokens: sum.cached_tokens + one.cached_tokens,
    // Sums of dollars are only exact in millionths.
    cost_usd: Math.round((sum.cost_usd + one.cost_usd) * MICROS) / MICROS,
    estimated: sum.estimated || one.estimated,
    untold: UNTOLD.filter((meter) => [...sum.untold, ...one.untold].includes(meter)),
  }
}

function shown({ input_tokens, output_tokens, cached_tokens, cost_micros, estimated }: TurnUsage): z.output<typeof Used> {
  return { input_tokens, output_tokens, cached_tokens, cost_usd: cost_micros / MICROS, estimated: estimated === 1 }
}
