import './agents.css'
import { Link } from '@tanstack/react-router'
import { Bot, Crown, Play, Square, UserPlus, UserRound } from 'lucide-react'
import { useState } from 'react'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { Table } from '../../../ui/kit/table.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { Toggle } from '../../../ui/kit/toggle.tsx'
import { useAction, useAll, useMay, useTool } from '../../../ui/live.tsx'
import { InviteAgent } from './invite-agent.tsx'
import { NamePerson } from './name-person.tsx'
import { type Issued, SecretDialog } from './secret-dialog.tsx'
import { Tokens } from './tokens.tsx'
import { type Agent, STATES } from './words.ts'

/** Every few lines of an agent are an event of its run. */
const REST_MS = 2_000

export function Agents() {
  const me = useTool('agent_me', {}).data
  const people = useTool('person_list', {})
  const agents = useAll('agent_list', {}, 'after', { follows: ['agent', 'token', 'task', 'job', 'run'], rests: REST_MS })
  const [inviting, setInviting] = useState(false)
  const [naming, setNaming] = useState(false)
  const [issued, setIssued] = useState<Issued>()
  const owner = people.data?.people.some((person) => person.owner && person.id === me?.id)
  return (
    <Page
      title="Agents"
      subtitle="Who may do something here, and with which token."
      actions={
        <>
          {owner && (
            <Button icon={UserPlus} onClick={() => setNaming(true)}>
              Name a person
            </Button>
          )}
          <Button kind="primary" icon={Bot} onClick={() => setInviting(true)}>
            Invite an agent
          </Button>
        </>
      }
    >
      <Loaded read={agents}>
        {(pages) => <AgentsCard agents={pages.flatMap((page) => page.agents)} onInvite={() => setInviting(true)} />}
      </Loaded>
      <Loaded read={people}>{({ people: all }) => <PeopleCard people={all} />}</Loaded>
      <Tokens onIssued={setIssued} me={me?.id} />
      <InviteAgent open={inviting} onClose={() => setInviting(false)} onIssued={setIssued} />
      <NamePerson open={naming} onClose={() => setNaming(false)} onIssued={setIssued} />
      <SecretDialog issued={issued} onClose={() => setIssued(undefined)} />
    </Page>
  )
}

function AgentsCard({ agents, onInvite }: { agents: Agent[]; onInvite(): void }) {
  const [all, setAll] = useState(false)
  const projects = useTool('project_list', { limit: 200 }).data?.projects ?? []
  const stopped = agents.filter((agent) => agent.state === 'STOPPED').length
  const shown = all ? agents : agents.filter((agent) => agent.state !== 'STOPPED')
  if (!agents.length)
    return (
      <Card title="Agents">
        <Empty icon={Bot} title="No agent yet.">
          <p>An agent has a name, a role and a token of its own, and writes only where its task is.</p>
          <Button kind="primary" icon={Bot} onClick={onInvite}>
            Invite the first one
          </Button>
        </Empty>
      </Card>
    )
  return (
    <Card
      title={`Agents (${agents.length - stopped})`}
      actions={stopped > 0 && <Toggle on={all} onChange={setAll} word={`stopped (${stopped})`} />}
    >
      {shown.length === 0 && <p className="card-body muted">All are stopped: none has a token that works.</p>}
      {shown.length > 0 && (
        <Table
          label="Agents"
          rows={shown}
          keyOf={(agent) => agent.id}
          columns={[
            {
              title: 'Agent',
              show: ({ handle, name }) => <Name icon={Bot} handle={handle} name={name} />,
            },
            { title: 'Role', show: ({ role }) => role },
            { title: 'Profile', show: ({ profile }) => profile.replace('_', ' ') },
            { title: 'State', show: ({ state }) => <Badge tone={STATES[state].tone}>{STATES[state].text}</Badge> },
            { title: 'Task', show: ({ task_id }) => (task_id ? <CurrentTask id={task_id} /> : <span className="muted">–</span>) },
            {
              title: 'Project',
              show: ({ project_id }) => projects.find(({ id }) => id === project_id)?.name ?? <span className="muted">any</span>,
            },
            {
              title: 'Last active',
              show: ({ last_active_at }) => <span className="muted">{last_active_at ? <Time at={last_active_at} /> : 'never'}</span>,
            },
            { title: 'Start or stop', actions: true, show: (agent) => <StartStop agent={agent} /> },
          ]}
        />
      )}
    </Card>
  )
}

/** Only of those that Signalbox runs; the others are in windows of their own. */
function StartStop({ agent: { id, handle, managed, state, task_id } }: { agent: Agent }) {
  const may = useMay()
  const start = useAction('agent_start', { said: ({ message }) => `${handle}: ${message}` })
  const stop = useAction('agent_stop', { said: ({ message }) => `${handle}: ${message}` })
  if (!managed || !may('agent_start')) return null
  const runs = state === 'BUSY' || state === 'STARTING' || state === 'PAUSED'
  if (runs)
    return (
      <Button kind="quiet" icon={Square} aria-label={`Stop ${handle}`} busy={stop.isPending} onClick={() => stop.mutate({ agent_id: id })}>
        Stop
      </Button>
    )
  if (!task_id || state === 'WAITING_REVIEW') return null
  return (
    <Button kind="quiet" icon={Play} aria-label={`Start ${handle}`} busy={start.isPending} onClick={() => start.mutate({ agent_id: id })}>
      Start
    </Button>
  )
}

/** By its number, once it is known; an id leads there as well. */
function CurrentTask({ id }: { id: string }) {
  const tasks = useTool('task_list', { status: ['IN_PROGRESS', 'REVIEW'], limit: 200, order: 'newest' }).data?.tasks
  const task = tasks?.find((one) => one.id === id)
  return (
    <Link to="/task/$task" params={{ task: task?.handle ?? id }} title={task?.title}>
      {task?.handle ?? 'its task'}
    </Link>
  )
}

function PeopleCard({ people }: { people: Output<'person_list'>['people'] }) {
  return (
    <Card title={`People (${people.length})`}>
      <Table
        label="People"
        rows={people}
        keyOf={(person) => person.id}
        columns={[
          { title: 'Person', show: ({ handle, name }) => <Name icon={UserRound} handle={handle} name={name} /> },
          { title: 'Profile', show: ({ profile }) => profile.replace('_', ' ') },
          {
            title: 'Standing',
            show: ({ owner }) =>
              owner ? (
                <Badge tone="green" icon={Crown} title="Installed this Signalbox, and names the others">
                  owner
                </Badge>
              ) : (
                <span className="muted">–</span>
              ),
          },
          {
            title: 'Since',
            show: ({ created_at }) => (
              <span className="muted">
                <Time at={created_at} />
              </span>
            ),
          },
        ]}
      />
    </Card>
  )
}

function Name({ icon: Icon, handle, name }: { icon: typeof Bot; handle: string; name: string }) {
  return (
    <span className="holder">
      <Icon aria-hidden /> <strong>{handle}</strong> {name.toLowerCase() !== handle && <span className="muted">{name}</span>}
    </span>
  )
}
