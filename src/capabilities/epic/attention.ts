import type { Tx } from '../../kernel/storage.ts'
import { agentStore } from '../agent/index.ts'
import { isAtWork, jobStore } from '../job/index.ts'
import type { Step } from '../need/index.ts'
import { isCurrent, reviewStore } from '../review/index.ts'
import { type AttentionSource, isOpen, type TaskRow, taskStore } from '../task/index.ts'
import { epicHandle } from './rules.ts'
import type { EpicState } from './schema.ts'
import { type EpicRow, epicStore } from './store.ts'

type Told = Awaited<ReturnType<AttentionSource>>

/** Of tasks in epics, as long as nobody is at work on them: what starts somebody. */
export const epicAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Told = new Map()
  const inEpics = tasks.filter(({ epic_id, status, task_type }) => epic_id !== null && status !== 'REVIEW' && task_type === 'AUTO')
  if (!inEpics.length) return told
  const jobs = new Map((await jobStore(view).latest(inEpics.map(({ id }) => id))).map((job) => [job.task_id, job]))
  const epics = new Map<string, EpicRow | undefined>()
  for (const task of inEpics) {
    const job = jobs.get(task.id)
    const failed = job?.state === 'failed' || job?.state === 'cancelled'
    if (job && job.state !== 'succeeded' && !(failed && task.lead)) continue
    const id = task.epic_id as string
    if (!epics.has(id)) epics.set(id, await epicStore(view).find(id))
    const epic = epics.get(id)
    if (!epic || isAtWork(job)) continue
    if (task.lead) {
      const next = await ofLead(view, epic, failed)
      if (next) told.set(task.id, next)
    } else if (epic.state === 'IN_PROGRESS' && !(await isBlocked(view, task)))
      told.set(task.id, { attention: 'queued', detail: `It gets a worker as soon as one of ${epic.max_workers} is free.` })
  }
  return told
}

/** Of work that was handed in: its supervisor decides. One of ours that will not be started for it does not: without a person it would wait for ever. */
export const handedInAttention: AttentionSource = async ({ view }, tasks) => {
  const told: Told = new Map()
  const handedIn = tasks.filter(({ epic_id, status, lead }) => epic_id !== null && status === 'REVIEW' && !lead)
  const rounds = await reviewStore(view).latest(handedIn.map(({ id }) => id))
  const leads = new Map<string, Lead | undefined>()
  for (const task of handedIn) {
    const id = task.epic_id as string
    const last = rounds.find(({ task_id }) => task_id === task.id)
    const round = isCurrent(last) ? last : undefined
    if (round?.decision === 'approve') continue
    if (!leads.has(id)) leads.set(id, await leaderOf(view, id))
    const lead = leads.get(id)
    const detail = whyLeft(lead, round?.requested_at ?? task.status_changed_at)
    if (detail) told.set(task.id, { attention: 'human', detail })
    else if (lead?.epic.supervisor_id) told.set(task.id, { attention: 'reviewer', detail: null })
  }
  return told
}

interface Lead {
  epic: EpicRow
  /** Neither at work, nor in a window of its own. */
  idle: boolean
  /** Somebody stopped it, or took its last job away. */
  stopped: boolean
  /** When it was last started. */
  begun: number | undefined
}

async function leaderOf(view: Tx, epicId: string): Promise<Lead | undefined> {
  const epic = await epicStore(view).find(epicId)
  const lead = epic?.lead_task_id ? await taskStore(view).find(epic.lead_task_id) : undefined
  if (!epic) return undefined
  const supervisor = lead?.assignee_id ? await agentStore(view).agent(lead.assignee_id) : undefined
  const [job] = lead ? await jobStore(view).latest([lead.id]) : []
  const idle = lead !== undefined && !isAtWork(job)
  return { epic, idle, stopped: supervisor?.desired !== 'running' || job?.state === 'cancelled', begun: job?.created_at }
}

/** As the reconciler decides whom it starts. */
function whyLeft(lead: Lead | undefined, handedInAt: number): string | undefined {
  if (!lead?.idle) return undefined
  if (lead.epic.state !== 'IN_PROGRESS')
    return `${epicHandle(lead.epic)} is not in progress: its supervisor is not started. Decide about it.`
  if (lead.stopped) return 'Its supervisor was stopped: decide about it, or start that again.'
  if (lead.begun !== undefined && handedInAt < lead.begun)
    return 'Its supervisor has ended without a decision: decide about it, or write to it.'
  return undefined
}

/** Undefined while its supervisor has failed and there is something left to supervise: how that failed says what to do. */
async function ofLead(view: Tx, epic: EpicRow, failed: boolean) {
  const epic_id = epicHandle(epic)
  const human = (detail: string, ...steps: Step[]) => ({ attention: 'human' as const, detail, steps })
  const become = (state: EpicState) => ({ tool: 'epic_update', arguments: { epic_id, state } })
  if (epic.state === 'REVIEW')
    return human(`The epic was handed in: merge ${epic.branch}, then mark it COMPLETED.`, become('COMPLETED'), become('IN_PROGRESS'))
  if (failed && epic.state !== 'IN_PROGRESS') return undefined
  if (epic.state !== 'IN_PROGRESS') return human('The epic is not in progress.', become('IN_PROGRESS'))
  const tasks = await taskStore(view).list({ epic: epic.id }, 'number', undefined, 1_000)
  const open = tasks.filter(({ status }) => status !== 'DONE').length
  if (failed && (open || !tasks.length)) return undefined
  if (open)
    return {
      attention: 'dependency' as const,
      detail: `Its supervisor waits for ${open} open tasks, for work that is handed in and for letters.`,
    }
  if (tasks.length) return human('All its tasks are done: hand in the epic.', { tool: 'epic_finish', arguments: { epic_id } })
  return human('It has no tasks: make some, or write to its supervisor.', { tool: 'task_create', arguments: { epic_id, title: '…' } })
}

async function isBlocked(view: Tx, task: TaskRow): Promise<boolean> {
  return task.status === 'BACKLOG' && (await taskStore(view).blockers([task.id])).some(isOpen)
}
