import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite'
import type { CoreTables } from '../../src/db/core.ts'
import { encodeCursor } from '../../src/db/engine.ts'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import type { Fields } from './callers.ts'
import { seqOf } from './cursor.ts'
import { type Entry, type Journal, MARKER } from './journal.ts'

type EventRow = Omit<CoreTables['events'], 'data'> & { data: Fields }
type CallRow = Pick<CoreTables['calls'], 'seq' | 'id' | 'tool' | 'outcome' | 'code' | 'principal' | 'token'> & {
  marker: string | undefined
  /** In the order of commits, which on PostgreSQL is not that of the numbers. */
  place: number
}
interface TaskRow {
  id: string
  title: string
  description: string
  status: string
  version: number
  deleted_at: number | null
}
interface NoteRow {
  id: string
  task_id: string
  author: string
  body: string
}

/** Everything that is stored, read on a connection of our own, in the order of commits. */
export interface Contents {
  /** Whether the numbers of events have no gaps. */
  dense: boolean
  events: EventRow[]
  calls: CallRow[]
  tasks: Map<string, TaskRow>
  notes: NoteRow[]
  decisions: { id: string; author: string; title: string; body: string }[]
  answers: Map<string, { principal: string; tool: string; answer: Fields }>
  problems: string[]
}

export interface Verdict {
  /** Acknowledged, and not there as acknowledged. */
  lost: string[]
  /** Done more than once. */
  doubled: string[]
  /** Any other disagreement. */
  wrong: string[]
}

/** The first of each kind: when something goes wrong at all, thousands of lines say the same. */
export function findings({ lost, doubled, wrong }: Verdict): Verdict {
  return { lost: lost.slice(0, 10), doubled: doubled.slice(0, 10), wrong: wrong.slice(0, 10) }
}

export const NOTHING_FOUND: Verdict = { lost: [], doubled: [], wrong: [] }

export function readContents(file: string): Contents {
  const db = new DatabaseSync(file, { readOnly: true })
  // biome-ignore lint/suspicious/noExplicitAny: rows of many tables
  const all = (sql: string) => db.prepare(sql).all() as any[]
  try {
    db.exec('BEGIN')
    return {
      dense: true,
      events: all('SELECT * FROM events ORDER BY seq').map((row) => ({ ...row, data: JSON.parse(row.data) })),
      calls: readCalls(db),
      tasks: new Map(all('SELECT id, title, description, status, version, deleted_at FROM tasks').map((row) => [row.id, row])),
      notes: all('SELECT id, task_id, author, body FROM task_notes ORDER BY id'),
      decisions: all('SELECT id, author, title, body FROM decisions'),
      answers: new Map(
        all('SELECT principal, tool, key, answer FROM idempotency').map((row) => [row.key, { ...row, answer: JSON.parse(row.answer) }]),
      ),
      problems: all('PRAGMA integrity_check')
        .map((row) => String(row.integrity_check))
        .filter((line) => line !== 'ok'),
    }
  } finally {
    db.close()
  }
}

/** One by one: all inputs at once would not fit into memory. */
function readCalls(db: DatabaseSyncInstance): CallRow[] {
  const rows: CallRow[] = []
  for (const row of db.prepare('SELECT seq, id, tool, outcome, code, principal, token, input FROM calls ORDER BY seq').iterate()) {
    const { input, ...call } = row as Omit<CallRow, 'marker' | 'place'> & { input: string }
    rows.push({ ...call, place: call.seq, marker: MARKER.exec(input)?.[0] })
  }
  return rows
}

/** Compares what the clients were told with what is stored, and both with what the daemon says now. */
export async function verify(
  daemon: TestDaemon,
  journal: Journal,
  contents: Contents = readContents(join(daemon.home, 'signalbox.db')),
): Promise<Verdict & { contents: Contents }> {
  const verdict: Verdict = { lost: [], doubled: [], wrong: [...contents.problems, ...journal.wrong] }
  checkLog(contents, await mutatingTools(daemon), verdict)
  checkTasks(contents, verdict)
  checkIntents(contents, journal, verdict)
  checkAnswers(contents, journal, verdict)
  await checkApi(daemon, contents, verdict)
  const sealed = await daemon.call('audit_verify')
  if (!sealed.ok) verdict.wrong.push(sealed.meaning)
  return { ...verdict, contents }
}

/** Each event belongs to a call, each call that wrote has its events, and both tables tell one order. */
export function checkLog({ events, calls, dense }: Contents, mutating: Set<string>, { wrong }: Verdict): void {
  const byId = new Map(calls.map((call) => [call.id, call]))
  if (byId.size !== calls.length) wrong.push('a call id stands twice in the audit')
  const withEvents = new Set<string>()
  let latest = 0
  for (const [i, event] of events.entries()) {
    if (dense && event.seq !== i + 1) return void wrong.push(`event ${i + 1} is missing: the next one is ${event.seq}`)
    const call = byId.get(event.call_id)
    if (!call) wrong.push(`event ${event.seq} ${event.type} has no call`)
    else if (call.outcome !== 'ok') wrong.push(`event ${event.seq} ${event.type} comes from a call that ended ${call.outcome}`)
    else if (call.place < latest) wrong.push(`event ${event.seq} and its call were not committed together`)
    latest = call?.place ?? latest
    withEvents.add(event.call_id)
  }
  for (const call of calls)
    if (call.outcome === 'ok' && mutating.has(call.tool) && !withEvents.has(call.id)) wrong.push(`${call.id} ${call.tool} has no event`)
}

/** Replays the log: it must lead, without a gap in the versions, to the tasks as they are. */
export function checkTasks({ events, tasks, calls }: Contents, { wrong }: Verdict): void {
  const markers = new Map(calls.map((call) => [call.id, call.marker]))
  const replayed = new Map<string, { status: string; version: number; described: string | undefined }>()
  for (const { seq, type, subject, data, call_id } of events) {
    if (!type.startsWith('task.') || type === 'task.noted') continue
    const before = replayed.get(subject) ?? { status: '', version: 0, described: undefined }
    if (data.version !== before.version + 1)
      wrong.push(`event ${seq} makes version ${data.version} of ${data.handle} after ${before.version}`)
    if (type === 'task.moved' && data.from !== before.status)
      wrong.push(`event ${seq} moves from ${data.from}, but it was ${before.status}`)
    const described = type === 'task.updated' && data.fields.includes('description') ? markers.get(call_id) : before.described
    replayed.set(subject, { status: data.to ?? data.status ?? before.status, version: data.version, described })
  }
  for (const task of tasks.values()) {
    const end = replayed.get(task.id)
    if (end?.status !== task.status || end.version !== task.version)
      wrong.push(`${task.id} is ${task.status} at ${task.version}; its log says ${end?.status} at ${end?.version}`)
    if (end?.described && MARKER.exec(task.description)?.[0] !== end.described)
      wrong.push(`${task.id} is not described as ${end.described}`)
    replayed.delete(task.id)
  }
  for (const id of replayed.keys()) wrong.push(`${id} is in the log, but not in the table`)
}

/** Each intent has one effect when it was acknowledged, at most one when that is not known, none when it was refused. */
function checkIntents(contents: Contents, journal: Journal, verdict: Verdict): void {
  const done = grouped(
    contents.calls.filter((call) => call.marker && call.outcome === 'ok'),
    (call) => call.marker as string,
  )
  const effects = countEffects(contents)
  const find = finders(contents)
  for (const entry of journal.entries) {
    const calls = done.get(entry.marker)?.length ?? 0
    const found = effects.get(entry.marker) ?? 0
    const what = `${entry.marker} ${entry.tool} by ${entry.way}${entry.key ? ' with a key' : ''}, ${entry.outcome}`
    if (calls > 1 || found > 1) verdict.doubled.push(`${what}: ${calls} calls, ${found} effects`)
    if (calls !== found) verdict.wrong.push(`${what}: ${calls} calls, but ${found} effects`)
    if (entry.outcome === 'answer' && found === 0) verdict.lost.push(what)
    else if (entry.outcome === 'answer' && !find[entry.tool](entry)) verdict.lost.push(`${what}: it is not stored as it was acknowledged`)
    if (entry.outcome === 'refusal' && found > 0) verdict.wrong.push(`${what}: it was refused, and done`)
  }
}

/** Counted in the rows that the tools write and in the events, not in the audit. */
function countEffects({ events, notes, decisions, tasks, calls }: Contents): Map<string, number> {
  const effects = new Map<string, number>()
  const count = (text: string | undefined) => {
    const marker = text && MARKER.exec(text)?.[0]
    if (marker) effects.set(marker, (effects.get(marker) ?? 0) + 1)
  }
  const markers = new Map(calls.map((call) => [call.id, call.marker]))
  for (const note of notes) count(note.body)
  for (const decision of decisions) count(decision.title)
  for (const task of tasks.values()) count(task.title)
  for (const event of events) {
    if (event.type === 'task.moved') count(event.data.reason ?? '')
    if (event.type === 'task.updated') count(markers.get(event.call_id))
  }
  return effects
}

/** Whether what a call answered is what is stored. */
function finders({ events, notes, decisions, tasks }: Contents): Record<Entry['tool'], (entry: Entry) => boolean> {
  const versions = new Map(events.filter((event) => event.data.version).map((event) => [`${event.subject} ${event.data.version}`, event]))
  const eventOf = ({ value }: Entry) => versions.get(`${value.task_id} ${value.task.version}`)
  const noteOf = new Map(notes.map((note) => [note.id, note]))
  const decisionOf = new Map(decisions.map((decision) => [decision.id, decision]))
  return {
    task_create: ({ value, marker }) => tasks.get(value.task_id)?.title === marker,
    task_note: ({ value, input, principal }) => {
      const note = noteOf.get(value.note_id)
      return note?.body === input.body && note?.author === principal && note?.task_id === value.task_id
    },
    decision_log: ({ value, input, principal }) => {
      const decision = decisionOf.get(value.log_id)
      return decision?.body === input.body && decision?.author === principal
    },
    task_move: (entry) => {
      const event = eventOf(entry)
      return event?.data.reason === entry.marker && event?.data.to === entry.value.task.status
    },
    task_update: (entry) => eventOf(entry)?.type === 'task.updated' && entry.value.task.description === entry.input.description,
  }
}

/** Under each key that was answered, exactly that answer is kept; a refusal wrote nothing, and leaves its key free. */
function checkAnswers({ answers }: Contents, journal: Journal, { wrong }: Verdict): void {
  for (const entry of journal.entries) {
    if (entry.key === undefined || entry.outcome === 'unknown') continue
    const kept = answers.get(entry.key)
    if (entry.outcome === 'refusal') {
      if (kept) wrong.push(`${entry.marker} ${entry.tool}: its refusal ${entry.value.code} is kept under its key`)
    } else if (!kept || kept.tool !== entry.tool || kept.principal !== entry.principal)
      wrong.push(`${entry.marker} ${entry.tool}: its key is not kept; it was sent ${entry.sent} times`)
    else if (!isDeepStrictEqual(kept.answer, { value: entry.value })) wrong.push(`${entry.marker}: under its key another answer is kept`)
  }
}

async function mutatingTools(daemon: TestDaemon): Promise<Set<string>> {
  const response = await fetch(`${daemon.url}/api/tools`, { headers: { authorization: `Bearer ${daemon.token}`, connection: 'close' } })
  const { tools } = (await response.json()) as { tools: { name: string; impact: string }[] }
  return new Set(tools.filter((tool) => tool.impact !== 'read').map((tool) => tool.name))
}

/** The daemon shows what is stored: the whole log, every task with its latest notes, and every call that wrote. */
async function checkApi(daemon: TestDaemon, contents: Contents, { wrong }: Verdict): Promise<void> {
  const { events, tasks, notes, calls } = contents
  await checkShownEvents(daemon, events, wrong)
  const notesOf = grouped(notes, (note) => note.task_id)
  for (const row of tasks.values()) {
    if (row.deleted_at !== null) continue
    const { task } = await daemon.call('task_get', { task_id: row.id, notes: 200 })
    const { title, description, status, version, note_count } = task as Fields
    const own = notesOf.get(row.id) ?? []
    const shown = (task.notes as Fields[]).map(({ id, body, author }) => ({ id, body, author }))
    const same =
      isDeepStrictEqual(
        { title, description, status, version, note_count },
        { title: row.title, description: row.description, status: row.status, version: row.version, note_count: own.length },
      ) &&
      isDeepStrictEqual(
        shown,
        own.slice(-200).map(({ id, body, author }) => ({ id, body, author })),
      )
    if (!same) wrong.push(`task_get shows ${row.id} otherwise than it is stored`)
  }
  const shown = await auditOf(daemon, 'task_note')
  const noted = calls.filter((call) => call.tool === 'task_note' && call.outcome === 'ok')
  const stored = noted.toSorted((a, b) => a.seq - b.seq).map((call) => call.id)
  if (!isDeepStrictEqual(shown, stored)) wrong.push(`audit_tail shows ${shown.length} notes, stored are ${stored.length}`)
}

async function checkShownEvents(daemon: TestDaemon, events: EventRow[], wrong: string[]): Promise<void> {
  let cursor = encodeCursor(1, 0)
  for (let at = 0; at < events.length; ) {
    const page = await daemon.call('event_wait', { cursor, limit: 50, timeout_seconds: 1 })
    if (!page.events.length) return void wrong.push(`event_wait ends at ${at} of ${events.length} events`)
    for (const shown of page.events as Fields[]) {
      const row = events[at++]
      const same = row?.seq === seqOf(shown.cursor) && row?.type === shown.type && isDeepStrictEqual(row?.data, shown.data)
      if (!same) return void wrong.push(`event_wait shows ${shown.cursor} ${shown.type} where ${row?.seq} ${row?.type} is stored`)
    }
    cursor = page.cursor
  }
}

async function auditOf(daemon: TestDaemon, tool: string): Promise<string[]> {
  const ids: string[] = []
  let before: string | undefined
  do {
    const page = await daemon.call('audit_tail', { tool, outcome: 'ok', limit: 200, ...(before ? { before } : {}) })
    ids.push(...(page.calls as Fields[]).map((call) => call.id as string))
    before = page.next ?? undefined
  } while (before)
  return ids.reverse()
}

/** A stream must bring exactly the events that are stored, once each and in order. */
export function checkStream(what: string, seen: number[], stored: number[], wrong: string[]): void {
  const at = stored.findIndex((seq, i) => seen[i] !== seq)
  if (at >= 0) wrong.push(`${what}: event ${stored[at]} was due, ${seen[at] ?? 'nothing'} came (${seen.length} of ${stored.length})`)
  else if (seen.length > stored.length) wrong.push(`${what}: ${seen.length - stored.length} events too many`)
}

function grouped<T>(items: T[], by: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(by(item))
    if (group) group.push(item)
    else groups.set(by(item), [item])
  }
  return groups
}
