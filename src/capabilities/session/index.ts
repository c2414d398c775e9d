import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { text } from '../../kernel/schema.ts'
import type { Reading, RunContext } from '../../kernel/tool.ts'
import { agentTerminal } from '../agent/index.ts'
import { attention, taskSteps } from '../task/index.ts'
import { inUse } from '../work/index.ts'
import { sessionAttention } from './attention.ts'
import { closeSession, launchSession, promptSession, typeInto } from './effects.ts'
import { follower } from './follow.ts'
import { migrations } from './migrations.ts'
import { delivered, ended, prepared, readied, started, taskOver, typed } from './reports.ts'
import { askToClose, openSession } from './rules.ts'
import {
  PROMPT_STATES,
  SESSION_STATES,
  sessionClosed,
  sessionClosing,
  sessionOpened,
  sessionOpening,
  sessionPrompted,
  sessionTyped,
} from './schema.ts'
import { openTerminal } from './steps.ts'
import { sessionStore } from './store.ts'
import { close, exists, open, read, type } from './tools.ts'

export const session = defineCapability({
  name: 'session',
  tools: [open, exists, read, type, close, prepared, started, readied, delivered, typed, ended, taskOver],
  migrations,
  values: { sessions: { state: SESSION_STATES, prompt: PROMPT_STATES, attach: JSON_TEXT } },
  events: [sessionOpening, sessionOpened, sessionPrompted, sessionTyped, sessionClosing, sessionClosed],
  effects: [launchSession, promptSession, typeInto, closeSession],
  reactors: [follower],
  answers: [
    answer(agentTerminal, terminalOf),
    answer(attention, sessionAttention, 'terminal'),
    answer(taskSteps, openTerminal, 'terminal'),
    answer(inUse, openSession),
  ],
  settings: {
    'sessions.default_program': setting(text(40), 'claude', 'Which program session_open starts when it is not told'),
  },
})

export { openSession } from './rules.ts'
export { sessionClosed } from './schema.ts'

/** Of a task whose work was given up. */
export async function closeTerminal(ctx: RunContext, task: string): Promise<void> {
  const row = await sessionStore(ctx.tx).livingOf(task)
  if (row) await askToClose(ctx, row)
}

/** The name of the terminal that an agent is in. */
async function terminalOf({ view }: Reading, agent: string): Promise<string | undefined> {
  return (await sessionStore(view).ofAgent(agent))?.name
}
