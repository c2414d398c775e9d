import { z } from 'zod'
import { Refusal, refuse } from '../../kernel/error.ts'
import { mention } from '../../kernel/id.ts'
import { ROLE_NAMES } from '../../kernel/policy.ts'
import { iso, isoOrNull, PageSize, PageToken, Timestamp } from '../../kernel/schema.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { agentStore, HUMAN, type Letter, SYSTEM_SENDER } from '../agent/index.ts'
import { AgentId, EpicId, MailId, ProjectId, ThreadId } from '../ids.ts'
import { type Known, nameOf, whoIs } from './names.ts'
import { addressesOf, fingerprintOf, notMine, requireNew, requireRoom } from './rules.ts'
import { asSubject, Body, Importance, LetterView, mailAcked, mailRead, Subject } from './schema.ts'
import { storeLetter } from './send.ts'
import { type LetterRow, mailStore } from './store.ts'

const MOST_RECEIVERS = 100
/** Of a body in a list: enough to know what it is about. */
const SHOWN = 2_000

const Sent = z.strictObject({
  mail_id: MailId,
  mail_ids: z.array(MailId).describe('One for each receiver'),
  thread_id: ThreadId,
  timestamp: Timestamp,
})

export const send = defineTool({
  name: 'mail_send',
  title: 'Send a letter',
  description: 'Write to one agent, to all of a role in your epic, or to the human. It is stored when this returns; the receiver is told.',
  input: z
    .strictObject({
      to_agent_id: mention(AgentId).optional(),
      to_role: z.enum(ROLE_NAMES).optional(),
      to_human: z.boolean().optional(),
      subject: Subject,
      body: Body,
      importance: Importance.default('normal'),
      needs_ack: z.boolean().default(false).describe('Ask the receiver to acknowledge it'),
      project_id: mention(ProjectId).optional().describe('People: whose role is meant'),
      epic_id: mention(EpicId).optional().describe('People: whose role is meant'),
    })
    .refine(
      ({ to_agent_id, to_role, to_human }) => [to_agent_id, to_role, to_human].filter(Boolean).length === 1,
      'name exactly one of to_agent_id, to_role, to_human: true',
    ),
  output: Sent,
  example: { to_human: true, subject: 'Which port?', body: 'The tests expect 3001, the documentation says 3000.' },
  impact: 'write',
  profile: 'planner',
  critical: true,
  async run(ctx, { to_agent_id, to_role, to_human, project_id, epic_id, ...letter }) {
    const receivers = to_human
      ? [HUMAN]
      : to_role
        ? await ofRole(ctx, to_role, { project_id, epic_id })
        : await oneAgent(ctx, to_agent_id as string)
    if (receivers instanceof Refusal) return receivers
    return post(ctx, receivers, letter)
  },
})

export const reply = defineTool({
  name: 'mail_reply',
  title: 'Answer a letter',
  description: 'Write back to the sender of a letter that you received, in the same thread.',
  input: z.strictObject({ mail_id: MailId, body: Body, importance: Importance.default('normal') }),
  output: Sent,
  example: { mail_id: `mail_${'0'.repeat(36)}`, body: '3001.' },
  impact: 'write',
  profile: 'planner',
  scope: 'open',
  async run(ctx, { mail_id, body, importance }) {
    const letter = await requireLetter(ctx.tx, mail_id)
    const refusal = notMine(letter, ctx.principal, 'answer')
    if (refusal) return refusal
    if (letter.from_id === SYSTEM_SENDER)
      return refuse('INVALID_INPUT', 'Signalbox itself wrote this letter: nobody would read an answer.', {
        hint: 'Write to the human, or to the agent that it is about.',
        next_tool: 'mail_send',
      })
    const ended = await hasEnded(ctx, letter.from_id)
    if (ended) return ended
    const subject = letter.subject.startsWith(RE) ? letter.subject : asSubject(`${RE}${letter.subject}`)
    return post(ctx, [letter.from_id], { subject, body, importance, thread: letter.thread_id, in_reply_to: letter.id })
  },
})

const RE = 'Re: '

export const inbox = defineTool({
  name: 'mail_inbox',
  title: 'Read your inbox',
  description: 'Letters to you, newest first: those that are unread, or all. Marks nothing; mail_read and mail_ack do.',
  input: z.strictObject({
    include_read: z.boolean().default(false),
    limit: PageSize,
    after: PageToken.optional(),
  }),
  output: z.strictObject({
    count: z.int().min(0).max(200).describe('Letters in this answer'),
    unread_count: z.int().min(0).max(1_000_000_000).describe('All that you have not read'),
    letters: z.array(LetterView),
    next: z.string().nullable(),
  }),
  example: { limit: 20 },
  impact: 'read',
  profile: 'viewer',
  core: true,
  async look(ctx, { include_read, limit, after }) {
    const store = mailStore(ctx.view)
    const addresses = addressesOf(ctx.principal)
    const rows = await store.inbox(addresses, include_read ? 'all' : 'unread', after, limit)
    return {
      count: rows.length,
      unread_count: await store.unread(addresses),
      letters: await shown(ctx.view, rows, SHOWN),
      next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null,
    }
  },
})

export const read = defineTool({
  name: 'mail_read',
  title: 'Read a letter',
  description: 'One letter to you with all of its body. It counts as read from then on.',
  input: z.strictObject({ mail_id: MailId }),
  output: z.strictObject({ letter: LetterView }),
  example: { mail_id: `mail_${'0'.repeat(36)}` },
  impact: 'write',
  profile: 'viewer',
  scope: 'open',
  async run(ctx, { mail_id }) {
    const letter = await requireLetter(ctx.tx, mail_id)
    const refusal = notMine(letter, ctx.principal, 'read')
    if (refusal) return refusal
    await markRead(ctx, letter)
    const [view] = await shown(ctx.tx, [await requireLetter(ctx.tx, mail_id)])
    return { letter: view as z.output<typeof LetterView> }
  },
})

export const ack = defineTool({
  name: 'mail_ack',
  title: 'Acknowledge a letter',
  description: 'Tell its sender that you have taken note of a letter. Once; again only says when it was.',
  input: z.strictObject({ mail_id: MailId }),
  output: z.strictObject({ mail_id: MailId, acked_at: Timestamp, acked_by: z.string(), before: z.boolean().describe('It was already') }),
  example: { mail_id: `mail_${'0'.repeat(36)}` },
  impact: 'write',
  profile: 'viewer',
  scope: 'open',
  async run(ctx, { mail_id }) {
    const letter = await requireLetter(ctx.tx, mail_id)
    const refusal = notMine(letter, ctx.principal, 'acknowledge')
    if (refusal) return refusal
    const by = readerOf(ctx)
    await markRead(ctx, letter)
    const isNew = await mailStore(ctx.tx).markAcked(mail_id, by, ctx.now)
    if (isNew) ctx.emit(mailAcked(toSender(letter), { mail_id, by }))
    const { acked_at, acked_by } = await requireLetter(ctx.tx, mail_id)
    return { mail_id, acked_at: iso(acked_at ?? ctx.now), acked_by: acked_by ?? by, before: !isNew }
  },
})

export const thread = defineTool({
  name: 'mail_thread',
  title: 'Read a thread',
  description: 'Your part of an exchange of letters, oldest first: what you sent and what you received. Marks nothing.',
  input: z
    .strictObject({ mail_id: MailId.optional(), thread_id: ThreadId.optional(), limit: PageSize, after: PageToken.optional() })
    .refine(({ mail_id, thread_id }) => (mail_id === undefined) !== (thread_id === undefined), 'name either mail_id or thread_id'),
  output: z.strictObject({ thread_id: ThreadId, letters: z.array(LetterView), next: z.string().nullable() }),
  example: { mail_id: `mail_${'0'.repeat(36)}` },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { mail_id, thread_id, limit, after }) {
    const addresses = addressesOf(ctx.principal)
    const letter = mail_id === undefined ? undefined : await requireLetter(ctx.view, mail_id)
    if (letter && !addresses.includes(letter.to_id) && letter.from_id !== ctx.principal.id) return notYours()
    const id = (letter?.thread_id ?? thread_id) as string
    const rows = await mailStore(ctx.view).partOf(id, addresses, after ?? '', limit)
    if (!rows.length && after === undefined) return notYours()
    return { thread_id: id, letters: await shown(ctx.view, rows), next: rows.length === limit ? (rows.at(-1)?.id ?? null) : null }
  },
})

function notYours(): Refusal {
  return refuse('PERMISSION_DENIED', 'You neither sent nor received a letter of that thread.', { next_tool: 'mail_inbox' })
}

async function oneAgent(ctx: RunContext, id: string): Promise<string[] | Refusal> {
  const { principal } = ctx
  if (id === principal.id) return refuse('INVALID_INPUT', 'A letter to yourself wakes nobody.', { hint: 'Keep it in a task_note.' })
  const own = principal.kind === 'agent' ? principal.scope.project : undefined
  const project = own && (await agentStore(ctx.tx).agent(id))?.project_id
  if (project && project !== own)
    return refuse('PERMISSION_DENIED', 'That agent works in another project.', { hint: 'Write to the human (to_human: true).' })
  return (await hasEnded(ctx, id)) ?? [id]
}

/** Stored it would lie there for ever, and its sender would wait for an answer. */
async function hasEnded({ tx }: RunContext, id: string): Promise<Refusal | undefined> {
  const agent = (await mailStore(tx).reads(id)) ? undefined : await agentStore(tx).agent(id)
  if (!agent) return undefined
  return refuse('INVALID_AGENT_STATE', `${agent.handle} has ended: nobody would read it.`, {
    hint: 'Write to the supervisor of its epic, to the human, or to whoever has the task now.',
    next_tool: 'agent_list',
  })
}

/** Of the sender's own epic, or of its project when it is in none; a person says which. */
async function ofRole(
  ctx: RunContext,
  role: (typeof ROLE_NAMES)[number],
  given: { project_id?: string; epic_id?: string },
): Promise<string[] | Refusal> {
  const { kind, scope, id } = ctx.principal
  const where = kind === 'agent' ? (scope.epic ? { epic_id: scope.epic } : { project_id: scope.project }) : given
  if (kind === 'agent' && (given.project_id ?? given.epic_id))
    return refuse('PERMISSION_DENIED', 'An agent writes to the roles of its own epic or project: leave project_id and epic_id out.')
  if (!where.epic_id && !where.project_id)
    return refuse(
      'INVALID_INPUT',
      `Which ${role}s? ${kind === 'agent' ? 'You are in no epic and no project.' : 'Give project_id or epic_id.'}`,
    )
  const found = (await mailStore(ctx.tx).ofRole(role, where, MOST_RECEIVERS + 2)).map((agent) => agent.id).filter((agent) => agent !== id)
  if (!found.length)
    return refuse('AGENT_NOT_FOUND', `There is no ${role} there.`, {
      hint: 'Write to the human (to_human: true).',
      next_tool: 'agent_list',
    })
  if (found.length > MOST_RECEIVERS)
    return refuse('INVALID_INPUT', `More than ${MOST_RECEIVERS} would get it. Write to those that need it.`)
  return found
}

type Written = Pick<Letter, 'subject' | 'body' | 'importance' | 'needs_ack' | 'thread' | 'in_reply_to'>

/** What an agent or a person writes, within the limits of its token. */
async function post(ctx: RunContext, receivers: string[], written: Written): Promise<z.output<typeof Sent>> {
  const { principal } = ctx
  await requireRoom(ctx, receivers.length)
  for (const to of receivers) {
    const { subject, body } = written
    await requireNew(ctx, fingerprintOf({ from_id: principal.id, to_id: to, subject, body }), () => nameOf(ctx.tx, to))
  }
  const thread = written.thread ?? ctx.id('thread')
  const rows: LetterRow[] = []
  for (const to of receivers) rows.push(await storeLetter(ctx, { ...written, from: principal.id, to, thread }))
  const mail_ids = rows.map((row) => row.id)
  return { mail_id: mail_ids[0] as string, mail_ids, thread_id: thread, timestamp: iso(ctx.now) }
}

async function markRead(ctx: RunContext, letter: LetterRow): Promise<void> {
  const by = readerOf(ctx)
  if (letter.read_at !== null || !(await mailStore(ctx.tx).markRead(letter.id, by, ctx.now))) return
  ctx.emit(mailRead(toSender(letter), { mail_id: letter.id, by }))
}

/** A person who acts for an agent is the one who has read it. */
function readerOf({ principal }: RunContext): string {
  return principal.by ?? principal.id
}

function toSender(letter: LetterRow) {
  return { subject: letter.id, project: letter.project_id, audience: { only: letter.from_id } }
}

async function requireLetter(tx: Tx, id: string): Promise<LetterRow> {
  const letter = await mailStore(tx).find(id)
  if (!letter) throw refuse('RESOURCE_NOT_FOUND', `There is no letter "${id}".`, { next_tool: 'mail_inbox' })
  return letter
}

async function shown(view: Tx, rows: LetterRow[], most = Number.POSITIVE_INFINITY): Promise<z.output<typeof LetterView>[]> {
  const known = new Map<string, Known>()
  for (const id of new Set(rows.flatMap((row) => [row.from_id, row.to_id]))) known.set(id, await whoIs(view, id))
  return rows.map((row) => letterView(row, (id) => known.get(id) ?? { handle: id, role: null }, most))
}

function letterView(row: LetterRow, who: (id: string) => Known, most: number): z.output<typeof LetterView> {
  const { id, thread_id, in_reply_to, from_id, to_id, project_id, epic_id, task_id, subject, body, importance, read_by, acked_by } = row
  const cut = body.length > most
  return {
    id,
    from: who(from_id).handle,
    from_role: who(from_id).role,
    subject,
    importance,
    sent_at: iso(row.created_at),
    read_at: isoOrNull(row.read_at),
    acked_at: isoOrNull(row.acked_at),
    needs_ack: row.needs_ack === 1,
    body: cut ? body.slice(0, most).toWellFormed() : body,
    cut,
    to: who(to_id).handle,
    from_id,
    to_id,
    thread_id,
    in_reply_to,
    read_by,
    acked_by,
    project_id,
    epic_id,
    task_id,
  }
}
