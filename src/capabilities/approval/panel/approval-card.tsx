import './approvals.css'
import { Link } from '@tanstack/react-router'
import { Check, X } from 'lucide-react'
import { useEffect, useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { TextField } from '../../../ui/kit/field.tsx'
import { Card } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useMay } from '../../../ui/live.tsx'
import type { Approval } from './data.ts'

/** One question of an agent, and the two answers to it. */
export function ApprovalCard({ approval, withTask }: { approval: Approval; withTask?: boolean }) {
  const may = useMay()
  return (
    <Card
      className="approval"
      title={
        <>
          Permission to use <span className="mono">{visible(approval.tool)}</span>
        </>
      }
      actions={<Badge tone="amber">{approval.handle}</Badge>}
    >
      <div className="card-body approval-body">
        <p className="muted approval-facts">
          {withTask && (
            <span>
              for{' '}
              <Link to="/task/$task" params={{ task: approval.task }}>
                {approval.task} {approval.task_title}
              </Link>
            </span>
          )}
          <span>
            asked <Time at={approval.asked_at} />
          </span>
          <Countdown until={approval.expires_at} />
        </p>
        <Asked input={approval.input} />
        {may('approval_decide') ? <Answer approval={approval} /> : <p className="muted">An operator decides this.</p>}
      </div>
    </Card>
  )
}

function Answer({ approval: { id, handle } }: { approval: Approval }) {
  const [message, setMessage] = useState('')
  // A refusal is said beside the page: this card goes away when somebody else was first.
  const decide = useAction('approval_decide')
  const answer = (decision: 'allow' | 'deny') => decide.mutate({ approval_id: id, decision, message: message.trim() || undefined })
  const pressed = decide.isPending ? decide.variables?.decision : undefined
  return (
    <>
      <TextField
        label="Message to the agent"
        placeholder="Optional: what it should do instead, or know"
        maxLength={2_000}
        value={message}
        onChange={(event) => setMessage(event.target.value)}
      />
      <div className="approval-answers">
        <Button
          kind="primary"
          icon={Check}
          aria-label={`Allow ${handle}`}
          busy={pressed === 'allow'}
          disabled={decide.isPending}
          onClick={() => answer('allow')}
        >
          Allow
        </Button>
        <Button icon={X} aria-label={`Deny ${handle}`} busy={pressed === 'deny'} disabled={decide.isPending} onClick={() => answer('deny')}>
          Deny
        </Button>
      </div>
    </>
  )
}

/** Field by field, because a person has to read it; every character is seen, also those that would hide others. */
function Asked({ input }: { input: string }) {
  const fields = fieldsOf(input)
  if (!fields?.length) return <pre className="block">{visible(input)}</pre>
  return (
    <dl className="approval-fields">
      {fields.map(([name, value]) => (
        <div key={name}>
          <dt className="mono">{visible(name)}</dt>
          <dd>
            <pre className="block">{visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</pre>
          </dd>
        </div>
      ))}
    </dl>
  )
}

function fieldsOf(input: string): [string, unknown][] | undefined {
  try {
    const parsed: unknown = JSON.parse(input)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? Object.entries(parsed) : undefined
  } catch {
    return undefined
  }
}

const SECOND_MS = 1_000

function Countdown({ until }: { until: string }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.round((Date.parse(until) - now) / SECOND_MS))
  return (
    <time dateTime={until} title={new Date(until).toLocaleString()}>
      {seconds ? `denied by itself in ${clock(seconds)}` : 'its time is up'}
    </time>
  )
}

function clock(seconds: number): string {
  const two = (part: number) => String(part).padStart(2, '0')
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60]
  return hours ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`
}
