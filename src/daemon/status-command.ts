import { parseArgs } from 'node:util'
import type { Step } from '../capabilities/need/index.ts'
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
import { nextSteps } from './status-next.ts'

const HELP = `signalbox status: what needs you now, what goes on, and how the daemon is.

  --watch    draw it again whenever something changes, until Ctrl-C
  --json     print JSON
`

const PAGE = 200
const SHOWN = 8

interface Need extends Row {
  kind: string
  id: string
  handle: string | null
  title: string
  detail: string | null
  by: string | null
  began_at: string
  steps: Step[]
}

interface Kind extends Row {
  kind: string
  title: string
  count: number
}

interface Agent extends Row {
  handle: string
  state: string
}

interface Status extends Row {
  daemon: Row & { url: string; version: string; ok: boolean; uptime_seconds: number; engine: string; size_bytes: number }
  notices: string[]
  /** The most urgent of each kind. */
  needs_you: Need[]
  kinds: Kind[]
  /** Null: whoever looks is not shown what waits for a person. */
  tasks: Record<string, number> | null
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

/** Workers and reviewers may look at the status, but not at what waits for people. */
function unlessForbidden(error: unknown): Row {
  if (error instanceof Refusal && error.body.code === 'PERMISSION_DENIED') return { needs: [], kinds: [], tasks: null, next: null }
  throw error
}

/** No tool of its own, so it shows what the others show. */
async function gather(reach: Reach): Promise<Status> {
  const [health, agents, page] = await Promise.all([
    call(reach, 'system_health', {}),
    call(reach, 'agent_list', { limit: PAGE }),
    call(reach, 'need_list', { limit: PAGE }).catch(unlessForbidden),
  ])
  const { version, ok, uptime_seconds, database, notices } = health as Row & { database: Row }
  const { engine, size_bytes } = database
  const kinds = page.kinds as Kind[]
  const needs = page.needs as Need[]
  const unseen = page.next === null ? [] : kinds.filter(({ kind }) => !needs.some((need) => need.kind === kind))
  const more = await Promise.all(unseen.map(({ kind }) => call(reach, 'need_list', { kinds: [kind], limit: SHOWN })))
  return {
    daemon: { url: reach.daemon().url, version, ok, uptime_seconds, engine, size_bytes } as Status['daemon'],
    notices: notices as string[],
    needs_you: [...needs, ...more.flatMap((of) => of.needs as Need[])],
    kinds,
    tasks: page.tasks as Status['tasks'],
    agents: agents.agents as Agent[],
  }
}

function inWords(status: Status, look: Look): string {
  const needs = [notices(status, look), ...status.kinds.map((kind) => group(kind, status, look))].filter(Boolean)
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

function group({ kind, title, count }: Kind, { needs_you }: Status, look: Look): string {
  const needs = needs_you.filter((need) => need.kind === kind).slice(0, SHOWN)
  const named = needs.filter(({ handle, by }) => handle !== null || by !== null)
  const table = named.length ? rows(named.map(rowOf), 'need_list', 'needs', look) : ''
  const words = needs.filter((need) => !named.includes(need)).map(inFull)
  const more = count > needs.length ? `  … and ${count - needs.length} more: signalbox need list --kinds ${kind}\n` : ''
  const text = table + words.join('') + more
  // A reason may say itself what to type.
  const next = nextSteps(needs).filter((line) => !text.includes(line))
  return section(count > 1 ? `${title} (${count})` : title, text, next, look)
}

/** Who it is from tells more than anything else of what has no name. */
function rowOf({ handle, by, title, detail, began_at }: Need): Row {
  return handle === null ? { from: by, subject: title, detail, began_at } : { handle, title, detail, by, began_at }
}

/** Of what has no name at all, the reason is what there is to read. */
function inFull({ title, detail }: Need): string {
  const why = detail === null ? '' : `    ${plain(detail).replaceAll('\n', '\n    ')}\n`
  return `  ${plain(title)}\n${why}`
}

function nothing({ tasks, agents }: Status): string {
  if (tasks === null) return 'This token may not list what needs a person.\n'
  const any = Object.values(tasks).some(Boolean)
  if (any) return 'Nothing needs you.\n'
  const begin = ['signalbox project create "My project"', 'signalbox task create "First task"']
  return `Nothing needs you: there are no tasks yet. Begin with:\n\n${[...begin, ...(agents.length ? [] : ['signalbox agent invite worker'])].map((line) => `  ${line}\n`).join('')}`
}

function counts({ tasks }: Status, look: Look): string {
  if (tasks === null) return ''
  const shown = ['REVIEW', 'IN_PROGRESS', 'BACKLOG', 'DONE'].map((status) => `${tasks[status] ?? 0} ${status}`)
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
