import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { callFor, HUMAN, sendLetter } from '../agent/index.ts'
import { EpicId } from '../ids.ts'
import { openEpicPr, type PrRow, prOfEpic, prUrl } from '../pr/index.ts'
import { Body, handleOf, type TaskRow, Title, taskStore } from '../task/index.ts'
import { epicHandle, requireEpic, saveEpic } from './rules.ts'
import { type EpicState, EpicStateName } from './schema.ts'
import type { EpicRow } from './store.ts'
import '../../ports/daemon.ts'

const MOST_TASKS = 1_000
const MOST_NAMED = 20

export const finish = defineTool({
  name: 'epic_finish',
  title: 'Hand in an epic',
  description: 'When all its tasks are done: make the pull request from its branch to the base branch, and ask the human to merge it.',
  input: z.strictObject({
    epic_id: EpicId.optional().describe('Default: the one that you lead'),
    title: Title.optional().describe('Of the pull request'),
    description: Body.optional(),
  }),
  output: z.strictObject({
    epic_id: EpicId,
    pr_id: z.string(),
    pr_number: z.int(),
    pr_url: z.string(),
    state: EpicStateName,
    message: z.string(),
  }),
  example: { epic_id: 'E-1' },
  impact: 'write',
  profile: 'operator',
  prepare: async (ctx) => ({ address: await ctx.ports.daemon.address() }),
  async run(ctx, { epic_id, title, description }, { address }) {
    const own = ctx.principal.role === 'supervisor' ? ctx.principal.scope.epic : undefined
    const epic = await requireEpic(ctx.tx, epic_id ?? own)
    const known = await prOfEpic(ctx.tx, epic.id)
    const answer = (pr: PrRow, message: string) => {
      return { epic_id: epic.id, pr_id: pr.id, pr_number: pr.number, pr_url: prUrl(pr, address), state: 'REVIEW' as const, message }
    }
    if (epic.state === 'REVIEW' && known) return answer(known, 'It was handed in before, and waits for a person.')
    if (epic.state !== 'IN_PROGRESS')
      return refuse('INVALID_TRANSITION', `${epicHandle(epic)} is ${epic.state}; only one IN_PROGRESS is handed in.`, {
        next_tool: 'epic_get',
        next_arguments: { epic_id: epicHandle(epic) },
      })
    const tasks = await taskStore(ctx.tx).list({ epic: epic.id }, 'number', undefined, MOST_TASKS)
    const unfinished = tasks.filter(({ status }) => status !== 'DONE').map((task) => `${handleOf(task)} (${task.status})`)
    if (unfinished.length || !tasks.length || !epic.repo_id)
      return refuse('CONFLICT', unfinished.length ? `Not done yet: ${named(unfinished)}.` : `${epicHandle(epic)} has nothing to hand in.`, {
        hint: 'Decide about what is in review_queue, and wait for the others.',
        suggestions: unfinished.slice(0, MOST_NAMED),
      })
    const closed = tasks.filter(({ closed_reason }) => closed_reason !== null)
    if (closed.length === tasks.length)
      return refuse('CONFLICT', `Nothing of ${epicHandle(epic)} was merged: its tasks were all closed without that.`, {
        hint: 'Make a task for what is missing; or a person cancels the epic with epic_update.',
        next_tool: 'epic_get',
        next_arguments: { epic_id: epicHandle(epic) },
      })
    const pr = await openEpicPr(
      ctx,
      { ...epic, repo_id: epic.repo_id },
      {
        title: title ?? `[Epic] ${epic.title}`,
        description: description ?? epic.description,
      },
    )
    await saveEpic(ctx, epic, { state: 'REVIEW' })
    await askTheHuman(ctx, epic, prUrl(pr, address), { tasks: tasks.length, closed })
    return answer(pr, 'Epic PR created successfully. Human review requested.')
  },
})

/** What was closed is not on the branch: whoever merges it must not believe so. */
async function askTheHuman(ctx: RunContext, epic: EpicRow, url: string, done: { tasks: number; closed: TaskRow[] }): Promise<void> {
  const { tasks, closed } = done
  const merged = closed.length ? `${tasks - closed.length} of ${tasks}` : `All ${tasks}`
  const become = (state: EpicState) => callFor(HUMAN, 'epic_update', epicHandle(epic), '--state', state)
  const without = closed.map((task) => `${handleOf(task)} (${task.closed_reason})`)
  const body = [
    `${merged} tasks of ${epicHandle(epic)} (${epic.title}) are on ${epic.branch}. ${url}`,
    ...(closed.length ? [`Closed without a merge: ${named(without)}.`] : []),
    `Look at \`git diff ${epic.base_branch}...${epic.branch}\`, merge it as you are used to, and say so: ${become('COMPLETED')}; or ${become('IN_PROGRESS')}, when something is missing.`,
  ].join('\n\n')
  const about = { project_id: epic.project_id, epic_id: epic.id, task_id: null }
  await sendLetter(ctx, { from: ctx.principal.id, to: HUMAN, subject: `Epic ready: ${epic.title}`, body, importance: 'high', about })
}

function named(all: string[]): string {
  const rest = all.length - MOST_NAMED
  return `${all.slice(0, MOST_NAMED).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}
