import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import { PageSize, PageToken, text } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type LookContext, type RunContext } from '../../kernel/tool.ts'
import { agentStore, bindToEpic } from '../agent/index.ts'
import { nextNumber } from '../handle.ts'
import { AgentId, EpicId, ProjectId, RepoId } from '../ids.ts'
import { endEpicPr } from '../pr/index.ts'
import { programFor } from '../programs.ts'
import { type Belonging, currentProject, gone, noProject, type Owner, projectStore } from '../project/index.ts'
import { Description, summaries, TaskSummary, Title, taskStore } from '../task/index.ts'
import { nameOf } from '../work/index.ts'
import { endLead, endTasks, withLead } from './lead.ts'
import { notMerged } from './merged.ts'
import { aboutEpic, checkMove, epicHandle, isOver, launchOf, requireEpic, saveEpic } from './rules.ts'
import { EpicStateName, EpicSummary, EpicView, epicCreated, epicUpdated } from './schema.ts'
import { type EpicRow, epicStore } from './store.ts'
import { epicView, summariesOf } from './view.ts'

const MOST_TASKS = 500
const Changed = z.strictObject({ epic_id: EpicId, handle: z.string(), epic: EpicView })
const Workers = z.int().min(1).max(100).describe('How many of its tasks are worked on at a time')
const Launch = z.strictObject({
  harness: text(40)
    .optional()
    .describe('Which agent program; default: the setting runs.default_harness, else the only one that is installed and logged in'),
  model: text(100).optional(),
})

export const create = defineTool({
  name: 'epic_create',
  title: 'Create an epic',
  description: 'Describe a larger piece of work: a supervisor splits it into tasks, and workers do them, on a branch of its own.',
  input: z.strictObject({
    title: Title,
    description: Description.default(''),
    project_id: ProjectId.optional().describe('Default: the current project'),
    repo_id: RepoId.optional().describe('Needed when the project has several'),
    base_branch: text(200).optional().describe('Default: that of the repository'),
    max_workers: Workers.optional().describe('How many of its tasks are worked on at a time; default: the setting epics.max_workers'),
    supervisor: Launch.optional().describe('How its supervisor is started'),
    workers: Launch.optional().describe('How its workers are started'),
    start: z.boolean().default(true).describe('false: it stays in PLANNING, and nobody is started'),
  }),
  output: Changed,
  example: {
    title: 'Sign in with passkeys',
    description: 'Replace passwords by passkeys, step by step.',
    repo_id: 'web-shop',
    start: false,
  },
  impact: 'write',
  profile: 'operator',
  prepare: async (ctx, input) => {
    const { supervisor = {}, workers = {}, start } = input
    const launches = start ? await launchesFor(ctx, { supervisor, workers }) : { supervisor, workers }
    return ofAnotherEpic(ctx) ?? (await noSuchBranch(ctx, input)) ?? launches
  },
  async run(ctx, input, launches: Launches) {
    const project = input.project_id ?? (await currentProject(ctx.tx, ctx.principal))
    if (!project) return noProject()
    const repo = await repoFor(ctx.tx, project, input.repo_id)
    if (repo && 'body' in repo) return repo
    const id = ctx.id('epic')
    const planned: EpicRow = {
      id,
      number: await nextNumber(ctx.tx, 'epic'),
      project_id: project,
      repo_id: repo?.id ?? null,
      title: input.title,
      description: input.description,
      state: 'PLANNING',
      branch: nameOf(id, input.title, 'epic').branch,
      base_branch: input.base_branch ?? repo?.base_branch ?? 'main',
      supervisor_id: null,
      lead_task_id: null,
      supervisor_launch: JSON.stringify(launches.supervisor),
      worker_launch: JSON.stringify(launches.workers),
      max_workers: input.max_workers ?? ctx.setting<number>('epics.max_workers'),
      version: 1,
      created_by: ctx.principal.id,
      created_at: ctx.now,
      updated_at: ctx.now,
      completed_at: null,
    }
    const row: EpicRow | Refusal = input.start ? await withLead(ctx, { ...planned, state: 'IN_PROGRESS' }) : planned
    if ('body' in row) return row
    await epicStore(ctx.tx).insert(row)
    const { title, state, branch } = row
    ctx.emit(epicCreated(aboutEpic(row), { handle: epicHandle(row), version: 1, title, state, branch }))
    return changed(ctx, row)
  },
})

export const get = defineTool({
  name: 'epic_get',
  title: 'Read an epic',
  description: 'One epic with its progress and its tasks. Default: the one that you are in.',
  input: z.strictObject({ epic_id: EpicId.optional() }),
  output: z.strictObject({ epic: EpicView, tasks: z.array(TaskSummary), cursor: z.string() }),
  example: { epic_id: 'E-1' },
  impact: 'read',
  profile: 'viewer',
  critical: true,
  async look(ctx, { epic_id }) {
    const cursor = await ctx.cursor()
    const row = await requireEpic(ctx.view, epic_id ?? ctx.principal.scope.epic)
    const tasks = await taskStore(ctx.view).list({ epic: row.id }, 'number', undefined, MOST_TASKS)
    return { epic: await epicView(ctx.view, row), tasks: await summaries(ctx, tasks), cursor }
  },
})

export const list = defineTool({
  name: 'epic_list',
  title: 'List epics',
  description: 'Epics with their progress, newest first.',
  input: z.strictObject({
    project_id: ProjectId.optional(),
    state: z.array(EpicStateName).min(1).max(5).optional(),
    limit: PageSize,
    after: PageToken.regex(/^[0-9]{1,15}$/, 'not a page of epic_list').optional(),
  }),
  output: z.strictObject({ epics: z.array(EpicSummary), next: z.string().nullable(), cursor: z.string() }),
  example: { state: ['IN_PROGRESS'] },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, state, limit, after }) {
    const cursor = await ctx.cursor()
    const rows = await epicStore(ctx.view).list({ project: project_id, states: state }, after ? Number(after) : undefined, limit)
    const last = rows.at(-1)
    return { epics: await summariesOf(ctx.view, rows), next: last && rows.length === limit ? String(last.number) : null, cursor }
  },
})

export const update = defineTool({
  name: 'epic_update',
  title: 'Change an epic',
  description: 'Change its words, how many work on it, or its state. REVIEW comes from epic_finish.',
  input: z.strictObject({
    epic_id: EpicId,
    title: Title.optional(),
    description: Description.optional(),
    state: EpicStateName.optional(),
    max_workers: Workers.optional(),
    supervisor_id: mention(AgentId)
      .optional()
      .describe('An agent of the role supervisor, of a window of your own, that leads it from now on'),
    merged_elsewhere: z.boolean().default(false).describe('With COMPLETED: it is merged, although its repository does not show that'),
    expected_version: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional().describe('Refuse when the epic has changed since'),
  }),
  output: Changed,
  example: { epic_id: 'E-1', max_workers: 2 },
  impact: 'write',
  profile: 'operator',
  critical: true,
  async prepare(ctx, { epic_id, state, supervisor_id, merged_elsewhere }) {
    const epic = await requireEpic(ctx.view, epic_id)
    const completes = state === 'COMPLETED' && epic.state === 'REVIEW' && ctx.principal.kind === 'person'
    const unmerged = completes && !merged_elsewhere ? await notMerged(ctx, epic) : undefined
    return unmerged ?? (state === 'IN_PROGRESS' && epic.state !== state ? await chosenLaunches(ctx, epic, supervisor_id) : {})
  },
  async run(ctx, { epic_id, expected_version, merged_elsewhere: _, ...given }, launches: Partial<Launches>) {
    const row = await requireEpic(ctx.tx, epic_id)
    if (expected_version !== undefined && expected_version !== row.version)
      return refuse('CONFLICT', `${epicHandle(row)} is at version ${row.version}, not ${expected_version}.`, {
        next_tool: 'epic_get',
        next_arguments: { epic_id },
      })
    const fields = Object.keys(given).filter((key) => given[key as keyof typeof given] !== undefined)
    if (!fields.length) return refuse('INVALID_INPUT', 'Nothing to change: give at least one field.')
    const refusal = given.state && given.state !== row.state && checkMove(ctx.principal, row, given.state)
    if (refusal) return refusal
    if (given.supervisor_id !== undefined) {
      const denied = await appoint(ctx, row, given.supervisor_id)
      if (denied) return denied
      if (given.supervisor_id !== row.supervisor_id) row.lead_task_id = null
    }
    const wanted = Object.fromEntries(fields.map((key) => [key, given[key as keyof typeof given]]))
    if (launches.supervisor) wanted.supervisor_launch = JSON.stringify(launches.supervisor)
    if (launches.workers) wanted.worker_launch = JSON.stringify(launches.workers)
    const led = given.state === 'IN_PROGRESS' ? await withLead(ctx, { ...row, ...wanted }) : { ...row, ...wanted }
    if ('body' in led) return led
    const next = await saveEpic(ctx, row, { ...led, ...(given.state === 'COMPLETED' ? { completed_at: ctx.now } : {}) })
    if (isOver(next)) await endEpic(ctx, next)
    ctx.emit(epicUpdated(aboutEpic(row), { handle: epicHandle(row), version: next.version, fields }))
    return changed(ctx, next)
  },
})

async function endEpic(ctx: RunContext, epic: EpicRow): Promise<void> {
  await endEpicPr(ctx, epic.id, epic.state === 'COMPLETED')
  await endTasks(ctx, epic)
}

const OPEN: EpicRow['state'][] = ['PLANNING', 'IN_PROGRESS', 'REVIEW']

async function openOf(tx: Tx, { project, repo }: Owner): Promise<EpicRow[]> {
  const open = await epicStore(tx).list({ project, states: OPEN }, undefined, MOST_TASKS)
  return repo ? open.filter(({ repo_id }) => repo_id === repo) : open
}

/** Those that are not over are cancelled with their repository or project. */
const belonging: Belonging = {
  open: async ({ view }, owner) => (await openOf(view, owner)).map((epic) => `${epicHandle(epic)} (${epic.state})`),
  async end(ctx, owner) {
    for (const epic of await openOf(ctx.tx, owner)) await endEpic(ctx, await saveEpic(ctx, epic, { state: 'CANCELLED' }))
  },
}

export const epicsOf = async () => belonging

/** An agent acts in an epic because this says so: only people may. Whoever led it before does so no more. */
async function appoint(ctx: RunContext, epic: EpicRow, agentId: string): Promise<Refusal | undefined> {
  if (ctx.principal.kind !== 'person') return refuse('PERMISSION_DENIED', 'Only a person says who leads an epic.')
  const agents = agentStore(ctx.tx)
  const agent = await agents.agent(agentId)
  if (agent?.role !== 'supervisor')
    return refuse('INVALID_INPUT', 'Only an agent of the role supervisor leads an epic.', { hint: 'Invite one with agent_invite.' })
  const other = agent.epic_id && agent.epic_id !== epic.id ? await epicStore(ctx.tx).find(agent.epic_id) : undefined
  if (other && !isOver(other))
    return refuse('CONFLICT', `${agent.handle} leads ${epicHandle(other)}.`, {
      hint: 'End that epic, give it another supervisor, or invite one with agent_invite.',
    })
  if (agent.project_id && agent.project_id !== epic.project_id)
    return refuse('INVALID_AGENT_STATE', `${agent.handle} belongs to another project.`)
  const before = epic.supervisor_id && epic.supervisor_id !== agent.id ? await agents.agent(epic.supervisor_id) : undefined
  if (before) await endLead(ctx, epic, 'Another leads the epic.')
  if (before) await bindToEpic(ctx, before.id, { project_id: before.project_id, epic_id: null })
  await bindToEpic(ctx, agent.id, { project_id: epic.project_id, epic_id: epic.id })
  return undefined
}

/** Whoever leads one epic acts in that one only. */
function ofAnotherEpic(ctx: LookContext): Refusal | undefined {
  if (ctx.principal.role !== 'supervisor') return undefined
  return refuse('PERMISSION_DENIED', 'A supervisor acts inside its own epic, and makes no other.', {
    hint: 'Split it with task_create, or write to the human.',
  })
}

type Launches = Record<'supervisor' | 'workers', z.output<typeof Launch>>

/** What cannot work is said now, and not when the first of them is to be started; and which program it is stays as it is told here. */
async function launchesFor(ctx: LookContext, { supervisor, workers }: Launches): Promise<Launches | Refusal> {
  const [leads, works] = [await programFor(ctx, supervisor.harness), await programFor(ctx, workers.harness)]
  if (leads instanceof Refusal) return leads
  if (works instanceof Refusal) return works
  return { supervisor: { ...supervisor, harness: leads.name }, workers: { ...workers, harness: works.name } }
}

/** Of an epic that was only planned. One that is led from a window may do without workers of ours. */
async function chosenLaunches(ctx: LookContext, epic: EpicRow, supervisor_id: string | undefined): Promise<Partial<Launches> | Refusal> {
  const launches = { supervisor: launchOf(epic, 'supervisor'), workers: launchOf(epic, 'worker') }
  const chosen = await launchesFor(ctx, launches)
  return chosen instanceof Refusal && (epic.supervisor_id ?? supervisor_id) ? {} : chosen
}

/** One that only the remote has can be begun at too, and is not known here. */
async function noSuchBranch(
  ctx: LookContext,
  { base_branch, project_id, repo_id }: { base_branch?: string; project_id?: string; repo_id?: string },
): Promise<Refusal | undefined> {
  const project = base_branch === undefined ? undefined : (project_id ?? (await currentProject(ctx.view, ctx.principal)))
  const repo = project ? await repoFor(ctx.view, project, repo_id) : undefined
  if (!repo || 'body' in repo) return undefined
  const facts = await ctx.ports.git.inspect(repo.path)
  if (!facts) return gone(repo)
  if (facts.remote !== null || facts.branches.includes(base_branch as string)) return undefined
  return refuse('RESOURCE_NOT_FOUND', `${facts.top} has no branch "${base_branch}".`, { suggestions: facts.branches.slice(0, 20) })
}

/** Undefined when the project has none yet: then it can be written down, and not be begun. */
async function repoFor(tx: Tx, project: string, repoId: string | undefined) {
  const repos = await projectStore(tx).repos(project, '', 50)
  const chosen = repoId ? repos.find(({ id }) => id === repoId) : repos.length === 1 ? repos[0] : undefined
  if (chosen || !repos.length) return chosen
  return refuse('INVALID_INPUT', repoId ? 'That repository is in another project.' : 'In which repository is it to be done?', {
    hint: 'Give repo_id.',
    suggestions: repos.map(({ handle }) => handle),
  })
}

async function changed(ctx: RunContext, row: EpicRow) {
  return { epic_id: row.id, handle: epicHandle(row), epic: await epicView(ctx.tx, row) }
}
