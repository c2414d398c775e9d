import { CollisionPriority } from '@dnd-kit/abstract'
import { useDraggable, useDroppable } from '@dnd-kit/react'
import { Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ArrowRightLeft, MoreHorizontal, Terminal } from 'lucide-react'
import { useRef } from 'react'
import { Badge, type Tone } from '../../../ui/kit/badge.tsx'
import { Menu, MenuItem, MenuLabel } from '../../../ui/kit/menu.tsx'
import { Who } from '../../../ui/kit/who.tsx'
import { taskMenus } from '../../../ui/panels.ts'
import type { Status } from '../schema.ts'
import type { Task } from './board-data.ts'
import { attentionOf, COLUMNS, columnOf } from './words.ts'

interface ColumnProps {
  status: Status
  title: string
  tone: Tone
  tasks: Task[]
  /** What somebody holds in the air. */
  carried: Task | undefined
  /** There are older ones that are not shown. */
  more: boolean
  onMove(task: Task, to: Status): void
}

export function Column({ status, title, tone, tasks, carried, more, onMove }: ColumnProps) {
  const { ref, isDropTarget } = useDroppable({ id: status, collisionPriority: CollisionPriority.Low })
  const scroller = useRef<HTMLUListElement>(null)
  const virtual = useVirtualizer({
    count: tasks.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 96,
    getItemKey: (index) => tasks[index]?.id ?? index,
    overscan: 8,
    gap: 8,
  })
  const target = carried && carried.status !== status
  return (
    <section ref={ref} className={`column ${isDropTarget ? 'column-over' : ''} ${target ? 'column-target' : ''}`} aria-label={title}>
      <header className="column-head">
        <span className={`light tone-${tone}`} aria-hidden />
        <h2>{title}</h2>
        <span className="count">{tasks.length}</span>
      </header>
      <ul ref={scroller} className="column-cards">
        <li className="virtual-space" aria-hidden style={{ height: virtual.getTotalSize() }} />
        {virtual.getVirtualItems().map((row) => {
          const task = tasks[row.index] as Task
          return (
            <li
              key={row.key}
              ref={virtual.measureElement}
              data-index={row.index}
              className="virtual-row"
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <TaskCard task={task} onMove={onMove} />
            </li>
          )
        })}
      </ul>
      {more && <p className="column-more">Older ones: signalbox task list --status DONE</p>}
    </section>
  )
}

/** How to carry a card without a mouse; read out with its title. */
export const HOW_TO_CARRY = 'how-to-carry'

function TaskCard({ task, onMove }: { task: Task; onMove(task: Task, to: Status): void }) {
  const { ref, handleRef, isDragging } = useDraggable({ id: task.id, data: { task } })
  const attention = attentionOf(task)
  return (
    <article ref={ref} className={`task-card ${isDragging ? 'task-card-carried' : ''} priority-${task.priority}`} data-task={task.handle}>
      <header>
        <span className="mono muted">{task.handle}</span>
        {task.priority === 'high' && <Badge tone="red">high</Badge>}
        {task.task_type === 'PAIR' && (
          <Badge icon={Terminal} title="You and an agent in a terminal">
            pair
          </Badge>
        )}
        <MoveMenu task={task} onMove={onMove} />
      </header>
      <Link
        ref={handleRef}
        to="/task/$task"
        params={{ task: task.handle }}
        className="task-card-title"
        draggable={false}
        aria-describedby={HOW_TO_CARRY}
      >
        {task.title}
      </Link>
      <footer>
        {attention && (
          <Badge tone={attention.tone} icon={attention.icon} title={attention.title}>
            {attention.text}
            {task.attention_detail && <span className="visually-hidden">: {task.attention_detail}</span>}
          </Badge>
        )}
        {task.assignee_id && <Who id={task.assignee_id} />}
      </footer>
    </article>
  )
}

/** The same as carrying it, for whoever cannot or would rather not. */
export function MoveMenu({ task, onMove }: { task: Task; onMove(task: Task, to: Status): void }) {
  return (
    <Menu
      trigger={
        <button type="button" className="icon-button task-card-menu" aria-label={`Move ${task.handle}`}>
          <MoreHorizontal aria-hidden />
        </button>
      }
    >
      <MenuLabel>Move {task.handle} to</MenuLabel>
      {COLUMNS.filter(({ status }) => status !== task.status).map(({ status }) => (
        <MenuItem key={status} icon={ArrowRightLeft} onClick={() => onMove(task, status)}>
          {columnOf(status).title}
        </MenuItem>
      ))}
      {taskMenus().map((Items) => (
        <Items key={Items.name} task={task} />
      ))}
    </Menu>
  )
}
