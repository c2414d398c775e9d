import { BellRing } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { NeedCount, Needs } from './panel/needs.tsx'

export const panels = definePanels({
  path: '/needs',
  title: 'For you',
  component: Needs,
  nav: { icon: BellRing, order: 1.1, key: 'n', count: NeedCount },
})
