import './epics.css'
import { Link, useParams } from '@tanstack/react-router'
import { ArrowLeft, CircleCheck, Pause, Play, XCircle } from 'lucide-react'
import { useState } from 'react'
import type { Input, Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import { Progress } from './progress.tsx'
import { Queue } from './queue.tsx'
import { type FullEpic, STATES } from './words.ts'

type State = NonNullable<Input<'epic_update'>['state']>

export function EpicPage() {
  const { epic } = useParams({ strict: false }) as { epic: string }
  const read = useTool('epic_get', { epic_id: epic }, { follows: ['epic', 'task', 'job', 'review'] })
  return <Loaded read={read}>{(found) => <EpicView key={found.epic.id} {...found} />}</Loaded>
}

function EpicView({ epic, tasks }: Output<'epic_get'>) {
  return (
    <Page
      title={epic.title}
      subtitle={
        <>
          <Link to="/epics" className="back">
            <ArrowLeft aria-hidden /> Epics
          </Link>{' '}
          · <span className="mono">{epic.handle}</span>
        </>
      }
      actions={<Moves epic={epic} />}
    >
      <Card title="Progress">
        <div className="card-body form">
          <Progress progress={epic.progress} />
          <Facts epic={epic} />
          {epic.description && <Markdown text={epic.description} />}
        </div>
      </Card>
      <Queue epic={epic.id} />
      <Tasks tasks={tasks} />
    </Page>
  )
}

function Facts({ epic }: { epic: FullEpic }) {
  return (
    <dl className="epic-facts">
      <dt>Supervisor</dt>
      <dd>
        {epic.supervisor_id ? <Who id={epic.supervisor_id} /> : <span className="muted">nobody yet</span>}
        {epic.lead_task_id && (
          <>
            {' '}
            <Link to="/task/$task" params={{ task: epic.lead_task_id }}>
              what it does
            </Link>
          </>
        )}
      </dd>
      <dt>Workers</dt>
      <dd>at most {epic.max_workers} at a time</dd>
      <dt>Branch</dt>
      <dd className="mono">{epic.branch}</dd>
      <dt>From and to</dt>
      <dd className="mono">{epic.base_branch}</dd>
      {epic.state === 'REVIEW' && <PullRequest epic={epic.id} />}
    </dl>
  )
}

function PullRequest({ epic }: { epic: string }) {
  const pr = useTool('pr_get', { epic_id: epic }, { follows: ['pr', 'epic'] }).data?.pr
  if (!pr) return null
  return (
    <>
      <dt>Pull request</dt>
      <dd>
        {pr.number}: {pr.title}
      </dd>
    </>
  )
}

/** What a person can do with it in its state; the first is what it waits for. */
const MOVES: Record<FullEpic['state'], { to: State; text: string; icon: typeof Play; firm?: string }[]> = {
  PLANNING: [{ to: 'IN_PROGRESS', text: 'Start', icon: Play }],
  IN_PROGRESS: [{ to: 'PLANNING', text: 'Start nobody new', icon: Pause }],
  REVIEW: [
    { to: 'COMPLETED', text: 'It is merged', icon: CircleCheck },
    { to: 'IN_PROGRESS', text: 'Go on with it', icon: Play },
  ],
  COMPLETED: [],
  CANCELLED: [],
}

function Moves({ epic }: { epic: FullEpic }) {
  const may = useMay()
  const [cancelling, setCancelling] = useState(false)
  const [unmerged, setUnmerged] = useState<string>()
  const move = useAction('epic_update', {
    onSuccess: () => setUnmerged(undefined),
    onError: ({ body }, { state }) => setUnmerged(state === 'COMPLETED' && body.code === 'CONFLICT' ? body.message : undefined),
  })
  const open = epic.state !== 'COMPLETED' && epic.state !== 'CANCELLED'
  return (
    <>
      <Badge tone={STATES[epic.state].tone}>{STATES[epic.state].text}</Badge>
      {may('epic_update') &&
        MOVES[epic.state].map(({ to, text, icon }, i) => (
          <Button
            key={to}
            kind={i === 0 ? 'primary' : 'plain'}
            icon={icon}
            busy={move.isPending && move.variables?.state === to}
            onClick={() => move.mutate({ epic_id: epic.id, state: to })}
          >
            {text}
          </Button>
        ))}
      {may('epic_update') && open && (
        <Button icon={XCircle} onClick={() => setCancelling(true)}>
          Cancel
        </Button>
      )}
      <Confirm
        open={unmerged !== undefined}
        onClose={() => setUnmerged(undefined)}
        title={`Is ${epic.handle} merged?`}
        description={`${unmerged} Merge it first. If it was merged where this repository does not show it, it can be completed all the same.`}
        action="It was merged elsewhere"
        busy={move.isPending}
        onConfirm={() => move.mutate({ epic_id: epic.id, state: 'COMPLETED', merged_elsewhere: true })}
      />
      <Confirm
        open={cancelling}
        onClose={() => setCancelling(false)}
        title={`Cancel ${epic.handle}?`}
        description="Its open tasks are closed, and whoever works on them is stopped. What they did stays on their branches. It cannot be begun again."
        action="Cancel the epic"
        busy={move.isPending}
        onConfirm={() => move.mutate({ epic_id: epic.id, state: 'CANCELLED' }, { onSuccess: () => setCancelling(false) })}
      />
    </>
  )
}

function Tasks({ tasks }: Pick<Output<'epic_get'>, 'tasks'>) {
  if (!tasks.length) return null
  return (
    <Card title={`Tasks (${tasks.length})`}>
      <Table
        label="Tasks of the epic"
        rows={tasks}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Task',
            show: ({ handle, title }) => (
              <Link to="/task/$task" params={{ task: handle }} className="epic-name">
                <span>{title}</span> <span className="mono muted">{handle}</span>
              </Link>
            ),
          },
          { title: 'Status', show: ({ status }) => status.toLowerCase().replace('_', ' ') },
          {
            title: 'Next',
            show: ({ attention, attention_detail }) => <span title={attention_detail ?? undefined}>{attention ?? '–'}</span>,
          },
          { title: 'Worker', show: ({ assignee_id }) => (assignee_id ? <Who id={assignee_id} /> : <span className="muted">–</span>) },
        ]}
      />
    </Card>
  )
}
