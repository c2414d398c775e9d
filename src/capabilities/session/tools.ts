import { z } from 'zod'
import { type Refusal, refuse } from '../../kernel/error.ts'
import type { EventType } from '../../kernel/event.ts'
import { mention } from '../../kernel/id.ts'
import { within } from '../../kernel/patience.ts'
import { redactScreen } from '../../kernel/redact.ts'
import { text } from '../../kernel/schema.ts'
import { defineTool, type LookContext, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import { KEYS, type Screen } from '../../ports/terminal.ts'
import { agentStore, createAgent } from '../agent/index.ts'
import { takeTurn } from '../handle.ts'
import { RepoId, TaskId } from '../ids.ts'
import { livingRun } from '../job/index.ts'
import { giveTo, handleOf, requireTask, requireUnblocked, type TaskRow, taskStore, transition } from '../task/index.ts'
import { untilRow, watchUntil } from '../until.ts'
import { planWork, requireRepoThere } from '../work/index.ts'
import { isElsewhere, launchSession, typeInto } from './effects.ts'
import { aboutSession, askToClose, mayChoose, mayLook, named, noSession, notPair, sessionView } from './rules.ts'
import { SESSION_STATES, SessionView, sessionClosed, sessionOpened, sessionOpening, sessionTyped } from './schema.ts'
import { type SessionRow, sessionStore } from './store.ts'

const OPEN_MS = 60_000
const CLOSE_MS = 30_000
const TYPE_MS = 20_000
const MOST_WAIT_SECONDS = 25

const Opening = z.strictObject({
  task_id: TaskId,
  program: text(40).optional().describe('Default: the setting sessions.default_program'),
  message: text(200_000).optional().describe('What the agent is told besides the task'),
  repo_id: mention(RepoId).optional().describe('Needed when the project has several'),
})

export const open = defineTool({
  name: 'session_open',
  title: 'Open a terminal',
  description: "Open the terminal of a PAIR task: an agent program in the task's worktree, with our tools. Returns how to attach to it.",
  input: Opening,
  output: z.strictObject({ created: z.boolean(), session: SessionView }),
  example: { task_id: 'T-3', program: 'claude' },
  impact: 'write',
  profile: 'pair_worker',
  async prepare(ctx, { task_id, program, repo_id }) {
    if (await sessionStore(ctx.view).livingOf(task_id)) return {}
    const task = await requireTask(ctx, task_id)
    const wrong = notPair(task) ?? (await canOpen(ctx, program))
    if (!wrong) await requireRepoThere(ctx, task_id, repo_id)
    return wrong ?? {}
  },
  async run(ctx: RunContext, { task_id, message, repo_id, ...given }: z.output<typeof Opening>) {
    const program = given.program ?? ctx.setting<string>('sessions.default_program')
    await takeTurn(ctx.tx, `session:${task_id}`)
    const task = await requireTask(ctx, task_id)
    const known = await sessionStore(ctx.tx).livingOf(task.id)
    if (known) return { session_id: known.id, created: false }
    const wrong = notPair(task) ?? mayChoose(ctx.principal, program) ?? (await isBusy(ctx, task))
    if (wrong) return wrong
    if (task.status === 'BACKLOG') await requireUnblocked(ctx, task)
    const work = await planWork(ctx, task, repo_id)
    if ('body' in work) return work
    const row = newSession(ctx, task, { program, message, agent_id: await agentFor(ctx, task) })
    await sessionStore(ctx.tx).insert(row)
    const now = (await taskStore(ctx.tx).find(task.id)) as TaskRow
    if (now.status === 'BACKLOG') await transition(ctx, now, 'IN_PROGRESS', null)
    ctx.emit(sessionOpening(aboutSession(row), named(row)))
    ctx.enqueue(launchSession({ session_id: row.id }, { queue: row.id }))
    return { session_id: row.id, created: true }
  },
  async watch(ctx, _input, { session_id, created }: { session_id: string; created: boolean }) {
    const row = await until(ctx, session_id, [sessionOpened, sessionClosed], OPEN_MS, ({ state }) => state !== 'opening')
    if (row.state !== 'closed' || !created) return { created, session: sessionView(row) }
    return refuse('INVALID_AGENT_STATE', row.reason ?? 'It could not be opened.', { hint: 'Mend that, then open it again.' })
  },
})

export const exists = defineTool({
  name: 'session_exists',
  title: 'Is there a terminal',
  description: 'Whether the terminal of a task is there now, asked of the terminal itself, and how it stands with it.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({
    exists: z.boolean(),
    attached: z
      .int()
      .min(0)
      .max(1_000_000)
      .nullable()
      .describe('People who look at it in their own terminal; null when it is on another machine'),
    session: SessionView.nullable().describe('The newest one of the task'),
    programs: z.array(z.strictObject({ name: z.string(), title: z.string(), available: z.boolean(), install: z.string().nullable() })),
  }),
  example: { task_id: 'T-3' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id }) {
    const row = await sessionStore(ctx.view).lastOf(task_id)
    const programs = await available(ctx)
    if (row?.state !== 'open') return { exists: false, attached: null, session: row ? sessionView(row) : null, programs }
    if (isElsewhere(ctx, row)) return { exists: true, attached: null, session: sessionView(row), programs }
    const now = await ctx.ports.terminal.look(row)
    return {
      exists: now.state === 'running',
      attached: now.state === 'running' ? now.attached : 0,
      session: sessionView(row),
      programs,
    }
  },
})

export const read = defineTool({
  name: 'session_read',
  title: 'Read a terminal',
  description: 'What the terminal of a task shows, as text. With the mark of an earlier answer it waits until it shows something else.',
  input: z.strictObject({
    task_id: TaskId,
    history: z.int().min(0).max(20_000).default(0).describe('Lines that have scrolled away'),
    unlike: text(100).optional().describe('`mark` of an earlier answer'),
    wait_seconds: z.int().min(0).max(MOST_WAIT_SECONDS).default(MOST_WAIT_SECONDS).describe('With `unlike`: how long at the most'),
  }),
  output: z.strictObject({
    state: z.enum(SESSION_STATES),
    screen: z.string(),
    mark: z.string(),
    columns: z.int().min(0).max(100_000),
    rows: z.int().min(0).max(100_000),
    cut: z.boolean().describe('The oldest lines were left out'),
    reason: z.string().nullable(),
  }),
  example: { task_id: 'T-3' },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { task_id, history, unlike, wait_seconds }) {
    const task = await requireTask(ctx, task_id)
    const row = await sessionStore(ctx.view).lastOf(task_id)
    const wrong = mayLook(ctx.principal, task) ?? (row ? undefined : noSession(task))
    if (wrong || !row) return wrong ?? noSession(task)
    if (row.state !== 'open') return { ...lastOf(row), state: row.state, reason: row.reason }
    if (isElsewhere(ctx, row)) return refuse('CONFLICT', `That terminal is on ${row.host}.`, { hint: 'Ask the daemon there.' })
    const { terminal } = ctx.ports
    const screen =
      unlike === undefined || history
        ? await terminal.screen(row, history)
        : await within(wait_seconds * 1_000, ctx.signal, (either) => terminal.changed(row, unlike, either))
    return { ...shown(screen), state: row.state, reason: null }
  },
})

export const close = defineTool({
  name: 'session_close',
  title: 'Close a terminal',
  description: 'End the terminal of a task with everything that was started in it. The worktree and what is in it stay.',
  input: z.strictObject({ task_id: TaskId }),
  output: z.strictObject({ closed: z.boolean().describe('False: it is still being ended'), session: SessionView }),
  example: { task_id: 'T-3' },
  impact: 'destructive',
  profile: 'pair_worker',
  async run(ctx, { task_id }) {
    const task = await requireTask(ctx, task_id)
    const row = await sessionStore(ctx.tx).livingOf(task.id)
    if (!row) return noSession(task)
    await askToClose(ctx, row)
    return { session_id: row.id }
  },
  async watch(ctx, _input, { session_id }: { session_id: string }) {
    const row = await until(ctx, session_id, [sessionClosed], CLOSE_MS, isOver)
    return { closed: isOver(row), session: sessionView(row) }
  },
})

export const type = defineTool({
  name: 'session_type',
  title: 'Type into a terminal',
  description: 'Type text, and then press keys, in the terminal of a task. The text is only text; Enter is a key.',
  input: z.strictObject({
    task_id: TaskId,
    text: z.string().max(200_000).default(''),
    keys: z.array(z.enum(KEYS)).max(50).default([]),
  }),
  output: z.strictObject({ typed: z.boolean().describe('False: it is still being done') }),
  example: { task_id: 'T-3', text: 'yes', keys: ['Enter'] },
  impact: 'write',
  profile: 'pair_worker',
  // An agent would answer its own program's questions in the name of its person.
  by: 'person',
  unrecorded: ['text'],
  async run(ctx, { task_id, text, keys }) {
    const task = await requireTask(ctx, task_id)
    const row = await sessionStore(ctx.tx).livingOf(task.id)
    if (row?.state !== 'open') return noSession(task)
    if (!text && !keys.length) return refuse('INVALID_INPUT', 'Give text or keys.')
    const request = ctx.id('typed')
    ctx.enqueue(typeInto({ session_id: row.id, request, by: ctx.principal.id, text, keys }, { queue: `${row.id}.typed` }))
    return { session_id: row.id, request }
  },
  async watch(ctx, _input, { session_id, request }: { session_id: string; request: string }) {
    const { found } = await watchUntil(ctx, {
      about: { subject: session_id },
      types: [sessionTyped],
      withinMs: TYPE_MS,
      recent: 50,
      look: (events) => events.map(({ data }) => data as z.output<typeof sessionTyped.data>).find((data) => data.request === request),
    })
    if (found?.problem) return refuse('CONFLICT', found.problem, { next_tool: 'session_exists' })
    return { typed: found !== undefined }
  },
})

/** What cannot work is said now, and not when somebody waits for it. */
async function canOpen(ctx: LookContext, wanted: string | undefined): Promise<Refusal | undefined> {
  const { terminal, interactives } = ctx.ports
  const name = wanted ?? ctx.setting<string>('sessions.default_program')
  const program = interactives.get(name)
  if (!program) return refuse('INVALID_INPUT', `There is no program "${name}".`, { suggestions: interactives.names() })
  const tmux = await terminal.probe()
  if (!tmux.found) return refuse('INVALID_INPUT', `Terminals cannot be used here: ${tmux.why}`, { hint: `Install it: ${tmux.install}` })
  const found = await program.probe()
  if (!found.found)
    return refuse('INVALID_INPUT', `${program.title} cannot be used here: ${found.why}`, { hint: `Install it: ${found.install}` })
  return undefined
}

function available({ ports: { interactives } }: LookContext) {
  return Promise.all(
    interactives.names().map(async (name) => {
      const program = interactives.get(name)
      const found = await program?.probe()
      return {
        name,
        title: program?.title ?? name,
        available: found?.found ?? false,
        install: found?.found === false ? found.install : null,
      }
    }),
  )
}

async function isBusy(ctx: RunContext, task: TaskRow): Promise<Refusal | undefined> {
  if (!(await livingRun(ctx, { task_id: task.id }))) return undefined
  return refuse('CONFLICT', `An agent still works on ${handleOf(task)} by itself.`, { hint: 'Wait until it has ended, or stop it.' })
}

/** The same identity in every session of a task; its token is a new one each time. */
async function agentFor(ctx: RunContext, task: TaskRow): Promise<string> {
  const last = await sessionStore(ctx.tx).lastOf(task.id)
  const known = last && (await agentStore(ctx.tx).agent(last.agent_id))
  const agent = known ?? (await createAgent(ctx, { role: 'worker', project_id: task.project_id }))
  if (task.assignee_id !== agent.id) await giveTo(ctx, task, agent)
  return agent.id
}

function newSession(
  ctx: RunContext,
  task: TaskRow,
  { program, message, agent_id }: { program: string; message: string | undefined; agent_id: string },
): SessionRow {
  return {
    id: ctx.id('session'),
    task_id: task.id,
    project_id: task.project_id,
    agent_id,
    token_id: null,
    program,
    name: handleOf(task),
    host: null,
    state: 'opening',
    reason: null,
    prompt: 'waiting',
    prompt_detail: null,
    message: message ?? null,
    attach: null,
    last_screen: null,
    opened_by: ctx.principal.id,
    close_asked_at: null,
    opened_at: ctx.now,
    closed_at: null,
  }
}

function isOver({ state }: SessionRow): boolean {
  return state === 'closed' || state === 'lost'
}

function until(
  ctx: WatchContext,
  id: string,
  types: EventType[],
  withinMs: number,
  holds: (row: SessionRow) => boolean,
): Promise<SessionRow> {
  return untilRow(ctx, { id, types, withinMs, holds, find: () => sessionStore(ctx.view).find(id) })
}

function shown(screen: Screen | undefined) {
  if (!screen) return { screen: '', mark: 'gone', columns: 0, rows: 0, cut: false }
  const { text, mark, columns, rows, cut } = screen
  return { screen: redactScreen(text, columns), mark, columns, rows, cut }
}

function lastOf(row: SessionRow) {
  return { screen: row.last_screen ?? '', mark: row.state, columns: 0, rows: 0, cut: false }
}
