import { z } from 'zod'
import { redactText } from '../../kernel/redact.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { admitToken } from '../agent/index.ts'
import { TaskId } from '../ids.ts'
import { withdraw } from '../setup/index.ts'
import { taskStore, transition } from '../task/index.ts'
import { closeSession, launching, promptSession } from './effects.ts'
import { aboutSession, askToClose, named, over } from './rules.ts'
import { PROMPT_STATES, type PromptState, sessionOpened, sessionPrompted, sessionTyped } from './schema.ts'
import { type SessionRow, sessionStore } from './store.ts'

/** What the daemon tells of sessions. Each is one transaction, and says the same when it is said again. */
const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const
const Told = z.strictObject({ session_id: z.string() })

export const prepared = defineTool({
  ...internal,
  name: 'session_prepared',
  title: 'A session has its token',
  description: 'The secret lies in a file of the session; here its hash becomes a token of the agent.',
  input: Told.extend({ host: z.string(), token_hash: z.string() }),
  async run(ctx, { session_id, host, token_hash }) {
    const row = await requireSession(ctx, session_id)
    if (row.state !== 'opening') return {}
    const token_id = row.token_id ?? (await admitToken(ctx, row.agent_id, token_hash))
    await sessionStore(ctx.tx).update(row.id, { host, token_id })
    return {}
  },
})

export const started = defineTool({
  ...internal,
  name: 'session_started',
  title: 'A session has its terminal',
  description: 'Its program was started.',
  input: Told.extend({ attach: z.array(z.string()), prompt: z.enum(PROMPT_STATES) }),
  async run(ctx, { session_id, attach, prompt }) {
    const row = await requireSession(ctx, session_id)
    if (row.state !== 'opening') return {}
    await sessionStore(ctx.tx).update(row.id, { state: 'open', attach: JSON.stringify(attach), prompt })
    ctx.emit(sessionOpened(aboutSession(row), { ...named(row), host: row.host ?? '' }))
    return {}
  },
})

export const readied = defineTool({
  ...internal,
  name: 'session_readied',
  title: 'The program takes a prompt',
  description: 'It has started, and what a person had to answer is answered.',
  input: Told,
  async run(ctx, { session_id }) {
    const row = await requireSession(ctx, session_id)
    if (row.state !== 'open' || !isPending(row.prompt)) return {}
    if (row.prompt === 'needs_input') await prompted(ctx, row, 'waiting', null)
    ctx.enqueue(promptSession({ session_id }, { queue: row.id }))
    return {}
  },
})

export const delivered = defineTool({
  ...internal,
  name: 'session_delivered',
  title: 'What became of the prompt',
  description: 'Sent, not verified, failed, or waiting for a person to answer a dialog.',
  input: Told.extend({ prompt: z.enum(PROMPT_STATES), detail: z.string().nullable() }),
  async run(ctx, { session_id, prompt, detail }) {
    const row = await requireSession(ctx, session_id)
    if (row.state !== 'open' || !isPending(row.prompt)) return {}
    await prompted(ctx, row, prompt, detail)
    return {}
  },
})

export const typed = defineTool({
  ...internal,
  name: 'session_typed',
  title: 'Something was typed',
  description: 'Or could not be.',
  input: Told.extend({
    request: z.string(),
    by: z.string(),
    characters: z.int(),
    keys: z.array(z.string()),
    problem: z.string().nullable(),
  }),
  async run(ctx, { session_id, ...data }) {
    const row = await requireSession(ctx, session_id)
    ctx.emit(sessionTyped(aboutSession(row), { ...named(row), ...data }))
    return {}
  },
})

export const ended = defineTool({
  ...internal,
  name: 'session_ended',
  title: 'A session is over',
  description: 'It was closed, its program ended, or its terminal is gone. Its token ends with it.',
  input: Told.extend({
    state: z.enum(['closed', 'lost']),
    reason: z.string(),
    screen: z.string().optional(),
    /** By what closes it: nothing of it lives any more. */
    all: z.boolean().default(false),
  }),
  async run(ctx, { session_id, state, reason, screen, all }) {
    const row = await requireSession(ctx, session_id)
    const asked = row.close_asked_at !== null
    // Its terminal goes before the last of what was started in it.
    if (row.state === 'closed' || row.state === 'lost' || (asked && !all)) return {}
    await over(
      ctx,
      row,
      asked ? 'closed' : state,
      asked ? 'It was closed.' : redactText(reason),
      screen === undefined ? null : redactText(screen),
    )
    await withdraw(ctx, row.task_id, launching(row.id))
    // What its program left behind, and the terminal that shows that it ended.
    if (!asked) ctx.enqueue(closeSession({ session_id }, { queue: row.id }))
    if (row.state === 'opening' && !asked) await putBack(ctx, row, reason)
    return {}
  },
})

export const taskOver = defineTool({
  ...internal,
  name: 'session_task_over',
  title: 'A task needs no terminal any more',
  description: 'It is done, deleted, or an agent works on it by itself.',
  input: z.strictObject({ task_id: TaskId }),
  async run(ctx, { task_id }) {
    const task = await taskStore(ctx.tx).find(task_id)
    const wanted = task?.task_type === 'PAIR' && task.status !== 'DONE' && task.deleted_at === null
    const row = wanted ? undefined : await sessionStore(ctx.tx).livingOf(task_id)
    if (row) await askToClose(ctx, row)
    return {}
  },
})

async function prompted(ctx: RunContext, row: SessionRow, prompt: PromptState, detail: string | null): Promise<void> {
  const text = detail === null ? null : redactText(detail)
  await sessionStore(ctx.tx).update(row.id, { prompt, prompt_detail: text })
  ctx.emit(sessionPrompted(aboutSession(row), { ...named(row), prompt, detail: text }))
}

function isPending(prompt: PromptState): boolean {
  return prompt === 'waiting' || prompt === 'needs_input'
}

/** A task on which nobody could begin is back on the board. */
async function putBack(ctx: RunContext, row: SessionRow, reason: string): Promise<void> {
  const task = await taskStore(ctx.tx).find(row.task_id)
  if (task?.status === 'IN_PROGRESS' && task.deleted_at === null) await transition(ctx, task, 'BACKLOG', reason.slice(0, 500))
}

async function requireSession(ctx: RunContext, id: string): Promise<SessionRow> {
  const row = await sessionStore(ctx.tx).find(id)
  if (!row) throw new Error(`the session ${id} is not there`)
  return row
}
