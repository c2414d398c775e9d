import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { type Harness, METERS, type Meter } from '../../ports/harness.ts'
import { ProjectId, TaskId } from '../ids.ts'
import { projectOfTask } from '../task/index.ts'
import { endFor } from './rules.ts'
import { Amount, Budget, budgetSet, Limits, MICROS } from './schema.ts'
import { budgetStore, type RunRow, runStore, type Spent } from './store.ts'

const MINUTE_MS = 60_000

/** In the meters' own units: milliseconds, turns, tokens, millionths of a dollar. What is not there is not limited. */
export type Allowance = Partial<Record<Meter, number>>

const SHOWN: Record<Meter, { field: keyof z.output<typeof Limits>; unit: number; word: string }> = {
  wall_clock: { field: 'minutes', unit: MINUTE_MS, word: 'minutes' },
  turns: { field: 'turns', unit: 1, word: 'turns' },
  tokens: { field: 'tokens', unit: 1, word: 'tokens' },
  cost: { field: 'cost_usd', unit: MICROS, word: 'dollars' },
}

export function allowanceOf(limits: z.output<typeof Limits> | undefined): Allowance {
  const given = METERS.flatMap((meter) => {
    const value = limits?.[SHOWN[meter].field]
    return value === undefined ? [] : [[meter, Math.round(value * SHOWN[meter].unit)]]
  })
  return Object.fromEntries(given)
}

export function shownLimits(allowance: Allowance): z.output<typeof Limits> {
  return Object.fromEntries(
    METERS.flatMap((meter) => (allowance[meter] === undefined ? [] : [[SHOWN[meter].field, shown(meter, allowance[meter])]])),
  )
}

const shown = (meter: Meter, value: number) => value / SHOWN[meter].unit

/** A limit that nobody can keep must not look like one. */
export function unmetered(harness: Harness, limited: Allowance): Refusal | undefined {
  const missing = (Object.keys(limited) as Meter[]).find((meter) => harness.meters[meter] === undefined)
  if (!missing) return undefined
  const has = METERS.filter((meter) => harness.meters[meter] !== undefined).map((meter) => SHOWN[meter].field)
  return refuse('INVALID_INPUT', `${harness.title} does not count ${SHOWN[missing].word}, so a limit on them could not be kept.`, {
    hint: `It counts ${has.join(', ')}. Limit those, or change the budget with budget_set.`,
    suggestions: has,
  })
}

export function usedBy(run: RunRow, now: number): Spent {
  const { turns, input_tokens, output_tokens, cost_micros } = run
  const ms = run.started_at === null ? 0 : (run.ended_at ?? now) - run.started_at
  return { wall_clock: ms, turns, tokens: input_tokens + output_tokens, cost: cost_micros }
}

/** What a run has used up, for a person; undefined while it is within its limits. The wall clock is the runner's own matter. */
export function overrun(run: RunRow, now: number): string | undefined {
  const limits = JSON.parse(run.limits) as Allowance
  const used = usedBy(run, now)
  const over = METERS.find((meter) => meter !== 'wall_clock' && used[meter] >= (limits[meter] ?? Number.POSITIVE_INFINITY))
  return over && `It has used ${shown(over, used[over])} of ${shown(over, limits[over] as number)} ${SHOWN[over].word}.`
}

const SUBJECTS = { task: 'task_id', project: 'project_id' } as const

/**
 * What a new run may use: its own limits, as far as the budgets of its task and project leave them when those that live are
 * given all that they were promised. Whoever has no limit of its own shares what is left with the others, and is ended when it is gone.
 */
export async function allowance(ctx: RunContext, about: About, own: Allowance): Promise<Allowance | Refusal> {
  const allowed = { ...own }
  for (const [subject, { left, amount, spent, meter }] of await lefts(ctx, about)) {
    if (left <= 0) return exhausted(subject, about, { meter, spent, amount })
    // Time is kept by the run itself: it has to know its end.
    if (own[meter] !== undefined || meter === 'wall_clock') allowed[meter] = Math.min(allowed[meter] ?? left, left)
  }
  return allowed
}

/** What is used up of the budgets that a run draws on, for a person; undefined while there is some left. */
export async function overBudget(ctx: RunContext, run: RunRow): Promise<string | undefined> {
  for (const [subject, { meter, spent, amount }] of await lefts(ctx, { task: run.task_id, project: run.project_id })) {
    if (spent >= amount)
      return `The ${subject}'s budget is used up: ${shown(meter, spent)} of ${shown(meter, amount)} ${SHOWN[meter].word}.`
  }
  return undefined
}

type About = { task: string | null; project: string }
type Left = { meter: Meter; amount: number; spent: number; left: number }

async function lefts(ctx: RunContext, about: About): Promise<[keyof About, Left][]> {
  const found: [keyof About, Left][] = []
  for (const subject of ['task', 'project'] as const) {
    const id = about[subject]
    if (id === null) continue
    const budget = await budgetStore(ctx.tx).of(id)
    if (!Object.keys(budget).length) continue
    const spent = await runStore(ctx.tx).spent(SUBJECTS[subject], id, ctx.now)
    const living = await runStore(ctx.tx).livingIn(SUBJECTS[subject], id)
    for (const meter of METERS) {
      const amount = budget[meter]
      if (amount === undefined) continue
      found.push([subject, { meter, amount, spent: spent[meter], left: amount - spent[meter] - heldBy(living, meter, ctx.now) }])
    }
  }
  return found
}

/** What a job has left for its next life. */
export function leftOf(own: Allowance, lives: RunRow[], now: number): Allowance {
  const left = (meter: Meter) => lives.reduce((rest, run) => rest - usedBy(run, now)[meter], own[meter] as number)
  return Object.fromEntries((Object.keys(own) as Meter[]).map((meter) => [meter, left(meter)]))
}

function heldBy(living: RunRow[], meter: Meter, now: number): number {
  return living.reduce((sum, run) => {
    const limit = (JSON.parse(run.limits) as Allowance)[meter]
    return sum + (limit === undefined ? 0 : Math.max(0, limit - usedBy(run, now)[meter]))
  }, 0)
}

function exhausted(subject: keyof About, about: About, { meter, spent, amount }: Pick<Left, 'meter' | 'spent' | 'amount'>): Refusal {
  const { word } = SHOWN[meter]
  return refuse(
    'BUDGET_EXHAUSTED',
    `The ${subject}'s budget of ${shown(meter, amount)} ${word} is used up or promised to runs that live.`,
    {
      hint: `${shown(meter, spent)} ${word} were used. A person raises it with budget_set.`,
      next_tool: 'budget_get',
      next_arguments: { [SUBJECTS[subject]]: about[subject] },
    },
  )
}

const Subject = z
  .strictObject({ task_id: TaskId.optional(), project_id: ProjectId.optional() })
  .refine((input) => (input.task_id === undefined) !== (input.project_id === undefined), 'name either task_id or project_id')

export const getBudget = defineTool({
  name: 'budget_get',
  title: 'Read a budget',
  description: 'What the agents of a task or project may use, and have used.',
  input: Subject,
  output: z.strictObject({ budget: Limits, spent: Amount }),
  example: { task_id: 'T-1' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, project_id }) {
    const id = (task_id ?? project_id) as string
    const spent = await runStore(ctx.view).spent(task_id ? 'task_id' : 'project_id', id, ctx.now)
    return { budget: shownLimits(await budgetStore(ctx.view).of(id)), spent: shownSpent(spent) }
  },
})

export const setBudget = defineTool({
  name: 'budget_set',
  title: 'Set a budget',
  description: 'Limit what the agents of a task or project may use altogether; null takes a limit away.',
  input: z
    .strictObject({ task_id: TaskId.optional(), project_id: ProjectId.optional(), ...Budget.shape })
    .refine((input) => (input.task_id === undefined) !== (input.project_id === undefined), 'name either task_id or project_id'),
  output: z.strictObject({ budget: Limits, spent: Amount }),
  example: { task_id: 'T-1', cost_usd: 5, minutes: 90 },
  impact: 'write',
  profile: 'operator',
  by: 'person',
  async run(ctx, { task_id, project_id, ...amounts }) {
    const id = (task_id ?? project_id) as string
    const store = budgetStore(ctx.tx)
    for (const meter of METERS) {
      const amount = amounts[SHOWN[meter].field]
      if (amount !== undefined) await store.set(id, meter, amount === null ? null : Math.round(amount * SHOWN[meter].unit))
    }
    const project = project_id ?? (await projectOfTask(ctx.tx, id)) ?? null
    for (const run of await runStore(ctx.tx).livingIn(task_id ? 'task_id' : 'project_id', id)) {
      const reason = await overBudget(ctx, run)
      if (reason) await endFor(ctx, run, reason)
    }
    ctx.emit(budgetSet({ subject: id, project, task: task_id ?? null }, amounts))
    const spent = await runStore(ctx.tx).spent(task_id ? 'task_id' : 'project_id', id, ctx.now)
    return { budget: shownLimits(await store.of(id)), spent: shownSpent(spent) }
  },
})

function shownSpent(spent: Spent): z.output<typeof Amount> {
  return { minutes: shown('wall_clock', spent.wall_clock), turns: spent.turns, tokens: spent.tokens, cost_usd: shown('cost', spent.cost) }
}
