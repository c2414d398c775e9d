import './reviews.css'
import { MessageSquareQuote } from 'lucide-react'
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
              {rounds.toReversed().map(({ id, round, summary, reviewer_prompt, requested_by, requested_at }) => (
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
