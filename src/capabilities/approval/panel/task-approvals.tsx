import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { ApprovalCard } from './approval-card.tsx'
import { longestFirst } from './approvals.tsx'
import { type Approval, useDecided, usePending } from './data.ts'

/** What the agent of this task waits for, and what became of what it asked before. */
export function TaskApprovals({ task }: { task: TaskOnPage }) {
  const pending = usePending(task.id).data?.approvals ?? []
  const decided = useDecided(task.id).data?.approvals ?? []
  if (!pending.length && !decided.length) return null
  return (
    <div className="task-approvals">
      <p className="visually-hidden" role="status">
        {pending.length > 0 && `The agent asks for permission: ${pending.map(({ title }) => visible(title)).join('; ')}`}
      </p>
      {longestFirst(pending).map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} />
      ))}
      {decided.length > 0 && <Before approvals={decided} />}
    </div>
  )
}

const TONES: Record<Approval['state'], Tone> = {
  pending: 'amber',
  allowed: 'green',
  denied: 'red',
  expired: 'amber',
  withdrawn: 'neutral',
}

function Before({ approvals }: { approvals: Approval[] }) {
  return (
    <details className="card approvals-before">
      <summary>Permissions asked before</summary>
      <ul>
        {approvals.map(({ id, handle, state, title, message, decided_by, decided_at, asked_at }) => (
          <li key={id}>
            <Badge tone={TONES[state]}>{state}</Badge>
            <span className="mono">{handle}</span>
            <span className="approval-summary mono">{visible(title)}</span>
            <span className="muted approval-who">
              {decided_by && <Who id={decided_by} />} <Time at={decided_at ?? asked_at} />
            </span>
            {message && <p className="muted">{visible(message)}</p>}
          </li>
        ))}
      </ul>
    </details>
  )
}
