import { ShieldQuestionMark } from 'lucide-react'
import { definePanels, defineTaskSections } from '../../ui/panel.ts'
import { Approvals, PendingCount } from './panel/approvals.tsx'
import { TaskApprovals } from './panel/task-approvals.tsx'

export const panels = definePanels({
  path: '/approvals',
  title: 'Approvals',
  component: Approvals,
  nav: { icon: ShieldQuestionMark, order: 1.5, key: 'r', count: PendingCount },
})

export const taskSections = defineTaskSections({ order: 12, needs: 'approval_list', component: TaskApprovals })

export { sentences } from './panel/sentences.tsx'
