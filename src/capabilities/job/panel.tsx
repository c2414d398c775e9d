import { Gauge } from 'lucide-react'
import { definePanels, defineTaskSections } from '../../ui/panel.ts'
import { Agent } from './panel/agent.tsx'
import { Usage } from './panel/usage.tsx'
import { UsagePage } from './panel/usage-page.tsx'

export const panels = definePanels({ path: '/usage', title: 'Usage', component: UsagePage, nav: { icon: Gauge, order: 3.5, key: 'u' } })

export const taskSections = defineTaskSections(
  { order: 10, needs: 'job_list', component: Agent },
  { tab: 'Usage', order: 60, needs: 'run_list', component: Usage },
)

export { sentences } from './panel/sentences.tsx'
export { StartItem as taskMenu } from './panel/start-item.tsx'
