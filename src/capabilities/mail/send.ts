import type { RunContext } from '../../kernel/tool.ts'
import { agentStore, HUMAN, type Letter, SYSTEM_SENDER } from '../agent/index.ts'
import { tellPeople, tellSoon } from './notice.ts'
import { fingerprintOf } from './rules.ts'
import { asSubject, mailSent } from './schema.ts'
import { type LetterRow, mailStore } from './store.ts'

/** Stored with the transaction that writes it: one row for one receiver, with its event. */
export async function storeLetter(ctx: RunContext, letter: Letter): Promise<LetterRow> {
  const { from, to, body } = letter
  const subject = asSubject(letter.subject)
  const row: LetterRow = {
    id: ctx.id('mail'),
    thread_id: letter.thread ?? ctx.id('thread'),
    in_reply_to: letter.in_reply_to ?? null,
    from_id: from,
    to_id: to,
    ...(await aboutOf(ctx, letter)),
    subject,
    body,
    importance: letter.importance ?? 'normal',
    needs_ack: letter.needs_ack ? 1 : 0,
    fingerprint: fingerprintOf({ from_id: from, to_id: to, subject, body }),
    created_at: ctx.now,
    read_at: null,
    read_by: null,
    acked_at: null,
    acked_by: null,
    noticed_in: null,
    notices: 0,
  }
  await mailStore(ctx.tx).insert([row])
  const isForAgent = to.startsWith('agent_')
  ctx.emit(
    mailSent(
      { subject: row.id, project: row.project_id, audience: to === HUMAN ? 'people' : { only: to } },
      { mail_id: row.id, to_agent_id: isForAgent ? to : null, is_for_human: !isForAgent, subject, importance: row.importance },
    ),
  )
  if (isForAgent) await tellSoon(ctx, to)
  else tellPeople(ctx, row)
  return row
}

async function aboutOf(ctx: RunContext, { from, to, about }: Letter): Promise<Pick<LetterRow, 'project_id' | 'epic_id' | 'task_id'>> {
  const { principal, tx } = ctx
  const given = { project_id: about?.project_id ?? null, epic_id: about?.epic_id ?? null, task_id: about?.task_id ?? null }
  if (about) return given
  if (from === principal.id && principal.kind === 'agent') {
    const { project = null, epic = null, task = null } = principal.scope
    return { project_id: project, epic_id: epic, task_id: task }
  }
  const agent = await agentStore(tx).agent(from === SYSTEM_SENDER ? to : from)
  return agent ? { project_id: agent.project_id, epic_id: agent.epic_id, task_id: agent.task_id } : given
}
