import './reviews.css'
import { MessageSquareQuote } from 'lucide-react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

/** The rounds of review, newest first. */
export function Reviews({ task }: { task: TaskOnPage }) {
  const reviews = useTool('review_list', { task_id: task.id }, { about: task.id })
  return (
    <Card title="Reviews">
      <Loaded read={reviews}>
        {({ reviews: rounds }) =>
          rounds.length ? (
            <ul className="rounds">
              {rounds.toReversed().map(({ id, round, summary, reviewer_prompt, requested_by, requested_at, ...decided }) => (
                <li key={id}>
                  <p className="round-head">
                    <Badge tone="amber">round {round}</Badge> <Who id={requested_by} />
                    <span className="muted">
                      handed it in <Time at={requested_at} />
                    </span>
                  </p>
                  <Markdown text={summary} />
                  {reviewer_prompt && (
                    <>
                      <h3>For the reviewer</h3>
                      <Markdown text={reviewer_prompt} />
                    </>
                  )}
                  <Decided {...decided} />
                </li>
              ))}
            </ul>
          ) : (
            <Empty icon={MessageSquareQuote} title="No review yet.">
              <p>When an agent hands in its work, it says here what it did.</p>
            </Empty>
          )
        }
      </Loaded>
    </Card>
  )
}

type Round = Output<'review_list'>['reviews'][number]

const WORDS = { approve: 'approved', request_changes: 'sent back', timed_out: 'timed out', abandoned: 'given up' } as const

/** What became of the round: nothing, as long as nobody has decided. */
function Decided({
  decision,
  decided_by,
  decided_at,
  feedback,
  outcome,
  reason,
}: Pick<Round, 'decision' | 'decided_by' | 'decided_at' | 'feedback' | 'outcome' | 'reason'>) {
  if (decision === null || decided_by === null || decided_at === null) return null
  return (
    <>
      <p className="round-head">
        <Badge tone={decision === 'approve' ? 'green' : 'amber'}>{WORDS[decision]}</Badge>
        <Who id={decided_by} />
        <span className="muted">
          <Time at={decided_at} />
          {decision === 'approve' && `, ${outcome ?? 'being merged'}`}
        </span>
      </p>
      {feedback && <Markdown text={feedback} />}
      {reason && <p className="muted">{reason}</p>}
    </>
  )
}
