import { SquareKanban } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { Board } from './panel/board.tsx'
import { TaskPage } from './panel/task-page.tsx'

export const panels = definePanels(
  { path: '/board', title: 'Board', component: Board, nav: { icon: SquareKanban, order: 1, key: 'b' } },
  { path: '/task/$task', title: 'Task', component: TaskPage },
)

export { sentences } from './panel/sentences.tsx'
