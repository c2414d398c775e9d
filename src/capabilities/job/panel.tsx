import { defineTaskSections } from '../../ui/panel.ts'
import { Agent } from './panel/agent.tsx'
import { Usage } from './panel/usage.tsx'

export const taskSections = defineTaskSections(
  { order: 10, needs: 'job_list', component: Agent },
  { tab: 'Usage', order: 60, needs: 'run_list', component: Usage },
)

export { sentences } from './panel/sentences.tsx'
export { StartItem as taskMenu } from './panel/start-item.tsx'
