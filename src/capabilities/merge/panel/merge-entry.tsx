import './merges.css'
import { Link } from '@tanstack/react-router'
import { Hourglass, RotateCcw, X } from 'lucide-react'
import { type SyntheticEvent, useEffect, useState } from 'react'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Time } from '../../../ui/kit/time.tsx'
import { useAction, useMay } from '../../../ui/live.tsx'
import { type Merge, STATES, short } from './words.ts'

/** One that waits, is checked, or is over. */
export function MergeEntry({ merge }: { merge: Merge }) {
  const { handle, title, state, position, submitted_at, ended_at } = merge
  return (
    <li className="merge">
      <div className="merge-head">
        {state === 'waiting' && <span className="merge-position">{position}</span>}
        <StateBadge state={state} />
        <Link to="/task/$task" params={{ task: handle }} className="merge-task">
          <span className="mono">{handle}</span> {visible(title)}
        </Link>
        <span className="muted merge-when">
          {merge.state === 'checking' && merge.began_at ? <Elapsed since={merge.began_at} /> : <Time at={ended_at ?? submitted_at} />}
        </span>
        <Retry merge={merge} />
        <TakeOut merge={merge} />
      </div>
      <Outcome merge={merge} />
    </li>
  )
}

export function StateBadge({ state }: Pick<Merge, 'state'>) {
  return (
    <Badge tone={STATES[state].tone} icon={state === 'checking' ? Hourglass : undefined}>
      {STATES[state].text}
    </Badge>
  )
}

/** What became of it, and why. */
export function Outcome({ merge: { state, target, commit, reason, files, log } }: { merge: Merge }) {
  return (
    <>
      {state === 'landed' && commit && (
        <p className="muted">
          On {visible(target)} as <code className="mono">{short(commit)}</code>
        </p>
      )}
      {state === 'conflict' && (
        <div>
          <p>{visible(target)} has changed the same places. It went back to its worker:</p>
          <ul className="merge-files">
            {files.map((file) => (
              <li key={file} className="mono">
                {visible(file)}
              </li>
            ))}
          </ul>
        </div>
      )}
      {state === 'red' && <p>{visible(reason ?? '')} It went back to its worker.</p>}
      {state === 'stuck' && <p className="refused">{visible(reason ?? '')}</p>}
      {state === 'withdrawn' && <p className="muted">{visible(reason ?? '')}</p>}
      {log && <Log text={log} />}
    </>
  )
}

/** Folded; what it says last is what matters. */
function Log({ text }: { text: string }) {
  const toItsEnd = ({ currentTarget }: SyntheticEvent<HTMLDetailsElement>) => {
    const shown = currentTarget.querySelector('pre')
    shown?.scrollTo(0, shown.scrollHeight)
  }
  return (
    <details className="merge-log" onToggle={toItsEnd}>
      <summary>The end of what the checks printed</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrows */}
      <pre className="block" tabIndex={0}>
        {visible(text)}
      </pre>
    </details>
  )
}

/** The same commit once more. */
export function Retry({ merge: { id, handle, can_retry } }: { merge: Merge }) {
  const may = useMay()
  const retry = useAction('merge_retry')
  if (!can_retry || !may('merge_retry')) return null
  return (
    <Button
      icon={RotateCcw}
      aria-label={`Try again: the merge of ${handle}`}
      busy={retry.isPending}
      onClick={() => retry.mutate({ merge_id: id })}
    >
      Try again
    </Button>
  )
}

/** Of one that waits or is checked; it can be decided anew. */
export function TakeOut({ merge: { id, handle, position } }: { merge: Merge }) {
  const may = useMay()
  const cancel = useAction('merge_cancel', { said: ({ message }) => message })
  if (position === null || !may('merge_cancel')) return null
  return (
    <Button
      icon={X}
      aria-label={`Take out: the merge of ${handle}`}
      busy={cancel.isPending}
      onClick={() => cancel.mutate({ merge_id: id })}
    >
      Take out
    </Button>
  )
}

const SECOND_MS = 1_000

export function Elapsed({ since }: { since: string }) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), SECOND_MS)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.floor((now - Date.parse(since)) / SECOND_MS))
  const two = (part: number) => String(part).padStart(2, '0')
  return (
    <time dateTime={since} title={`Since ${new Date(since).toLocaleString()}`}>
      for {Math.floor(seconds / 60)}:{two(seconds % 60)}
    </time>
  )
}
