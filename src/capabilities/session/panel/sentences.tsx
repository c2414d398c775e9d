import { Link } from '@tanstack/react-router'
import { visible } from '../../../ui/kit/plain.ts'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'
import { PROMPTS } from './words.ts'

export const sentences: Sentences = {
  'session.opening': (event) => (
    <>
      <strong>opens</strong> <Terminal event={event} />
    </>
  ),
  'session.opened': (event) => (
    <>
      <strong>opened</strong> <Terminal event={event} />
    </>
  ),
  'session.prompted': (event) => (
    <>
      <strong>{PROMPTS[String(event.data.prompt)]?.said ?? 'looked after the prompt of'}</strong> <Terminal event={event} />
      <Because text={event.data.detail} />
    </>
  ),
  'session.typed': (event) => (
    <>
      <strong>{event.data.problem ? 'could not type into' : 'passed on what was typed into'}</strong> <Terminal event={event} />
      <Because text={event.data.problem} />
    </>
  ),
  'session.closing': (event) => (
    <>
      <strong>closes</strong> <Terminal event={event} />
    </>
  ),
  'session.closed': (event) => (
    <>
      <strong>{event.data.state === 'lost' ? 'lost' : 'closed'}</strong> <Terminal event={event} />
      <Because text={event.data.reason} />
    </>
  ),
}

function Terminal({ event: { task_id, data } }: { event: LiveEvent }) {
  const name = `the terminal of ${String(data.handle)}`
  if (!task_id) return name
  return (
    <Link to="/task/$task" params={{ task: task_id }}>
      {name}
    </Link>
  )
}

function Because({ text }: { text: unknown }) {
  return typeof text === 'string' && text ? <span className="muted">: {visible(text)}</span> : null
}
