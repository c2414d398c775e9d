import { Milestone } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { EpicPage } from './panel/epic-page.tsx'
import { Epics } from './panel/epics.tsx'

export const panels = definePanels(
  { path: '/epics', title: 'Epics', component: Epics, nav: { icon: Milestone, order: 1.2, key: 'e' } },
  { path: '/epic/$epic', title: 'Epic', component: EpicPage },
)

export { sentences } from './panel/sentences.tsx'
