import { type Refusal, refuse } from '../../kernel/error.ts'
import type { CallContext } from '../../kernel/tool.ts'
import type { Approvals, Harness } from '../../ports/harness.ts'

/** `claude=ask`, or `*=ask` for every harness that is not named. */
export const APPROVAL_LINE = /^(?:\*|[a-z][a-z0-9_-]{0,39})=(?:allow|ask|deny)$/

/** What becomes of what the agents of a harness ask permission for: as its job says, else as the setting does. */
export function approvalsFor(ctx: Pick<CallContext, 'setting'>, harness: string, given: Approvals | undefined): Approvals {
  const lines = ctx.setting<string[]>('runs.approvals').map((line) => line.split('=') as [string, Approvals])
  return given ?? (lines.find(([name]) => name === harness) ?? lines.find(([name]) => name === '*'))?.[1] ?? 'allow'
}

/** A question that nobody could pass on would be none: the agent would go on without it, or wait for ever. */
export function cannotAsk(harness: Harness, approvals: Approvals): Refusal | undefined {
  if (approvals !== 'ask' || harness.can.approve) return undefined
  return refuse('INVALID_INPUT', `${harness.title} asks nobody for permission, so approvals cannot be ask.`, {
    hint: `Say "${harness.name}=allow" or "${harness.name}=deny" in the setting runs.approvals, or in the options of the job; or choose a harness that can approve.`,
    next_tool: 'job_actions',
  })
}
