import { z } from 'zod'
import { Refusal } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { type AgentRow, agentStore, callFor, HUMAN, sendLetter } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { beginWork, isAtWork, jobStore, sentBack } from '../job/index.ts'
import { isCurrent, reviewStore } from '../review/index.ts'
import { runStore } from '../run/index.ts'
import { handleOf, isOpen, type TaskRow, taskStore } from '../task/index.ts'
import { leadOf } from './lead.ts'
import { aboutEpic, epicHandle, launchOf } from './rules.ts'
import { workerStarted } from './schema.ts'
import { type EpicRow, epicStore } from './store.ts'

const MOST_TASKS = 1_000
const MOST_REASONS = 20

type Job = Awaited<ReturnType<ReturnType<typeof jobStore>['latest']>>[number]

/** What an epic has, as far as it decides who is to be started. */
interface Seen {
  tasks: TaskRow[]
  /** The newest job of each that started somebody, or is to. */
  jobs: Map<string, Job>
}

export const reconcileEpic = defineTool({
  name: 'epic_reconcile',
  title: 'Compare what an epic wants with what is',
  description: 'Starts those for whom there is work, as far as there is room. No model decides about it.',
  input: z.strictObject({ epic_id: z.string() }),
  output: z.strictObject({}),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { epic_id }) {
    await takeTurn(ctx.tx, `epic:${epic_id}`)
    const epic = await epicStore(ctx.tx).find(epic_id)
    if (epic?.state !== 'IN_PROGRESS') return {}
    const seen = await look(ctx, epic)
    await startWorkers(ctx, epic, seen)
    await tellOfFailures(ctx, epic, seen)
    await wakeSupervisor(ctx, epic, seen)
    return {}
  },
})

async function look(ctx: RunContext, epic: EpicRow): Promise<Seen> {
  const tasks = await taskStore(ctx.tx).list({ epic: epic.id }, 'number', undefined, MOST_TASKS)
  const open = tasks.filter(({ status }) => status !== 'DONE').map(({ id }) => id)
  return { tasks, jobs: new Map((await jobStore(ctx.tx).latest(open)).map((job) => [job.task_id, job])) }
}

/** Those that were sent back come first: others may wait for them. */
async function startWorkers(ctx: RunContext, epic: EpicRow, { tasks, jobs }: Seen): Promise<void> {
  let free = epic.max_workers - tasks.filter(({ id }) => isAtWork(jobs.get(id))).length
  if (free <= 0) return
  const ready = await readyOf(ctx, tasks, jobs)
  for (const task of ready) {
    if (free <= 0) return
    const message = task.status === 'IN_PROGRESS' ? sentBack(task) : undefined
    const begun = await beginWork(ctx, task, { ...launchOf(epic, 'worker'), message })
    if (begun instanceof Refusal) await tellOnce(ctx, epic, `refused:${task.id}:${begun.body.code}`, cannotStart(task, begun))
    else {
      ctx.emit(workerStarted({ ...aboutEpic(epic), task: task.id }, { handle: handleOf(task), job_id: begun.id }))
      free--
    }
  }
}

/** Whoever was stopped, or has failed as often as it may, is started by somebody who says so. */
async function readyOf(ctx: RunContext, tasks: TaskRow[], jobs: Map<string, Job>): Promise<TaskRow[]> {
  const held = (job: Job | undefined) => job !== undefined && job.state !== 'succeeded'
  const wanted = tasks.filter(
    ({ id, status, task_type }) => task_type === 'AUTO' && (status === 'BACKLOG' || status === 'IN_PROGRESS') && !held(jobs.get(id)),
  )
  const blocked = new Set((await taskStore(ctx.tx).blockers(wanted.map(({ id }) => id))).filter(isOpen).map(({ task_id }) => task_id))
  const ready: TaskRow[] = []
  for (const task of wanted) {
    const worker = task.assignee_id ? await agentStore(ctx.tx).agent(task.assignee_id) : undefined
    const attached = worker !== undefined && !(await runStore(ctx.tx).lastOfAgent(worker.id))
    if (!attached && worker?.desired !== 'stopped' && (task.status !== 'BACKLOG' || !blocked.has(task.id))) ready.push(task)
  }
  const rank = ({ status }: TaskRow) => (status === 'IN_PROGRESS' ? 0 : 1)
  return ready.sort((a, b) => rank(a) - rank(b) || b.priority - a.priority || a.number - b.number)
}

async function tellOfFailures(ctx: RunContext, epic: EpicRow, { tasks, jobs }: Seen): Promise<void> {
  for (const task of tasks) {
    const job = jobs.get(task.id)
    if (job?.state === 'failed') await tellOnce(ctx, epic, `failed:${job.number}`, gaveUp(task, job))
  }
}

/** To its supervisor, or to the human where there is none. */
async function tellOnce(ctx: RunContext, epic: EpicRow, what: string, said: { subject: string; body: string }): Promise<void> {
  if (!(await epicStore(ctx.tx).notice(epic.id, what, ctx.now))) return
  const about = { project_id: epic.project_id, epic_id: epic.id, task_id: null }
  await sendLetter(ctx, { from: 'system', to: epic.supervisor_id ?? 'human', ...said, importance: 'high', about })
}

/** Once for what has come since it was last told: one who leaves it undone is not started for it again and again. */
async function wakeSupervisor(ctx: RunContext, epic: EpicRow, seen: Seen): Promise<void> {
  const lead = await leadOf(ctx, epic)
  const supervisor = lead?.assignee_id ? await agentStore(ctx.tx).agent(lead.assignee_id) : undefined
  if (!lead || lead.status === 'DONE' || supervisor?.desired !== 'running') return
  const [job] = await jobStore(ctx.tx).latest([lead.id])
  if (isAtWork(job) || job?.state === 'cancelled') return
  if (job?.state === 'failed')
    await tellOnce(ctx, { ...epic, supervisor_id: null }, `failed:${job.number}`, leaderless(epic, job, supervisor))
  const message = job && (await newsSince(ctx, epic, job.created_at, seen))
  if (job && !message) return
  const begun = await beginWork(ctx, lead, { ...launchOf(epic, 'supervisor'), message })
  if (begun instanceof Refusal)
    await tellOnce(ctx, { ...epic, supervisor_id: null }, `refused:${lead.id}:${begun.body.code}`, cannotStart(lead, begun))
}

/** What a supervisor has not been told yet; undefined when that is nothing. */
export async function newsSince(ctx: RunContext, epic: EpicRow, since: number, seen?: Seen): Promise<string | undefined> {
  const reasons = (await reasonsOf(ctx, seen ?? (await look(ctx, epic)))).filter(({ at }) => at >= since)
  return reasons.length ? news(epic, reasons) : undefined
}

interface Reason {
  at: number
  what: string
}

async function reasonsOf(ctx: RunContext, { tasks, jobs }: Seen): Promise<Reason[]> {
  const reasons: Reason[] = []
  const handedIn = tasks.filter(({ status }) => status === 'REVIEW')
  const rounds = await reviewStore(ctx.tx).latest(handedIn.map(({ id }) => id))
  for (const task of handedIn) {
    const round = rounds.find(({ task_id }) => task_id === task.id)
    if (!isCurrent(round)) reasons.push({ at: task.status_changed_at, what: `${handleOf(task)} waits for review.` })
    else if (round.decision === null && round.reader !== 'human')
      reasons.push({ at: round.requested_at, what: `${handleOf(task)} was handed in.` })
    else if (round.outcome === 'failed') reasons.push({ at: round.decided_at ?? 0, what: `${handleOf(task)} could not be merged.` })
  }
  for (const task of tasks) {
    const job = jobs.get(task.id)
    if (job?.state === 'failed')
      reasons.push({ at: job.ended_at ?? 0, what: `The worker of ${handleOf(task)} has given up: read your letters.` })
  }
  if (tasks.length && tasks.every(({ status }) => status === 'DONE')) {
    const at = Math.max(...tasks.map(({ status_changed_at }) => status_changed_at))
    reasons.push({ at, what: 'All its tasks are done.' })
  }
  return reasons
}

function news(epic: EpicRow, reasons: Reason[]): string {
  const told = reasons.slice(0, MOST_REASONS).map(({ what }) => `- ${what}`)
  return [`Since you last began, in ${epicHandle(epic)}:`, ...told, 'See review_queue and mail_inbox; when all is done, epic_finish.'].join(
    '\n',
  )
}

/** For the supervisor. */
function gaveUp(task: TaskRow, { number, reason }: Job) {
  const subject = `Worker gave up: ${handleOf(task)}`
  const body = `Nobody works on ${handleOf(task)} (${task.title}) any more. J-${number} failed: ${reason ?? 'it is not known why.'}\n\nChange the task and start its worker again with agent_start, close it with task_close, or ask the human.`
  return { subject, body }
}

/** For the human. */
function leaderless(epic: EpicRow, { number, reason }: Job, { handle }: AgentRow) {
  const subject = `Supervisor gave up: ${epicHandle(epic)}`
  const body = `Nobody leads ${epicHandle(epic)} (${epic.title}) until something new happens in it. J-${number} failed: ${reason ?? 'it is not known why.'}\n\nStart it again with ${callFor(HUMAN, 'agent_start', handle)}, or decide about its work yourself.`
  return { subject, body }
}

/** Of a worker for its supervisor, of a supervisor for the human. */
function cannotStart(task: TaskRow, { body: { message, hint, next_tool, next_arguments = {} } }: Refusal) {
  const words = Object.entries(next_arguments).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, String(value)])
  const what = task.lead ? next_tool && `See ${callFor(HUMAN, next_tool, ...words)}.` : hint
  return { subject: `Cannot start: ${handleOf(task)}`, body: `Nobody can be started on ${handleOf(task)}: ${message} ${what ?? ''}`.trim() }
}
