import { Link } from '@tanstack/react-router'
import { Time } from '../kit/time.tsx'
import { Who } from '../kit/who.tsx'
import type { LiveEvent } from '../stream.ts'

/** One thing that happened, as a sentence as far as its type and data tell. */
export function EventLine({ event }: { event: LiveEvent }) {
  const { handle } = event.data
  const [noun = '', verb = ''] = event.type.split('.')
  return (
    <span className="event-line">
      <Who id={event.actor} />
      <span>
        <strong>{verb.replaceAll('_', ' ')}</strong> {noun}{' '}
        {noun === 'task' && typeof handle === 'string' ? (
          <Link to="/task/$task" params={{ task: handle }} className="mono">
            {handle}
          </Link>
        ) : (
          typeof handle === 'string' && <span className="mono">{handle}</span>
        )}
        <span className="muted"> {detailsOf(event)}</span>
      </span>
      <span className="muted event-time">
        <Time at={event.at} />
      </span>
    </span>
  )
}

/** What is neither shown already nor of use to a reader is left out. */
const SILENT = new Set(['handle', 'version', 'note_id', 'author'])

function detailsOf({ data }: LiveEvent): string {
  if (typeof data.from === 'string' && typeof data.to === 'string') {
    const reason = typeof data.reason === 'string' ? `: ${data.reason}` : ''
    return `${words(data.from)} → ${words(data.to)}${reason}`
  }
  return Object.entries(data)
    .filter(([name, value]) => !SILENT.has(name) && value !== null && !String(value).match(/^[a-z]+_[0-9a-z]{36}$/))
    .map(([name, value]) => `${name.replaceAll('_', ' ')}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
    .slice(0, 200)
}

function words(status: string): string {
  return status.toLowerCase().replaceAll('_', ' ')
}
