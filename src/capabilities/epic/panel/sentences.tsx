import { Link } from '@tanstack/react-router'
import { TaskLink } from '../../../ui/kit/task-link.tsx'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'
import { STATES } from './words.ts'

export const sentences: Sentences = {
  'epic.created': ({ data }) => (
    <>
      <strong>wrote</strong> the epic <Epic data={data} /> <span className="muted">{String(data.title)}</span>
    </>
  ),
  'epic.updated': ({ data }) => (
    <>
      <strong>changed</strong> {(data.fields as string[]).join(', ').replaceAll('_', ' ')} of <Epic data={data} />
    </>
  ),
  'epic.moved': ({ data }) => (
    <>
      <strong>moved</strong> <Epic data={data} /> from {state(data.from)} to {state(data.to)}
    </>
  ),
  'epic.worker_started': ({ data }) => (
    <>
      <strong>gave</strong> <TaskLink handle={data.handle} /> a worker
    </>
  ),
}

function Epic({ data: { handle } }: Pick<LiveEvent, 'data'>) {
  return (
    <Link to="/epic/$epic" params={{ epic: String(handle) }} className="mono">
      {String(handle)}
    </Link>
  )
}

const state = (name: unknown) => STATES[name as keyof typeof STATES]?.text ?? String(name)
