import { Time } from '../kit/time.tsx'
import { Who } from '../kit/who.tsx'
import { sentenceOf } from '../panels.ts'
import type { LiveEvent } from '../stream.ts'

/** One thing that happened, as a sentence: its capability's, or as far as type and data tell. */
export function EventLine({ event }: { event: LiveEvent }) {
  return (
    <span className="event-line">
      <Who id={event.actor} />
      <span>{(sentenceOf(event.type) ?? anySentence)(event)}</span>
      <span className="muted event-time">
        <Time at={event.at} />
      </span>
    </span>
  )
}

function anySentence({ type, data }: LiveEvent) {
  const [noun = '', verb = ''] = type.split('.')
  return (
    <>
      <strong>{words(verb)}</strong> {words(noun)} {typeof data.handle === 'string' && <span className="mono">{data.handle}</span>}
      <span className="muted"> {detailsOf(data)}</span>
    </>
  )
}

/** What is neither shown already nor of use to a reader is left out. */
const SILENT = new Set(['handle', 'version'])

function detailsOf(data: LiveEvent['data']): string {
  return Object.entries(data)
    .filter(([name, value]) => !SILENT.has(name) && value !== null && !String(value).match(/^[a-z]+_[0-9a-z]{36}$/))
    .map(([name, value]) => `${words(name)}: ${typeof value === 'object' ? JSON.stringify(value) : String(value)}`)
    .join(', ')
    .slice(0, 200)
}

function words(name: string): string {
  return name.replaceAll('_', ' ')
}
