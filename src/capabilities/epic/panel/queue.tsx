import { Link } from '@tanstack/react-router'
import { Check, ClipboardCheck, Undo2 } from 'lucide-react'
import { useState } from 'react'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { TextArea } from '../../../ui/kit/field.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { Queued } from './words.ts'

const FOLLOWS = ['review', 'task']

/** What was handed in, oldest first, and the two answers to it. */
export function Queue({ epic }: { epic: string }) {
  const waiting = useTool('review_queue', { epic_id: epic }, { follows: FOLLOWS })
  return (
    <Card title={`To review${waiting.data?.queue.length ? ` (${waiting.data.queue.length})` : ''}`}>
      <Loaded read={waiting}>
        {({ queue }) =>
          queue.length ? (
            <ol className="queue">
              {queue.map((entry) => (
                <Entry key={entry.task_id} entry={entry} />
              ))}
            </ol>
          ) : (
            <Empty icon={ClipboardCheck} title="Nothing waits for review." />
          )
        }
      </Loaded>
    </Card>
  )
}

const TONES: Record<Queued['state'], Tone> = { waiting: 'amber', merging: 'blue', stuck: 'red' }

function Entry({ entry }: { entry: Queued }) {
  const may = useMay()
  return (
    <li>
      <p className="queue-head">
        <Link to="/task/$task" params={{ task: entry.handle }} search={{ tab: 'Changes' }}>
          <span className="mono">{entry.handle}</span> {entry.title}
        </Link>
        <Badge tone={TONES[entry.state]}>{entry.state}</Badge>
        {entry.pr_number !== null && <span className="muted">PR {entry.pr_number}</span>}
        <span className="muted">
          {entry.requested_by && <Who id={entry.requested_by} />} <Time at={entry.requested_at} />
        </span>
      </p>
      {entry.summary && <Markdown text={entry.summary} />}
      {entry.reason && <p className="refused">{entry.reason}</p>}
      {may('review_decide') && entry.state !== 'merging' && <Answer entry={entry} />}
    </li>
  )
}

function Answer({ entry: { task_id, handle, commit } }: { entry: Queued }) {
  const [feedback, setFeedback] = useState('')
  const decide = useAction('review_decide', { said: ({ message }) => `${handle}: ${message}` })
  const pressed = decide.isPending ? decide.variables?.decision : undefined
  return (
    <>
      <TextArea
        label={`Feedback on ${handle}`}
        rows={2}
        placeholder="What is to be changed, when it is sent back"
        value={feedback}
        onChange={(event) => setFeedback(event.target.value)}
      />
      <div className="queue-answers">
        <Button
          kind="primary"
          icon={Check}
          aria-label={`Approve and merge ${handle}`}
          busy={pressed === 'approve'}
          disabled={decide.isPending}
          onClick={() => decide.mutate({ task_id, decision: 'approve', commit: commit ?? undefined })}
        >
          Approve and merge
        </Button>
        <Button
          icon={Undo2}
          aria-label={`Send back ${handle}`}
          busy={pressed === 'request_changes'}
          disabled={decide.isPending || !feedback.trim()}
          onClick={() => decide.mutate({ task_id, decision: 'request_changes', feedback: feedback.trim() })}
        >
          Send back
        </Button>
      </div>
    </>
  )
}
