import { Milestone } from 'lucide-react'
import { definePanels, defineTaskSections } from '../../ui/panel.ts'
import { EpicPage } from './panel/epic-page.tsx'
import { Epics } from './panel/epics.tsx'
import { DecideTask } from './panel/queue.tsx'

export const panels = definePanels(
  { path: '/epics', title: 'Epics', component: Epics, nav: { icon: Milestone, order: 1.2, key: 'e' } },
  { path: '/epic/$epic', title: 'Epic', component: EpicPage },
)

export const taskSections = defineTaskSections({ tab: 'Reviews', order: 39, needs: 'review_decide', component: DecideTask })

export { sentences } from './panel/sentences.tsx'
