import './merges.css'
import { Link } from '@tanstack/react-router'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { useTool } from '../../../ui/live.tsx'
import type { TaskOnPage } from '../../../ui/panel.ts'
import { Behind } from './lines.tsx'
import { Elapsed, Outcome, Retry, StateBadge, TakeOut } from './merge-entry.tsx'
import type { Line, Merge } from './words.ts'

/** Of work that was approved: where it is in its line, or what became of it. */
export function TaskMerge({ task }: { task: TaskOnPage }) {
  const rounds = useTool('review_list', { task_id: task.id }, { follows: ['review', 'merge', 'task', 'setting'], about: task.id }).data
    ?.reviews
  const last = rounds?.at(-1)
  const approved = last?.decision === 'approve'
  const lines = useTool('merge_status', { task_id: task.id }, { follows: ['merge', 'line', 'review'], enabled: approved }).data?.lines
  const line = approved ? lines?.[0] : undefined
  const merge = line && [...line.waiting, ...line.ended].find(({ review_id }) => review_id === last?.id)
  if (!line || !merge) return null
  return (
    <Card
      className="merge-of"
      title="Merge"
      actions={
        <Link to="/merges" className="button button-quiet">
          The merge line
        </Link>
      }
    >
      <div className="card-body form">
        <div className="merge-head">
          <span role="status">
            <StateBadge state={merge.state} />
          </span>
          <Standing line={line} merge={merge} />
          <Retry merge={merge} />
          <TakeOut merge={merge} />
        </div>
        {line.held !== null && merge.position !== null && (
          <p className="refused">
            Nothing lands on {visible(line.target)}. {visible(line.held)}
          </p>
        )}
        <Outcome merge={merge} />
      </div>
      {merge.state === 'landed' && line.behind > 0 && <Behind line={line} />}
    </Card>
  )
}

function Standing({ line, merge }: { line: Line; merge: Merge }) {
  const into = <span className="mono">{visible(line.target)}</span>
  const when = merge.ended_at ?? merge.submitted_at
  return (
    <span className="muted">
      {merge.state === 'waiting' && (
        <>
          number {merge.position} of {line.waiting.length} in the line of {into}
        </>
      )}
      {merge.state === 'checking' && merge.began_at && (
        <>
          merged with {into}, <Elapsed since={merge.began_at} />
        </>
      )}
      {merge.position === null && <Time at={when} />}
    </span>
  )
}
