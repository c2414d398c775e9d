import type { Tx } from '../../kernel/storage.ts'
import { agentStore } from '../agent/index.ts'
import { jobStore } from '../job/index.ts'
import { type AttentionSource, taskStore } from '../task/index.ts'
import { stateOf } from './queue.ts'
import { feedbackStore, type ReviewRow, reviewStore } from './store.ts'

type Told = Awaited<ReturnType<AttentionSource>>
const human = (detail: string) => ({ attention: 'human' as const, detail })

/** Of work that somebody reads, that nobody has decided about in time, that could not be merged, or that was given up. */
export const reviewAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Told = new Map()
  const candidates = tasks.filter(({ status }) => status === 'REVIEW' || status === 'BACKLOG')
  for (const round of await reviewStore(view).latest(candidates.map(({ id }) => id))) {
    const task = candidates.find(({ id }) => id === round.task_id)
    const detail = task?.status === 'REVIEW' ? await ofRound(view, round) : undefined
    if (detail) told.set(round.task_id, detail)
    // Of one that is started again its job says more.
    const [job] = task?.status === 'BACKLOG' && round.abandoned_at !== null ? await jobStore(view).latest([round.task_id]) : []
    const over = !job || (job.ended_at !== null && job.created_at <= (round.abandoned_at ?? 0))
    if (task?.status === 'BACKLOG' && round.abandoned_at !== null && over)
      told.set(round.task_id, human(`Its work was given up after round ${round.round}. ${round.reason ?? ''}`.trim()))
  }
  return told
}

async function ofRound(view: Tx, round: ReviewRow) {
  if (await feedbackStore(view).sendingOf(round.task_id))
    return { attention: 'reviewer' as const, detail: 'Feedback is on its way to its worker.' }
  if (round.decision === 'timed_out') return human(`${round.reason} Decide about it, or give it up.`)
  if (round.decision === null && round.reader === 'human') return human('Its rounds of review are used up. Decide about it, or give it up.')
  if (stateOf(round) === 'stuck') return human(`It was approved, but not merged: ${round.reason}`)
  if (round.decision !== null || round.reviewer_task_id === null) return undefined
  const hidden = await taskStore(view).find(round.reviewer_task_id)
  const [job] = hidden ? await jobStore(view).latest([hidden.id]) : []
  if (hidden?.status === 'DONE') return human(`Its reviewer could not be started: ${hidden.closed_reason} Decide about it yourself.`)
  if (job && job.state !== 'queued' && job.state !== 'running')
    return human(`Its reviewer ended without a decision${job.reason ? `: ${job.reason}` : '.'} Decide about it yourself.`)
  const agent = hidden?.assignee_id ? await agentStore(view).agent(hidden.assignee_id) : undefined
  return { attention: 'reviewer' as const, detail: agent ? `${agent.handle} reads it.` : null }
}
