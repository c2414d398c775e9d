import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Refusal } from '../kernel/error.ts'
import { call, type Reach, type Row } from '../surfaces/cli/call.ts'
import { commandOf, named } from '../surfaces/cli/names.ts'
import { asTyped } from '../surfaces/cli/shell.ts'

/** A task that waits for a person, as `task_list` has it. */
export interface Waiting extends Row {
  id: string
  handle: string
  project_id: string
  status: string
  attention_steps?: Step[]
}

interface Step {
  tool: string
  arguments: Record<string, unknown>
}

interface Repo extends Row {
  handle: string
}

/** In the order in which they are shown: what others wait for comes first. */
export const KINDS = [
  'To review',
  'Epics that wait for you',
  'Not going on by itself',
  'To work on together',
  'Handed out, but not begun',
  'In progress, but nobody is on it',
  'Ready to hand out',
] as const
export type Kind = (typeof KINDS)[number]

export function kindOf({ status, lead, task_type, attention_detail, assignee_id }: Row): Kind {
  if (lead) return 'Epics that wait for you'
  if (status === 'REVIEW') return 'To review'
  if (task_type === 'PAIR') return 'To work on together'
  if (attention_detail) return 'Not going on by itself'
  if (status === 'IN_PROGRESS') return 'In progress, but nobody is on it'
  return assignee_id ? 'Handed out, but not begun' : 'Ready to hand out'
}

export function idleWorker(agents: Row[]): string | undefined {
  return agents.find(({ state, role }) => state === 'IDLE' && role === 'worker')?.handle as string | undefined
}

/** What to type about each, for the first of those that need the same: every line is accepted as it stands. */
export async function nextSteps(reach: Reach, tasks: Waiting[], idle: string | undefined): Promise<Record<string, string[]>> {
  const next: Record<string, string[]> = {}
  const seen = new Set<string>()
  for (const task of tasks) {
    const same = `${kindOf(task)} ${JSON.stringify(task.attention_steps ?? '').replaceAll(task.handle, '')}`
    if (seen.has(same)) continue
    seen.add(same)
    const steps = task.attention_steps ?? (await stepsByStatus(reach, task, idle))
    next[task.handle] = (await Promise.all(steps.map((step) => (isStart(step) ? startable(reach, task, step) : [step])))).flat().map(typed)
  }
  return next
}

async function stepsByStatus(reach: Reach, task: Waiting, idle: string | undefined): Promise<Step[]> {
  const of = { task_id: task.handle }
  switch (kindOf(task)) {
    case 'To review':
      return toReview(reach, task)
    case 'To work on together':
      return [{ tool: 'session_open', arguments: of }]
    case 'Handed out, but not begun':
      return [{ tool: 'task_move', arguments: { ...of, status: 'IN_PROGRESS' } }]
    default:
      return idle
        ? [{ tool: 'task_assign', arguments: { ...of, agent_id: idle } }]
        : [
            { tool: 'job_submit', arguments: { ...of, action: 'start_agent' } },
            { tool: 'agent_invite', arguments: { role: 'worker' } },
          ]
  }
}

async function toReview(reach: Reach, { id, handle: task_id }: Waiting): Promise<Step[]> {
  const lines = ((await call(reach, 'merge_status', { task_id }).catch(unlessNone))?.lines ?? []) as (Row & { waiting: Row[] })[]
  const held = lines.find(({ held, waiting }) => held !== null && waiting.some((merge) => merge.task_id === id))
  // Approved, and kept back with all the others.
  if (held) return [{ tool: 'merge_retry', arguments: { repo_id: held.repo, target: held.target } }]
  const sendBack = { tool: 'review_decide', arguments: { task_id, decision: 'request_changes', feedback: '…' } }
  const work = (await call(reach, 'work_get', { task_id })).work as Row | null
  // Moved there by hand: there is nothing that could be merged.
  if (!work || work.state === 'planned') return [{ tool: 'task_close', arguments: { task_id, reason: '…' } }, sendBack]
  return [{ tool: 'diff_get', arguments: { task_id } }, { tool: 'review_decide', arguments: { task_id, decision: 'approve' } }, sendBack]
}

const isStart = ({ tool, arguments: { action } }: Step) => tool === 'job_submit' && action === 'start_agent'

/** A start that has its repository and its program; else what is missing for it. */
async function startable(reach: Reach, { project_id, epic_id }: Waiting, start: Step): Promise<Step[]> {
  const repos = (await call(reach, 'repo_list', { project_id, limit: 2 })).repos as Repo[]
  const [repo, another] = repos
  if (!repo) return [{ tool: 'repo_add', arguments: { path: repositoryHere(), project_id } }]
  const program = await programToName(reach)
  if (program === undefined) return [{ tool: 'job_actions', arguments: {} }]
  const chosen = { ...(program ? { harness: program } : {}), ...(another && !epic_id ? { repo_id: repo.handle } : {}) }
  return [{ ...start, arguments: { ...start.arguments, ...chosen } }]
}

/** Empty: it need not be named. Undefined: there is none. */
async function programToName(reach: Reach): Promise<string | undefined> {
  const [setting] = (await call(reach, 'setting_get', { key: 'runs.default_harness' })).settings as Row[]
  if (setting?.value) return ''
  const ready = ((await call(reach, 'job_actions', {})).harnesses as Row[]).filter(({ available, signed_in }) => available && signed_in)
  return ready.length === 1 ? '' : (ready[0]?.name as string | undefined)
}

/** Where the person stands, if that is one. */
function repositoryHere(): string | undefined {
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    if (existsSync(join(folder, '.git'))) return folder
    if (folder === dirname(folder)) return undefined
  }
}

/** One whose arguments nobody can guess is explained. */
function typed({ tool, arguments: input }: Step): string {
  const found = named(tool)
  if (!found) throw new Error(`there is no tool ${tool}`)
  if (Object.values(input).includes(undefined)) return `signalbox ${commandOf(found)} --help`
  return asTyped(found, input)
}

function unlessNone(error: unknown): undefined {
  if (error instanceof Refusal && error.body.code === 'RESOURCE_NOT_FOUND') return undefined
  throw error
}
