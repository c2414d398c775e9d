import { z } from 'zod'
import type { EffectRow } from '../../db/effect-store.ts'
import { EFFECT_STATES } from '../../kernel/effect.ts'
import { refuse } from '../../kernel/error.ts'
import { defineEvent } from '../../kernel/event.ts'
import { redact, redactText } from '../../kernel/redact.ts'
import { iso, isoOrNull, PageSize, PageToken, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { EffectId } from '../ids.ts'
import { effectList } from './store.ts'

const State = z.enum(EFFECT_STATES)

/** Of those that are not over. */
const Counts = z.strictObject({ waiting: z.int(), running: z.int(), dead: z.int(), unknown: z.int() })

const EffectView = z.strictObject({
  id: EffectId,
  type: z.string(),
  state: State,
  queue: z.string().nullable(),
  attempts: z.int(),
  max_attempts: z.int(),
  due_at: Timestamp,
  error: z.string().nullable(),
  payload: z.unknown(),
  call_id: z.string(),
  created_at: Timestamp,
  finished_at: Timestamp.nullable(),
})

/** Written by what runs effects, in the transaction that gives one up. */
export const effectStuck = defineEvent(
  'effect.stuck',
  z.strictObject({ type: z.string(), state: z.enum(['dead', 'unknown']), error: z.string() }),
)
export const effectDecided = defineEvent('effect.decided', z.strictObject({ decision: z.enum(['retry', 'drop']) }))

export const list = defineTool({
  name: 'effect_list',
  title: 'List effects',
  description: 'Work on the outside world that is stuck: dead or unknown ones, or those of other states; and how many are open.',
  input: z.strictObject({
    states: z.array(State).min(1).max(6).default(['dead', 'unknown']),
    limit: PageSize,
    before: PageToken.optional(),
  }),
  output: z.strictObject({ effects: z.array(EffectView), counts: Counts, next: z.string().nullable() }),
  example: { states: ['dead', 'unknown'] },
  impact: 'read',
  profile: 'operator',
  across: 'projects',
  async look(ctx, { states, before, limit }) {
    const rows = await effectList(ctx.view).list(states, before, limit)
    const counts = await effectList(ctx.view).counts()
    return { effects: rows.map(effectView), counts, next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

const Decision = z.strictObject({ effect_id: EffectId })
const Decided = z.strictObject({ effect_id: EffectId, decision: z.enum(['retry', 'drop']) })

export const retry = defineTool({
  name: 'effect_retry',
  title: 'Retry an effect',
  description: 'Try a dead or unknown effect again, from its first attempt.',
  input: Decision,
  output: Decided,
  example: { effect_id: 'effect_01jc80000000000000000000000000000000' },
  impact: 'write',
  profile: 'maintainer',
  run: (ctx, input) => decide(ctx, input.effect_id, 'retry'),
})

export const drop = defineTool({
  name: 'effect_drop',
  title: 'Drop an effect',
  description: 'Decide that a dead or unknown effect shall not be done.',
  input: Decision,
  output: Decided,
  example: { effect_id: 'effect_01jc80000000000000000000000000000000' },
  impact: 'destructive',
  profile: 'maintainer',
  run: (ctx, input) => decide(ctx, input.effect_id, 'drop'),
})

async function decide(ctx: RunContext, effect_id: string, decision: 'retry' | 'drop') {
  if (!(await ctx.decideEffect(effect_id, decision))) {
    const found = await effectList(ctx.tx).find(effect_id)
    return refuse('CONFLICT', `That effect is ${found?.state}; only a dead or unknown one waits for a decision.`, {
      next_tool: 'effect_list',
      next_arguments: {},
    })
  }
  ctx.emit(effectDecided({ subject: effect_id, audience: 'people' }, { decision }))
  return { effect_id, decision }
}

function effectView(row: EffectRow): z.output<typeof EffectView> {
  const { id, type, state, queue, attempts, max_attempts, error, call_id } = row
  const times = {
    due_at: iso(Math.max(row.run_at, row.created_at)),
    created_at: iso(row.created_at),
    finished_at: isoOrNull(row.finished_at),
  }
  return { id, type, state, queue, attempts, max_attempts, error, call_id, payload: shown(row.payload), ...times }
}

/** One that somebody damaged is shown as it is: it has to be seen to be dropped. */
function shown(payload: string): unknown {
  try {
    return redact(JSON.parse(payload))
  } catch {
    return redactText(payload)
  }
}
