import { definePoint } from '../../kernel/point.ts'
import { commandOf, type RunContext } from '../../kernel/tool.ts'

/** Whoever of the people reads it first. */
export const HUMAN = 'human'
/** Signalbox itself: nobody can answer it. */
export const SYSTEM_SENDER = 'system'

export const IMPORTANCES = ['low', 'normal', 'high', 'urgent'] as const
export type Importance = (typeof IMPORTANCES)[number]

export interface Letter {
  /** `system`, or the id of an agent or a person. */
  from: string
  /** The id of an agent or a person, or `human`. */
  to: string
  subject: string
  body: string
  importance?: Importance
  needs_ack?: boolean
  /** That of the letter that it answers. */
  thread?: string
  in_reply_to?: string
  /** What it is about; default: where its sender works, or for a letter of Signalbox its receiver. */
  about?: { project_id?: string | null; epic_id?: string | null; task_id?: string | null }
}

/** Who stores and delivers letters. Without anybody they are not written: events and tasks say the same. */
export const letters = definePoint.one<(ctx: RunContext, letter: Letter) => Promise<void>>('agent.letter', async () => {})

export function sendLetter(ctx: RunContext, letter: Letter): Promise<void> {
  return ctx.ask(letters, letter)
}

/** A call as the receiver of a letter makes it: an agent by the name of the tool, a person by a command. */
export function callFor(to: string, tool: string, ...words: string[]): string {
  return to.startsWith('agent_') ? tool : `\`${['signalbox', commandOf(tool), ...words].join(' ')}\``
}
