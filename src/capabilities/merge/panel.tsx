import { GitMerge } from 'lucide-react'
import { definePanels, defineTaskSections } from '../../ui/panel.ts'
import { Lines } from './panel/lines.tsx'
import { Review } from './panel/review.tsx'

export const panels = definePanels({ path: '/merges', title: 'Merges', component: Lines, nav: { icon: GitMerge, order: 1.4, key: 'l' } })

export const taskSections = defineTaskSections({ order: 8, needs: 'review_list', component: Review })

export { sentences } from './panel/sentences.tsx'
