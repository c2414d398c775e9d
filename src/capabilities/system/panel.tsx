import { Settings as Gear, Activity as Pulse } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { Activity } from './panel/activity.tsx'
import { Settings } from './panel/settings.tsx'

export const panels = definePanels(
  { path: '/activity', title: 'Activity', component: Activity, nav: { icon: Pulse, order: 4, key: 'v' } },
  { path: '/settings', title: 'Settings', component: Settings, nav: { icon: Gear, order: 5, key: 's' } },
)

export { sentences } from './panel/sentences.tsx'
