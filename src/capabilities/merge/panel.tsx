import { GitMerge } from 'lucide-react'
import { definePanels, defineTaskSections } from '../../ui/panel.ts'
import { Lines } from './panel/lines.tsx'
import { TaskMerge } from './panel/task-merge.tsx'

export const panels = definePanels({ path: '/merges', title: 'Merges', component: Lines, nav: { icon: GitMerge, order: 1.4, key: 'l' } })

export const taskSections = defineTaskSections({ order: 8, needs: 'merge_status', component: TaskMerge })

export { sentences } from './panel/sentences.tsx'
