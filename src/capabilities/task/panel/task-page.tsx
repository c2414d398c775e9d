import './task-page.css'
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router'
import { ArrowLeft, CheckCheck, Pencil, Send, Trash2 } from 'lucide-react'
import { Fragment, useState } from 'react'
import { useForm } from 'react-hook-form'
import type { Output } from '../../../ui/client.ts'
import { Badge } from '../../../ui/kit/badge.tsx'
import { Button } from '../../../ui/kit/button.tsx'
import { Confirm } from '../../../ui/kit/dialog.tsx'
import { TextArea } from '../../../ui/kit/field.tsx'
import { Markdown } from '../../../ui/kit/markdown.tsx'
import { Card, Page } from '../../../ui/kit/page.tsx'
import { Loaded } from '../../../ui/kit/states.tsx'
import { Tabs } from '../../../ui/kit/tabs.tsx'
import { Time } from '../../../ui/kit/time.tsx'
import { useEverybody, Who } from '../../../ui/kit/who.tsx'
import { useAction, useMay, useTool } from '../../../ui/live.tsx'
import type { TaskOnPage, TaskSection } from '../../../ui/panel.ts'
import { taskSections } from '../../../ui/panels.ts'
import { EventLine } from '../../../ui/shell/event-line.tsx'
import type { Status } from '../schema.ts'
import { CloseDialog } from './close-dialog.tsx'
import { EditTask } from './edit-task.tsx'
import { attentionOf, COLUMNS, columnOf } from './words.ts'

export type FullTask = TaskOnPage

export function TaskPage() {
  const { task } = useParams({ strict: false }) as { task: string }
  const context = useTool('task_context', { task_id: task }, { follows: ['task', 'agent', 'job', 'review', 'budget', 'approval'] })
  // A tab that turns out not to be there must not have been open for a moment.
  const known = useMay()('task_context') !== undefined
  return (
    <Loaded read={{ ...context, data: known ? context.data : undefined }}>
      {(found) => <TaskView key={found.task.id} context={found} />}
    </Loaded>
  )
}

function TaskView({ context: { task, project, history } }: { context: Output<'task_context'> }) {
  const [editing, setEditing] = useState(false)
  const sections = useSections()
  const [open, openTab] = useTab(task, tabsOf(sections))
  const show = (shown: TaskSection[]) =>
    shown.map(({ component: Section, order, needs }) => <Section key={`${order} ${needs}`} task={task} openTab={openTab} />)
  const column = columnOf(task.status)
  const attention = attentionOf(task)
  return (
    <Page
      title={task.title}
      subtitle={
        <>
          <Link to="/board" search={{ project: project.handle }} className="back">
            <ArrowLeft aria-hidden /> {project.name}
          </Link>{' '}
          · <span className="mono">{task.handle}</span>
        </>
      }
      actions={
        <>
          <Badge tone={column.tone}>{column.title}</Badge>
          {attention && (
            <Badge tone={attention.tone} icon={attention.icon} title={attention.title}>
              {attention.text}
            </Badge>
          )}
          <Button icon={Pencil} onClick={() => setEditing(true)}>
            Edit
          </Button>
        </>
      }
    >
      <div className="task-page">
        <div className="task-main">
          {show(sections.filter(({ tab }) => !tab))}
          <Tabs
            label={task.handle}
            open={open}
            onOpen={openTab}
            tabs={[
              { id: OVERVIEW, title: OVERVIEW, content: <Overview task={task} history={history} />, keep: true },
              ...tabsOf(sections).map((tab) => ({
                id: tab,
                title: tab,
                content: <Fragment key={tab}>{show(sections.filter((section) => section.tab === tab))}</Fragment>,
              })),
            ]}
          />
        </div>
        <Facts task={task} />
      </div>
      <EditTask task={task} open={editing} onClose={() => setEditing(false)} />
    </Page>
  )
}

const OVERVIEW = 'Overview'

/** Which tab is open stands in the address. */
function useTab(task: FullTask, tabs: string[]): [string, (tab: string) => void] {
  const { tab } = useSearch({ strict: false }) as { tab?: string }
  const navigate = useNavigate()
  const open = (next: string) =>
    void navigate({
      to: '/task/$task',
      params: { task: task.handle },
      search: next === OVERVIEW ? {} : { tab: next },
      replace: true,
      resetScroll: false,
    })
  return [tabs.find((name) => name === tab) ?? OVERVIEW, open]
}

function useSections(): TaskSection[] {
  const may = useMay()
  return taskSections().filter(({ needs }) => may(needs))
}

function tabsOf(sections: TaskSection[]): string[] {
  return [...new Set(sections.flatMap(({ tab }) => tab ?? []))]
}

function Overview({ task, history }: { task: FullTask; history: Output<'task_context'>['history'] }) {
  return (
    <>
      <Card title="Description">
        <div className="card-body">
          {task.description ? <Markdown text={task.description} /> : <p className="muted">Nothing was written yet.</p>}
        </div>
      </Card>
      {task.acceptance_criteria.length > 0 && (
        <Card title="Acceptance criteria">
          <ul className="criteria card-body">
            {task.acceptance_criteria.map((criterion) => (
              <li key={criterion}>
                <CheckCheck aria-hidden /> {criterion}
              </li>
            ))}
          </ul>
        </Card>
      )}
      <Notes task={task} />
      <Card title="History">
        <ul className="card-body history">
          {history.reverse().map((event) => (
            <li key={event.cursor}>
              <EventLine event={event} />
            </li>
          ))}
        </ul>
      </Card>
    </>
  )
}

function Notes({ task }: { task: FullTask }) {
  const { register, handleSubmit, reset, formState } = useForm<{ body: string }>()
  const note = useAction('task_note', { onSuccess: () => reset() })
  return (
    <Card title={`Notes (${task.note_count})`}>
      <ul className="notes">
        {task.notes.map(({ id, author, body, at }) => (
          <li key={id}>
            <p className="note-head">
              <Who id={author} />{' '}
              <span className="muted">
                <Time at={at} />
              </span>
            </p>
            <Markdown text={body} />
          </li>
        ))}
      </ul>
      {task.note_count > task.notes.length && (
        <p className="card-body muted">
          The latest {task.notes.length} of {task.note_count} are shown.
        </p>
      )}
      <form className="form card-body" onSubmit={handleSubmit(({ body }) => note.mutate({ task_id: task.id, body }))}>
        <TextArea
          label="Write a note"
          rows={3}
          placeholder="Markdown. Everybody who works on this task reads it."
          error={formState.errors.body?.message}
          {...register('body', { validate: (text) => text.trim() !== '' || 'Write something first.' })}
        />
        <div className="actions">
          <Button kind="primary" type="submit" icon={Send} busy={note.isPending}>
            Add the note
          </Button>
        </div>
      </form>
    </Card>
  )
}

function Facts({ task }: { task: FullTask }) {
  const navigate = useNavigate()
  const agents = [...useEverybody().values()].filter((one) => one.kind === 'agent')
  const [closing, setClosing] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const move = useAction('task_move')
  const assign = useAction('task_assign')
  const remove = useAction('task_delete', {
    said: ({ handle }) => `${handle} was deleted.`,
    onSuccess: () => void navigate({ to: '/board' }),
  })
  const to = (status: Status) =>
    status === 'DONE' ? setClosing(true) : move.mutate({ task_id: task.id, status, expected_status: task.status })
  return (
    <aside className="task-side">
      <Card title="Status">
        <div className="card-body task-moves">
          {COLUMNS.map(({ status, title }) => (
            <Button
              key={status}
              kind={status === task.status ? 'primary' : 'plain'}
              aria-pressed={status === task.status}
              disabled={status === task.status}
              onClick={() => to(status)}
            >
              {title}
            </Button>
          ))}
        </div>
        {task.closed_reason && <p className="card-body closed">Closed: {task.closed_reason}</p>}
      </Card>
      <Card title="Details">
        <dl className="card-body facts">
          <dt>Agent</dt>
          <dd>
            <select
              className="input select"
              aria-label="Agent"
              value={task.assignee_id ?? ''}
              disabled={task.status === 'DONE'}
              onChange={(event) => assign.mutate({ task_id: task.id, agent_id: event.target.value || null })}
            >
              <option value="">Nobody</option>
              {agents.map(({ id, handle }) => (
                <option key={id} value={id}>
                  {handle}
                </option>
              ))}
            </select>
          </dd>
          <dt>Priority</dt>
          <dd>{task.priority}</dd>
          <dt>Type</dt>
          <dd>{task.task_type === 'AUTO' ? 'Auto: an agent by itself' : 'Pair: you and an agent'}</dd>
          {task.base_branch && (
            <>
              <dt>Base branch</dt>
              <dd className="mono">{task.base_branch}</dd>
            </>
          )}
          <References name="Waits for" tasks={task.dependencies} />
          <References name="Holds up" tasks={task.dependents} />
          <dt>Created</dt>
          <dd>
            <Time at={task.created_at} /> by <Who id={task.created_by} />
          </dd>
          <dt>Changed</dt>
          <dd>
            <Time at={task.updated_at} />
          </dd>
        </dl>
      </Card>
      <Button kind="quiet" icon={Trash2} onClick={() => setDeleting(true)}>
        Delete the task
      </Button>
      <CloseDialog task={closing ? task : undefined} onClose={() => setClosing(false)} />
      <Confirm
        open={deleting}
        onClose={() => setDeleting(false)}
        title={`Delete ${task.handle}?`}
        description="It leaves the board for good. What it changed stays in the log."
        action="Delete"
        busy={remove.isPending}
        onConfirm={() => remove.mutate({ task_id: task.id })}
      />
    </aside>
  )
}

function References({ name, tasks }: { name: string; tasks: FullTask['dependencies'] }) {
  if (!tasks.length) return null
  return (
    <>
      <dt>{name}</dt>
      <dd className="references">
        {tasks.map(({ id, handle, status }) => (
          <Link key={id} to="/task/$task" params={{ task: handle }} title={columnOf(status).title}>
            <Badge tone={columnOf(status).tone}>{handle}</Badge>
          </Link>
        ))}
      </dd>
    </>
  )
}
