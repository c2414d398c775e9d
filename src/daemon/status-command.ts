import { parseArgs } from 'node:util'
import { Refusal } from '../kernel/error.ts'
import { call, type Reach, type Row } from '../surfaces/cli/call.ts'
import type { Look } from '../surfaces/cli/cell.ts'
import { answering } from '../surfaces/cli/index.ts'
import { named } from '../surfaces/cli/names.ts'
import { withProgress } from '../surfaces/cli/progress.ts'
import { type Property, propertiesOf } from '../surfaces/cli/schema.ts'
import { asJson, lookFor } from '../surfaces/cli/show.ts'
import { table } from '../surfaces/cli/table.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'
import { plain } from '../surfaces/cli/text.ts'
import { watch } from '../surfaces/cli/watch.ts'
import { bytes, span } from '../surfaces/cli/when.ts'
import { idleWorker, KINDS, type Kind, kindOf, nextSteps } from './status-next.ts'

const HELP = `signalbox status: what needs you now, what goes on, and how the daemon is.

  --watch    draw it again whenever something changes, until Ctrl-C
  --json     print JSON
`

const OPEN = ['REVIEW', 'IN_PROGRESS', 'BACKLOG'] as const
const PAGE = 200
const MOST_PAGES = 10
const SHOWN = 8

interface Task extends Row {
  id: string
  handle: string
  project_id: string
  status: string
  attention: string | null
}

interface Agent extends Row {
  handle: string
  state: string
}

interface Approval extends Row {
  handle: string
  task_id: string
}

interface Letter extends Row {
  id: string
  from: string
}

interface Line extends Row {
  repo: string
  target: string
  held: string | null
  behind: number
  behind_reason: string | null
}

interface Status extends Row {
  daemon: Row & { url: string; version: string; ok: boolean; uptime_seconds: number; engine: string; size_bytes: number }
  notices: string[]
  needs_you: Task[]
  /** What to type about them, by handle: of each kind of task for one. */
  next: Record<string, string[]>
  approvals: Approval[]
  unread_letters: number
  /** The newest of them. */
  letters: Letter[]
  /** Of which nothing moves, or that the branch did not follow. */
  lines: Line[]
  stuck_effects: (Row & { id: string })[]
  tasks: Record<string, number>
  /** Of these statuses there are more than were counted. */
  more: string[]
  agents: Agent[]
}

export async function statusCommand(args: string[], { reach, terminal }: { reach: Reach; terminal: Terminal }): Promise<number> {
  const options = { watch: { type: 'boolean' }, json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const
  const { json = false, help, ...values } = parseArgs({ args, options }).values
  if (help) {
    terminal.out(HELP)
    return 0
  }
  const draw = async (status: Row) => inWords(status as Status, await lookFor(status, reach, terminal))
  const forPrograms = json || !terminal.tty.out
  return answering(json, terminal, async () => {
    if (values.watch) return watch({ title: 'signalbox status', json: forPrograms, look: () => gather(reach), draw }, reach, terminal)
    const status = await withProgress(terminal, 'Look around', () => gather(reach))
    terminal.out(forPrograms ? asJson(status, json) : await draw(status))
    return 0
  })
}

/** Several looks, one after the other where one needs the other: no tool of its own, so it shows what the others show. */
async function gather(reach: Reach): Promise<Status> {
  const [health, open, done, agents, approvals, mail, merges, effects] = await Promise.all([
    call(reach, 'system_health', {}),
    Promise.all(OPEN.map((status) => tasks(reach, status, MOST_PAGES))),
    tasks(reach, 'DONE', 1),
    call(reach, 'agent_list', { limit: PAGE }),
    call(reach, 'approval_list', { limit: PAGE }),
    call(reach, 'mail_inbox', { limit: SHOWN }).catch(unlessForbidden),
    call(reach, 'merge_status', {}).catch(unlessForbidden),
    call(reach, 'effect_list', {}).catch(unlessForbidden),
  ])
  const { version, ok, uptime_seconds, database, notices } = health as Row & { database: Row }
  const { engine, size_bytes } = database
  const needs_you = open.flatMap(({ found }) => found.filter((task) => task.attention === 'human'))
  const asked = (approvals.approvals ?? []) as Approval[]
  const people = agents.agents as Agent[]
  return {
    daemon: { url: reach.daemon().url, version, ok, uptime_seconds, engine, size_bytes } as Status['daemon'],
    notices: notices as string[],
    needs_you,
    next: await nextSteps(reach, withoutAsking(needs_you, asked), idleWorker(people)),
    approvals: asked,
    unread_letters: Number(mail?.unread_count ?? 0),
    letters: (mail?.letters ?? []) as Letter[],
    lines: ((merges?.lines ?? []) as Line[]).filter(({ held, behind }) => held !== null || behind > 0).map(shownLine),
    stuck_effects: (effects?.effects ?? []) as Status['stuck_effects'],
    tasks: Object.fromEntries([...open, done].map(({ status, found }) => [status, found.length])),
    more: [...open, done].filter(({ more }) => more).map(({ status }) => status),
    agents: people,
  }
}

interface Counted {
  status: string
  found: Task[]
  more: boolean
}

async function tasks(reach: Reach, status: string, pages: number): Promise<Counted> {
  const found: Task[] = []
  let after: string | undefined
  for (let page = 0; page < pages; page++) {
    const { tasks, next } = await call(reach, 'task_list', { status: [status], limit: PAGE, after })
    found.push(...(tasks as Task[]))
    if (typeof next !== 'string') return { status, found, more: false }
    after = next
  }
  return { status, found, more: true }
}

/** What their agents ask stands above them. */
function withoutAsking(tasks: Task[], approvals: Approval[]): Task[] {
  const asking = new Set(approvals.map(({ task_id }) => task_id))
  return tasks.filter(({ id }) => !asking.has(id))
}

/** An agent that looks at the status may not see what is only for operators. */
function unlessForbidden(error: unknown): undefined {
  if (error instanceof Refusal && error.body.code === 'PERMISSION_DENIED') return undefined
  throw error
}

function inWords(status: Status, look: Look): string {
  const needs = [
    notices(status, look),
    asking(status, look),
    unread(status, look),
    ...waiting(status, look),
    merging(status, look),
    stuck(status, look),
  ].filter(Boolean)
  return [headline(status, look), ...(needs.length ? needs : [nothing(status)]), counts(status, look), agents(status, look)]
    .filter(Boolean)
    .join('\n')
}

function headline({ daemon }: Status, look: Look): string {
  const how = daemon.ok ? look.paint('green', 'healthy') : look.paint('red', 'not well')
  return `Signalbox ${daemon.version} at ${daemon.url}: ${how}, up ${span(daemon.uptime_seconds)}, ${daemon.engine} ${bytes(daemon.size_bytes)}\n`
}

function notices({ notices }: Status, look: Look): string {
  return notices.map((notice) => `${look.paint('yellow', '!')} ${plain(notice)}\n`).join('')
}

function asking({ approvals }: Status, look: Look): string {
  const oldest = approvals.at(-1)
  if (!oldest) return ''
  const shown = approvals
    .slice(-SHOWN)
    .reverse()
    .map(({ handle, title, task_id, expires_at }) => ({ handle, title, task_id, expires_at }))
  const more = approvals.length > SHOWN ? `  … and ${approvals.length - SHOWN} more: signalbox approval list\n` : ''
  const next = [
    `signalbox approval get ${oldest.handle}`,
    `signalbox approval decide ${oldest.handle} allow`,
    `signalbox approval decide ${oldest.handle} deny --message "…"`,
  ]
  return section('Asks for permission', rows(shown, 'approval_list', 'approvals', look) + more, next, look)
}

function unread({ letters, unread_letters }: Status, look: Look): string {
  const [newest] = letters
  if (!newest) return ''
  const shown = letters.map(({ from, subject, importance, sent_at }) => ({ from, subject, importance, sent_at }))
  const more = unread_letters > letters.length ? `  … and ${unread_letters - letters.length} more: signalbox mail inbox\n` : ''
  // Signalbox itself reads no answers.
  const answer = newest.from === 'system' ? [] : [`signalbox mail reply ${newest.id} "…"`]
  const next = [`signalbox mail read ${newest.id}`, ...answer]
  return section(
    `${unread_letters} unread ${unread_letters === 1 ? 'letter' : 'letters'}`,
    rows(shown, 'mail_inbox', 'letters', look) + more,
    next,
    look,
  )
}

function waiting(status: Status, look: Look): string[] {
  const tasks = withoutAsking(status.needs_you, status.approvals)
  return KINDS.map((kind) =>
    group(
      kind,
      tasks.filter((task) => kindOf(task) === kind),
      status,
      look,
    ),
  )
}

function group(title: Kind, tasks: Task[], status: Status, look: Look): string {
  if (!tasks.length) return ''
  const shown = tasks
    .slice(0, SHOWN)
    .map(({ handle, title, priority, assignee_id, attention_detail, updated_at }) =>
      attention_detail ? { handle, title, attention_detail, updated_at } : { handle, title, priority, assignee_id, updated_at },
    )
  const of = [...new Set(tasks.map(({ status }) => status))].map((name) => ` --status ${name}`).join('')
  const more = tasks.length > SHOWN ? `  … and ${tasks.length - SHOWN} more: signalbox task list${of}\n` : ''
  const next = [...new Set(tasks.map(({ handle }) => handle))].flatMap((handle) => status.next[handle] ?? [])
  return section(title, rows(shown, 'task_list', 'tasks', look) + more, next, look)
}

const shownLine = ({ repo, target, held, behind, behind_reason }: Line): Line => ({ repo, target, held, behind, behind_reason })

/** Work that is approved and does not land, and branches that have not got what did. */
function merging({ lines }: Status, look: Look): string {
  return lines
    .map(({ repo, target, held, behind, behind_reason }) => {
      const what =
        held === null
          ? `${plain(target)} of ${plain(repo)} is ${behind} behind what landed`
          : `Nothing lands on ${plain(target)} of ${plain(repo)}`
      const next = held === null ? `signalbox sync ${repo}` : `signalbox merge retry --repo-id ${repo} --target ${target}`
      const why = plain(held ?? behind_reason ?? '')
      return section(what, `  ${why.replaceAll('\n', '\n  ')}\n`, why.includes(next) ? [] : [next], look)
    })
    .join('')
}

function stuck({ stuck_effects: stuck }: Status, look: Look): string {
  const [first] = stuck
  if (!first) return ''
  const next = [`signalbox effect retry ${first.id}`, `signalbox effect drop ${first.id}`]
  return section('Stuck outside of Signalbox', rows(stuck.slice(0, SHOWN), 'effect_list', 'effects', look), next, look)
}

function nothing({ tasks, agents }: Status): string {
  const any = Object.values(tasks).some(Boolean)
  if (any) return 'Nothing needs you.\n'
  const begin = ['signalbox project create "My project"', 'signalbox task create "First task"']
  return `Nothing needs you: there are no tasks yet. Begin with:\n\n${[...begin, ...(agents.length ? [] : ['signalbox agent invite worker'])].map((line) => `  ${line}\n`).join('')}`
}

function counts({ tasks, more }: Status, look: Look): string {
  const shown = Object.entries(tasks).map(([name, count]) => `${count}${more.includes(name) ? '+' : ''} ${name}`)
  return `${look.paint('bold', 'Tasks')}   ${shown.join(', ')}\n`
}

function agents({ agents }: Status, look: Look): string {
  const alive = agents.filter((agent) => agent.state !== 'STOPPED')
  if (!agents.length) return ''
  const stopped = agents.length - alive.length
  const shown = alive
    .slice(0, SHOWN * 2)
    .map(({ handle, role, state, task_id, last_active_at }) => ({ handle, role, state, task_id, last_active_at }))
  const note = stopped ? `  ${stopped} stopped\n` : ''
  return section('Agents', (alive.length ? rows(shown, 'agent_list', 'agents', look) : '') + note, [], look)
}

function rows(list: Row[], tool: string, key: string, look: Look): string {
  const schema = propertiesOf(named(tool)?.outputJson as Property)[key]?.items
  return table(list, schema, key.replace(/s$/, ''), { ...look, columns: look.columns - 2 }).replace(/^(?=.)/gm, '  ')
}

function section(title: string, text: string, next: string[], look: Look): string {
  return `${look.paint('bold', title)}\n${text}${next.map((line) => `  ${look.paint('dim', '→')} ${line}\n`).join('')}`
}
