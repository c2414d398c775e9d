import { FilterSelect } from '../../../ui/kit/field.tsx'
import './board.css'
import { Accessibility, KeyboardSensor, PointerActivationConstraints, PointerSensor, StyleInjector } from '@dnd-kit/dom'
import { DragDropProvider } from '@dnd-kit/react'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { FolderKanban, Plus, Search, SquareKanban, X } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useHotkeys } from 'react-hotkeys-hook'
import { Button, IconButton } from '../../../ui/kit/button.tsx'
import { Page } from '../../../ui/kit/page.tsx'
import { SearchInput } from '../../../ui/kit/search.tsx'
import { Empty, Loaded } from '../../../ui/kit/states.tsx'
import { useEverybody } from '../../../ui/kit/who.tsx'
import { useAction, useTool } from '../../../ui/live.tsx'
import { nonce } from '../../../ui/nonce.ts'
import type { Status } from '../schema.ts'
import { type Task, useBoard, useOptimisticMove } from './board-data.ts'
import { CloseDialog } from './close-dialog.tsx'
import { Column, HOW_TO_CARRY } from './column.tsx'
import { NewTask } from './new-task.tsx'
import { COLUMNS, columnOf, inOrder } from './words.ts'

const ARROWS = { up: ['ArrowUp'], down: ['ArrowDown'], left: ['ArrowLeft'], right: ['ArrowRight'] }

interface Filter {
  project?: string
  q?: string
  assignee?: string
  attention?: string
}

export function Board() {
  const filter = useSearch({ strict: false }) as Filter
  const navigate = useNavigate()
  const setFilter = (change: Filter) => void navigate({ to: '/board', search: clean({ ...filter, ...change }), replace: true })
  const projects = useTool('project_list', { limit: 200 }).data?.projects
  const board = useBoard(filter.project)
  const [creating, setCreating] = useState(false)
  const search = useRef<HTMLInputElement>(null)
  useHotkeys('c', () => setCreating(true), { preventDefault: true })
  useHotkeys('slash', () => search.current?.focus(), { preventDefault: true, useKey: false })

  if (projects?.length === 0)
    return (
      <Empty icon={FolderKanban} title="Welcome. A project comes first.">
        <p>It holds the tasks that you hand out, and the repositories that they are about.</p>
        <Button kind="primary" icon={Plus} onClick={() => void navigate({ to: '/projects', search: { new: true } })}>
          Create a project
        </Button>
      </Empty>
    )
  return (
    <Page
      title="Board"
      wide
      actions={
        <>
          <Filters filter={filter} setFilter={setFilter} projects={projects ?? []} search={search} />
          <Button kind="primary" icon={Plus} onClick={() => setCreating(true)}>
            New task
          </Button>
        </>
      }
    >
      <Loaded read={board}>
        {(rows) => (
          <Columns
            all={rows.tasks}
            moreDone={rows.moreDone}
            filter={filter}
            clear={() => setFilter({ q: undefined, assignee: undefined, attention: undefined })}
            onNew={() => setCreating(true)}
          />
        )}
      </Loaded>
      <NewTask open={creating} onClose={() => setCreating(false)} projects={projects ?? []} project={filter.project} />
    </Page>
  )
}

interface FiltersProps {
  filter: Filter
  setFilter(change: Filter): void
  projects: { handle: string; name: string }[]
  search: React.RefObject<HTMLInputElement | null>
}

function Filters({ filter, setFilter, projects, search }: FiltersProps) {
  const agents = [...useEverybody().values()].filter((one) => one.kind === 'agent')
  const filtered = filter.q || filter.assignee || filter.attention
  return (
    <search className="filters">
      <SearchInput
        ref={search}
        label="Filter by title or number"
        value={filter.q ?? ''}
        onChange={(event) => setFilter({ q: event.target.value })}
      />
      <FilterSelect label="Project" value={filter.project} onChange={(project) => setFilter({ project })}>
        <option value="">All projects</option>
        {projects.map(({ handle, name }) => (
          <option key={handle} value={handle}>
            {name}
          </option>
        ))}
      </FilterSelect>
      <FilterSelect label="What moves it next" value={filter.attention} onChange={(attention) => setFilter({ attention })}>
        <option value="">Anything</option>
        <option value="human">Needs you</option>
        <option value="running">Running</option>
        <option value="stalled">Stalled</option>
        <option value="queued">Queued</option>
        <option value="reviewer">In review</option>
        <option value="merge">Merging</option>
        <option value="quota">Out of quota</option>
        <option value="dependency">Waiting</option>
      </FilterSelect>
      {agents.length > 0 && (
        <FilterSelect label="Agent" value={filter.assignee} onChange={(assignee) => setFilter({ assignee })}>
          <option value="">Anybody</option>
          {agents.map(({ id, handle }) => (
            <option key={id} value={id}>
              {handle}
            </option>
          ))}
        </FilterSelect>
      )}
      {filtered && (
        <IconButton
          icon={X}
          name="Clear the filter"
          onClick={() => setFilter({ q: undefined, assignee: undefined, attention: undefined })}
        />
      )}
    </search>
  )
}

const { Delay, Distance } = PointerActivationConstraints

/** A pointer carries a card by any part of it but its menu; the keyboard by its title, of which Enter still follows the link. */
const SENSORS = [
  PointerSensor.configure({
    activatorElements: (card) => [card.element],
    activationConstraints: ({ pointerType }) =>
      pointerType === 'touch' ? [new Delay({ value: 250, tolerance: 5 })] : [new Distance({ value: 5 })],
    preventActivation: (event) => event.target instanceof Element && event.target.closest('button') !== null,
  }),
  KeyboardSensor.configure({
    keyboardCodes: { ...ARROWS, start: ['Space'], cancel: ['Escape'], end: ['Space', 'Enter', 'Tab'] },
    // One arrow, one column, as wide as it is on this screen.
    offset: {
      get x() {
        const [first, second] = [...document.querySelectorAll('.column')].map((column) => column.getBoundingClientRect().left)
        return (second ?? 0) - (first ?? 0)
      },
      y: 0,
    },
  }),
]

interface ColumnsProps {
  all: Task[]
  moreDone: boolean
  filter: Filter
  clear(): void
  onNew(): void
}

function Columns({ all, moreDone, filter, clear, onNew }: ColumnsProps) {
  const [closing, setClosing] = useState<Task>()
  const [carried, setCarried] = useState<Task>()
  const [said, setSaid] = useState('')
  const shown = all.filter((task) => fits(task, filter))
  const begin = useOptimisticMove(filter.project)
  // By what was asked for: a second move may begin before the first is refused.
  const undo = useRef(new WeakMap<object, () => void>())
  const move = useAction('task_move', { onError: (_, input) => undo.current.get(input)?.() })

  // A card in another column is another element: without this the keyboard would be back at the top of the page.
  const focus = useRef<{ id: string; in: Status }>(undefined)
  useEffect(() => {
    const followed = all.find(({ id }) => id === focus.current?.id)
    if (followed?.status !== focus.current?.in) return
    focus.current = undefined
    if (followed) document.querySelector<HTMLElement>(`[data-task="${followed.handle}"] a`)?.focus()
  })

  const drop = (task: Task, to: Status) => {
    if (task.status === to) return
    if (to === 'DONE') return setClosing(task)
    const putBack = begin(task, to)
    const input = { task_id: task.id, status: to, expected_status: task.status }
    undo.current.set(input, () => {
      if (focus.current?.id === task.id) focus.current = { id: task.id, in: task.status }
      putBack()
    })
    move.mutate(input)
  }
  if (!all.length)
    return (
      <Empty icon={SquareKanban} title="No task yet.">
        <p>A task is a piece of work that one agent, or you with an agent, can finish and hand in for review.</p>
        <Button kind="primary" icon={Plus} onClick={onNew}>
          Create the first task
        </Button>
      </Empty>
    )
  if (!shown.length)
    return (
      <Empty icon={Search} title="No task fits the filter.">
        <Button onClick={clear}>Clear the filter</Button>
      </Empty>
    )
  return (
    <DragDropProvider
      sensors={SENSORS}
      plugins={(defaults) => [...defaults.filter((plugin) => plugin !== Accessibility), StyleInjector.configure({ nonce })]}
      onDragStart={({ operation }) => {
        const task = operation.source?.data.task as Task
        setCarried(task)
        setSaid(`${task.handle} is picked up.`)
      }}
      onDragOver={({ operation: { source, target } }) => {
        if (source && target) setSaid(`${(source.data.task as Task).handle} is over ${columnOf(target.id as Status).title}.`)
      }}
      onDragEnd={({ operation: { source, target, activatorEvent }, canceled }) => {
        setCarried(undefined)
        const task = source?.data.task as Task
        const to = canceled ? task.status : ((target?.id as Status | undefined) ?? task.status)
        setSaid(`${task.handle} is put down in ${columnOf(to).title}.`)
        if (activatorEvent instanceof KeyboardEvent) focus.current = { id: task.id, in: to }
        drop(task, to)
      }}
    >
      {/* The library's own words would make a button of each card, with a link and a button inside. */}
      <p id={HOW_TO_CARRY} hidden>
        Space picks the task up, the arrows carry it to another column, Space puts it down, Escape puts it back.
      </p>
      <p className="visually-hidden" role="status">
        {said}
      </p>
      <div className="board">
        {COLUMNS.map((column) => (
          <Column
            key={column.status}
            {...column}
            tasks={inOrder(shown, column.status)}
            carried={carried}
            more={column.status === 'DONE' && moreDone}
            onMove={drop}
          />
        ))}
      </div>
      <CloseDialog task={closing} onClose={() => setClosing(undefined)} />
    </DragDropProvider>
  )
}

function fits(task: Task, { q, assignee, attention }: Filter): boolean {
  const words = (q ?? '').toLowerCase().split(/\s+/).filter(Boolean)
  const text = `${task.handle} ${task.title}`.toLowerCase()
  return (
    words.every((word) => text.includes(word)) &&
    (!assignee || task.assignee_id === assignee) &&
    (!attention || task.attention === attention)
  )
}

/** An empty field is no filter, and does not stand in the address. */
function clean(filter: Filter): Filter {
  return Object.fromEntries(Object.entries(filter).filter(([, value]) => value))
}
