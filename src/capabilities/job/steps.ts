import type { LookContext } from '../../kernel/tool.ts'
import { agentStore, agentView, factsOf } from '../agent/index.ts'
import type { Step } from '../need/index.ts'
import { defaultProgram, readyPrograms } from '../programs.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, type StepSource, type TaskRow } from '../task/index.ts'

const MOST_AGENTS = 200

/** Who is to work on it: an agent that has nothing to do, or one that is started. A start names its program and its repository where it has to. */
export const toStart: StepSource = async (ctx, tasks) => {
  const idle = tasks.some(({ told }) => told === undefined) ? await idleWorker(ctx) : undefined
  const program = once(() => programToName(ctx))
  const steps = new Map<string, Step[]>()
  for (const { task, told } of tasks) {
    const all: Step[] = []
    for (const step of told ?? whoStarts(task, idle)) all.push(...(isStart(step) ? await startable(ctx, task, step, program) : [step]))
    steps.set(task.id, all)
  }
  return steps
}

function whoStarts(task: TaskRow, idle: string | undefined): Step[] {
  const of = { task_id: handleOf(task) }
  if (idle !== undefined) return [{ tool: 'task_assign', arguments: { ...of, agent_id: idle } }]
  return [
    { tool: 'job_submit', arguments: { ...of, action: 'start_agent' } },
    { tool: 'agent_invite', arguments: { role: 'worker' } },
  ]
}

async function idleWorker(ctx: LookContext): Promise<string | undefined> {
  const rows = (await agentStore(ctx.view).agents(undefined, '', MOST_AGENTS)).filter(({ role }) => role === 'worker')
  const facts = await factsOf(ctx, rows)
  for (const row of rows) if ((await agentView(ctx.view, row, facts(row), ctx.now)).state === 'IDLE') return row.handle
  return undefined
}

const isStart = ({ tool, arguments: { action } }: Step) => tool === 'job_submit' && action === 'start_agent'

/** What is missing for it comes first. */
async function startable(ctx: LookContext, task: TaskRow, start: Step, program: () => Promise<string | undefined>): Promise<Step[]> {
  const [repo, another] = await projectStore(ctx.view).repos(task.project_id, '', 2)
  if (!repo) return [{ tool: 'repo_add', arguments: { path: '…', project_id: task.project_id } }]
  const name = await program()
  if (name === undefined) return [{ tool: 'job_actions', arguments: {} }]
  const chosen = { ...(name ? { harness: name } : {}), ...(another && !task.epic_id ? { repo_id: repo.handle } : {}) }
  return [{ ...start, arguments: { ...start.arguments, ...chosen } }]
}

/** Empty: it need not be named. Undefined: there is none. */
async function programToName(ctx: LookContext): Promise<string | undefined> {
  if (defaultProgram(ctx)) return ''
  const ready = await readyPrograms(ctx)
  return ready.length === 1 ? '' : ready[0]
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}
