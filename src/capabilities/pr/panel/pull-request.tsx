import './pull-request.css'
import type { Output } from '../../../ui/client.ts'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'

type Pr = Output<'pr_get'>['pr']

const STATES: Record<Pr['state'], { tone: Tone; text: string }> = {
  OPEN: { tone: 'amber', text: 'open' },
  MERGED: { tone: 'green', text: 'merged' },
  CLOSED: { tone: 'neutral', text: 'closed' },
}

/** That of the work on this task, once there is one. */
export function PullRequest({ task }: { task: TaskOnPage }) {
  const follows = ['pr', 'review', 'merge', 'task']
  // Asked for by its id: to ask for one that is not there is refused.
  const pr_id = useTool('work_get', { task_id: task.id }, { follows, about: task.id }).data?.pull_request?.id
  const pr = useTool('pr_get', { pr_id: pr_id ?? '' }, { follows, about: task.id, enabled: pr_id !== undefined }).data?.pr
  const rounds = useTool('review_list', { task_id: task.id }, { follows: ['review', 'merge', 'task'], about: task.id }).data?.reviews
  if (!pr) return null
  const { number, state, title, description, head, base, created_by, created_at } = pr
  const saidBelow = rounds?.some(({ summary }) => summary === description)
  return (
    <Card
      className="pull-request"
      title={`Pull request ${number}`}
      actions={
        <span role="status">
          <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge>
        </span>
      }
    >
      <div className="card-body form">
        <p>
          <strong>{visible(title)}</strong>
        </p>
        <p className="pull-request-branches">
          <span className="mono">{visible(head)}</span> <span className="muted">into</span> <span className="mono">{visible(base)}</span>
        </p>
        <p className="pull-request-head">
          <Who id={created_by} />
          <span className="muted">
            opened it <Time at={created_at} />
          </span>
          {pr.merged_at && pr.merge_commit && (
            <span className="muted">
              merged as <code className="mono">{pr.merge_commit.slice(0, 10)}</code> <Time at={pr.merged_at} />
            </span>
          )}
        </p>
        {!saidBelow && description && <Markdown text={description} />}
      </div>
    </Card>
  )
}
