import './needs.css'
import { Link } from '@tanstack/react-router'
import { Coffee } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { visible } from '../../../ui/kit/plain.ts'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useTool } from '../../../ui/live.tsx'

type Answer = Output<'need_list'>
type Need = Answer['needs'][number]
type Kind = Answer['kinds'][number]

const FOLLOWS = ['task', 'job', 'run', 'approval', 'mail', 'merge', 'line', 'review', 'session', 'epic', 'effect', 'repo']
/** Agents print all the time, and every open task is looked at. */
const REST_MS = 1_500
const PAGE = 50
const MOST = 200

/** Everything that does not go on without the person who looks. */
export function Needs() {
  const [limit, setLimit] = useState(PAGE)
  const needs = useTool('need_list', { limit }, { follows: FOLLOWS, rests: REST_MS })
  return (
    <Page title="For you" subtitle="Waiting for you, most urgent first.">
      <Loaded read={needs}>
        {({ kinds, needs, total, next }) =>
          total ? (
            <>
              {kinds.map((kind) => (
                <OfKind key={kind.kind} kind={kind} needs={needs.filter((need) => need.kind === kind.kind)} />
              ))}
              {next !== null && limit < MOST && <Button onClick={() => setLimit(Math.min(limit * 2, MOST))}>Show more</Button>}
              {next !== null && limit >= MOST && <p className="muted">Handle these first; more follow.</p>}
            </>
          ) : (
            <Empty icon={Coffee} title="Nothing needs you.">
              <p>Questions from agents, work to review, letters and held merge lines appear here.</p>
            </Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function OfKind({ kind: { title, count, urgency }, needs }: { kind: Kind; needs: Need[] }) {
  if (!needs.length) return null
  return (
    <Card title={title} actions={<Badge tone={urgency === 'later' ? 'neutral' : 'amber'}>{count}</Badge>}>
      <ul className="needs" aria-label={title}>
        {needs.map((need) => (
          <li key={need.id}>
            <NeedLink need={need} />
            {need.by && <span className="muted">{need.by}</span>}
            <span className="muted">
              <Time at={need.began_at} />
            </span>
            {need.detail && <p className="muted">{visible(need.detail)}</p>}
          </li>
        ))}
      </ul>
    </Card>
  )
}

/** Where each kind is seen to. One that another capability brings is text, unless it is about a task. */
const PLACES: Record<string, string> = { permission: '/approvals', letter: '/mail', line: '/merges', branch: '/merges' }

function NeedLink({ need: { kind, handle, title, task_id } }: { need: Need }) {
  const text = (
    <>
      {handle && <span className="mono">{handle}</span>} {visible(title)}
    </>
  )
  if (PLACES[kind]) return <Link to={PLACES[kind]}>{text}</Link>
  if (task_id === null) return <span>{text}</span>
  return (
    <Link to="/task/$task" params={{ task: handle ?? task_id }}>
      {text}
    </Link>
  )
}

/** Beside the name of the page: what only may be begun is not counted. */
export function NeedCount() {
  const kinds = useTool('need_list', { limit: 1 }, { follows: FOLLOWS, rests: REST_MS }).data?.kinds ?? []
  const count = kinds.reduce((sum, kind) => (kind.urgency === 'later' ? sum : sum + kind.count), 0)
  if (!count) return null
  return (
    <span className="side-count">
      {count}
      <span className="visually-hidden"> to see to</span>
    </span>
  )
}
