import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { visible } from '../../../ui/kit/plain.ts'
import type { Sentences } from '../../../ui/panel.ts'
import type { LiveEvent } from '../../../ui/stream.ts'
import { METER, METERS } from './amounts.ts'

export const sentences: Sentences = {
  'job.submitted': (event) => (
    <>
      <strong>{ASKED[String(event.data.action)] ?? 'submitted'}</strong> <Job event={event} />
      {event.data.state === 'queued' && <span className="muted"> is in the line</span>}
    </>
  ),
  'job.started': (event) => (
    <>
      <strong>began</strong> <Job event={event} />
    </>
  ),
  'job.queued': (event) => (
    <>
      <strong>put</strong> <Job event={event} /> back into the line
      <Because text={event.data.reason} />
    </>
  ),
  'job.cancelling': (event) => (
    <>
      <strong>asked</strong> <Job event={event} /> to end
    </>
  ),
  'job.paused': (event) => (
    <>
      <strong>{event.data.paused ? 'saw the agent stop and wait:' : 'saw the agent go on:'}</strong> <Job event={event} />
    </>
  ),
  'job.ended': (event) => (
    <>
      <strong>{ENDED[String(event.data.state)] ?? 'ended'}</strong> <Job event={event} />
      <Because text={event.data.reason} />
    </>
  ),
  'run.started': ({ task_id, data }) => (
    <>
      <strong>started</strong> <Task id={task_id}>{`a run of ${String(data.harness)}`}</Task>
    </>
  ),
  'run.progressed': ({ task_id, data }) => (
    <>
      <strong>heard</strong> <Task id={task_id}>the agent</Task>{' '}
      <span className="muted">
        turn {String(data.turns)}, {data.entries === 1 ? 'one entry' : `${data.entries} entries`}
      </span>
    </>
  ),
  'run.input': ({ task_id }) => (
    <>
      <strong>wrote</strong> to <Task id={task_id}>the agent</Task>
    </>
  ),
  'run.ended': ({ task_id, data }) => (
    <>
      <strong>saw the end</strong> of <Task id={task_id}>a run</Task>
      <Because text={data.detail || data.reason} />
    </>
  ),
  'budget.set': ({ task_id, data }) => (
    <>
      <strong>set</strong> <Task id={task_id}>the budget</Task>
      <Because text={amounts(data)} />
    </>
  ),
}

const ASKED: Record<string, string> = {
  start_agent: 'started an agent:',
  resume_agent: 'resumed the agent:',
  stop_agent: 'stopped the agent:',
  message_agent: 'wrote to the agent:',
  interrupt_agent: 'interrupted the agent:',
  run_checks: 'had the checks run:',
}

const ENDED: Record<string, string> = { succeeded: 'finished', failed: 'gave up', cancelled: 'cancelled' }

function Job({ event: { task_id, data } }: { event: LiveEvent }) {
  return (
    <Task id={task_id}>
      <span className="mono">{String(data.handle)}</span>
    </Task>
  )
}

/** A project's budget is of no task. */
function Task({ id, children }: { id: string | null; children: ReactNode }) {
  if (id === null) return children
  return (
    <Link to="/task/$task" params={{ task: id }}>
      {children}
    </Link>
  )
}

function Because({ text }: { text: unknown }) {
  if (typeof text !== 'string' || !text) return null
  return <span className="muted">: {visible(text).slice(0, 300)}</span>
}

function amounts(data: LiveEvent['data']): string {
  return METERS.flatMap((meter) => {
    const amount = data[meter]
    if (amount === undefined) return []
    const { label, show } = METER[meter]
    return `${label.toLowerCase()} ${amount === null ? 'without limit' : show(Number(amount))}`
  }).join(', ')
}
