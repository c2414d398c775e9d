import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import type { Tx } from '../../kernel/storage.ts'
import { needs } from '../need/index.ts'
import { whereabouts } from '../task/index.ts'
import { migrations } from './migrations.ts'
import { askedFor } from './needs.ts'
import { APPROVAL_STATES, approvalAsked, approvalDecided, approvalExpired, approvalWithdrawn } from './schema.ts'
import { approvalStore } from './store.ts'
import { decide, expire, get, list, withdraw } from './tools.ts'

export const approval = defineCapability({
  name: 'approval',
  tools: [list, get, decide, expire, withdraw],
  migrations,
  values: { approvals: { state: APPROVAL_STATES } },
  answers: [answer(needs, askedFor)],
  events: [approvalAsked, approvalDecided, approvalExpired, approvalWithdrawn],
  settings: {
    'approvals.expire_minutes': setting(
      z.number().min(0.01).max(10_080),
      60,
      'How long an agent waits for the answer of a person; then it is told that it was denied',
    ),
  },
  things: [
    {
      kind: 'approval',
      async find(tx, ref) {
        const row = await approvalStore(tx).find(ref)
        return row && { id: row.id, within: await whereabouts(tx, row) }
      },
    },
  ],
})

/** Decided, and the program has not been told. Oldest first. */
export const decidedOf = (view: Tx, run: string) => approvalStore(view).decidedOf(run)

export const pendingOf = (view: Tx, tasks: string[]) => approvalStore(view).pendingOf(tasks)

export { arrived, ask, passOn, type Question, withdrawAll } from './rules.ts'
export { approvalDecided, approvalExpired } from './schema.ts'
export type { ApprovalRow } from './store.ts'
export { withdraw as withdrawApproval } from './tools.ts'
export { approvalHandle, inOneLine } from './words.ts'
