import { createHash } from 'node:crypto'
import type { Audience } from '../../kernel/event.ts'
import type { Principal } from '../../kernel/policy.ts'
import { redact, redactText } from '../../kernel/redact.ts'
import { iso } from '../../kernel/schema.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { nextNumber } from '../handle.ts'
import { approvalAsked, approvalDecided, approvalExpired, approvalWithdrawn } from './schema.ts'
import { type ApprovalRow, ARRIVED, approvalStore, ON_ITS_WAY } from './store.ts'
import { expire as expireApproval } from './tools.ts'
import { approvalHandle } from './words.ts'

const MINUTE_MS = 60_000
const LONGEST_INPUT = 16_384
const LONGEST_NAME = 200
const LONGEST_REQUEST = 500
/** Nobody reads more; a program that asks without end would fill every list. */
const MOST_PENDING = 50

/** What others want to run is no agent's business, whatever its role: it is not shown the events either. */
export function isSeen({ kind, scope }: Principal, task: string | undefined): boolean {
  return kind !== 'agent' || (scope.task !== undefined && (task ?? scope.task) === scope.task)
}

/** The run whose program asks. */
export interface Asker {
  run_id: string
  task_id: string
  project_id: string
  agent_id: string | null
}

export interface Question {
  /** By what the program itself knows it. */
  id: string
  name: string
  input: string
}

/** Undefined when it was asked before and still waits, or when it is of no form that a program would answer to. */
export async function ask(ctx: RunContext, asker: Asker, question: Question): Promise<ApprovalRow | undefined> {
  if (question.id.length > LONGEST_REQUEST) return undefined
  const input_hash = createHash('sha256').update(`${question.name}\0${question.input}`).digest('hex')
  const open = await approvalStore(ctx.tx).openOf(asker.run_id)
  const before = open.filter(({ request }) => request === question.id)
  if (before.some((row) => row.state === 'pending' && row.input_hash === input_hash)) return undefined
  // An answer to the old question must never be taken for one to the new.
  for (const row of before) await withdraw(ctx, row, 'It asked for something else in its place.')
  const minutes = ctx.setting<number>('approvals.expire_minutes')
  const tooMany = open.filter(({ state }) => state === 'pending').length >= MOST_PENDING
  const row: ApprovalRow = {
    id: ctx.id('approval'),
    number: await nextNumber(ctx.tx, 'approval'),
    ...asker,
    kind: 'agent_tool',
    request: question.id,
    name: question.name.slice(0, LONGEST_NAME).toWellFormed(),
    input: kept(question.input),
    input_hash,
    state: tooMany ? 'denied' : 'pending',
    message: tooMany ? `Denied: ${MOST_PENDING} other questions of yours wait for an answer.` : null,
    delivered: 0,
    asked_at: ctx.now,
    expires_at: ctx.now + minutes * MINUTE_MS,
    decided_by: tooMany ? ctx.principal.id : null,
    decided_at: tooMany ? ctx.now : null,
  }
  await approvalStore(ctx.tx).insert(row)
  ctx.emit(approvalAsked(about(row), { ...facts(row), expires_at: iso(row.expires_at) }))
  if (tooMany) ctx.emit(approvalDecided(about(row), { ...facts(row), decision: 'deny' }))
  else ctx.later(expireApproval, { approval_id: row.id }, { delayMs: minutes * MINUTE_MS })
  return row
}

/** The program will get this answer from what is written down in the same step. Undefined when it was given before. */
export async function passOn(ctx: RunContext, id: string): Promise<ApprovalRow | undefined> {
  const row = await approvalStore(ctx.tx).find(id)
  if (!row || row.delivered || !['allowed', 'denied', 'expired'].includes(row.state)) return undefined
  return (await approvalStore(ctx.tx).change(row, { delivered: ON_ITS_WAY })) ? row : undefined
}

export async function arrived(ctx: RunContext, id: string): Promise<void> {
  const row = await approvalStore(ctx.tx).find(id)
  if (row) await approvalStore(ctx.tx).change(row, { delivered: ARRIVED })
}

/** Everything of a run that no answer has reached, or those that the program knows by these ids. Returns what was withdrawn. */
export async function withdrawAll(ctx: RunContext, run: string, reason: string, requests?: Set<string>): Promise<ApprovalRow[]> {
  const withdrawn: ApprovalRow[] = []
  for (const row of await approvalStore(ctx.tx).openOf(run)) {
    const meant = requests === undefined || requests.has(row.request)
    if (meant && (await withdraw(ctx, row, reason))) withdrawn.push(row)
  }
  return withdrawn
}

export async function withdraw(ctx: RunContext, row: ApprovalRow, reason: string): Promise<boolean> {
  if (!(await approvalStore(ctx.tx).change(row, { state: 'withdrawn', message: reason }))) return false
  ctx.emit(approvalWithdrawn(about(row), { ...facts(row), reason }))
  return true
}

export async function expire(ctx: RunContext, row: ApprovalRow): Promise<void> {
  const seconds = Math.round((row.expires_at - row.asked_at) / 1_000)
  const within = seconds < 90 ? `${seconds} second${seconds === 1 ? '' : 's'}` : `${Math.round(seconds / 60)} minutes`
  const message = `Nobody answered within ${within}, so it was denied. Go on without it, or say in a note why it is needed.`
  if (await approvalStore(ctx.tx).change(row, { state: 'expired', message })) ctx.emit(approvalExpired(about(row), facts(row)))
}

/** For the agent that asked and for people: what others want to run is none of an agent's business. */
export function about(row: ApprovalRow) {
  const audience: Audience = row.agent_id === null ? 'people' : { only: row.agent_id }
  return { subject: row.id, project: row.project_id, task: row.task_id, audience }
}

export function facts(row: ApprovalRow) {
  return { handle: approvalHandle(row), name: row.name, run_id: row.run_id }
}

function kept(input: string): string {
  const text = withoutSecretFields(input)
  if (text.length <= LONGEST_INPUT) return text
  return `${text.slice(0, LONGEST_INPUT).toWellFormed()}\n[${text.length - LONGEST_INPUT} more characters are not shown]`
}

function withoutSecretFields(input: string): string {
  try {
    return JSON.stringify(redact(JSON.parse(input)))
  } catch {
    return redactText(input)
  }
}
