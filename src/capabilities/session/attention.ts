import type { AttentionSource } from '../task/index.ts'
import { sessionStore } from './store.ts'

/** What the newest session of a PAIR task says of it. */
export const sessionAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Awaited<ReturnType<AttentionSource>> = new Map()
  const pair = tasks.filter((task) => task.task_type === 'PAIR')
  for (const session of await sessionStore(view).latest(pair.map(({ id }) => id))) {
    const human = (detail: string) => told.set(session.task_id, { attention: 'human', detail })
    const task = pair.find(({ id }) => id === session.task_id)
    if (session.state === 'opening') told.set(session.task_id, { attention: 'queued', detail: 'Its terminal is being opened.' })
    else if (session.state === 'open') {
      if (session.prompt === 'needs_input') human(`${session.prompt_detail ?? 'It asks something.'} Attach and answer it.`)
      else if (session.prompt === 'not_verified') human(`Look whether the prompt was taken. ${session.prompt_detail ?? ''}`.trim())
      else if (session.prompt === 'failed') human(`The prompt was not sent: ${session.prompt_detail ?? ''} Attach and tell it yourself.`)
      else told.set(session.task_id, { attention: 'running', detail: 'Its terminal is open.' })
    } else if (session.state === 'lost') human('Its terminal was lost. Open it again; the worktree is as it was.')
    else if (task?.status === 'IN_PROGRESS') human(`Its terminal is closed: ${session.reason ?? ''} Open it again, or ask for review.`)
  }
  return told
}
