import { ShieldCheck } from 'lucide-react'
import { Page } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { type Approval, MOST, usePending } from './data.ts'

/** What the agents of all tasks wait for. */
export function Approvals() {
  const pending = usePending()
  return (
    <Page title="Approvals" subtitle="What agents ask permission for. Each goes on when it has its answer.">
      <Loaded read={pending}>
        {({ approvals, next }) =>
          approvals.length ? (
            <>
              {longestFirst(approvals).map((approval) => (
                <ApprovalCard key={approval.id} approval={approval} withTask />
              ))}
              {next !== null && <p className="muted">Decide about these; more follow.</p>}
            </>
          ) : (
            <Empty icon={ShieldCheck} title="No agent waits for permission.">
              <p>Agents that were started to ask show here what they want to do. The setting runs.approvals says which ones do.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

/** Beside the name of the page, wherever somebody is. */
export function PendingCount() {
  const { data } = usePending()
  const count = data?.approvals.length ?? 0
  if (!count) return null
  return (
    <span className="side-count">
      {count < MOST ? count : `${MOST}+`}
      <span className="visually-hidden"> waiting</span>
    </span>
  )
}

/** Whoever has waited longest is answered first. */
export function longestFirst(approvals: Approval[]): Approval[] {
  return approvals.toReversed()
}
