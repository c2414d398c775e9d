import type { LookContext } from '../../kernel/tool.ts'
import { SYSTEM_SENDER } from '../agent/index.ts'
import type { Needed, NeedKind, Question } from '../need/index.ts'
import { whoIs } from './names.ts'
import { addressesOf } from './rules.ts'
import { mailStore } from './store.ts'

const LETTER: NeedKind = { kind: 'letter', title: 'Unread letters', urgency: 'soon' }

/** Letters to people. Agents are told of theirs in other ways. */
export async function unreadLetters(ctx: LookContext, { project, kinds, limit, after }: Question): Promise<Needed> {
  const { principal, view } = ctx
  const addresses = principal.kind === 'person' ? addressesOf(principal) : []
  const store = mailStore(view)
  const rows = kinds?.includes(LETTER.kind) === false ? [] : await store.unreadFrom(addresses, project, after(LETTER.urgency), limit)
  const senders = new Map<string, string>()
  for (const id of new Set(rows.map((row) => row.from_id))) senders.set(id, (await whoIs(view, id)).handle)
  return {
    kinds: [LETTER],
    counts: { [LETTER.kind]: await store.countUnread(addresses, project) },
    needs: rows.map((row) => ({
      kind: LETTER.kind,
      id: row.id,
      handle: null,
      title: row.subject,
      detail: row.importance === 'normal' ? null : row.importance,
      by: senders.get(row.from_id) ?? row.from_id,
      task_id: row.task_id,
      project_id: row.project_id,
      since: row.created_at,
    })),
    async steps(shown) {
      // Signalbox itself reads no answers.
      const isAnswered = ({ id }: { id: string }) => rows.find((row) => row.id === id)?.from_id !== SYSTEM_SENDER
      return new Map(
        shown.map((need) => [
          need.id,
          [
            { tool: 'mail_read', arguments: { mail_id: need.id } },
            ...(isAnswered(need) ? [{ tool: 'mail_reply', arguments: { mail_id: need.id, body: '…' } }] : []),
          ],
        ]),
      )
    },
  }
}
