import { Bot } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { Agents } from './panel/agents.tsx'

export const panels = definePanels({ path: '/agents', title: 'Agents', component: Agents, nav: { icon: Bot, order: 3, key: 'a' } })

export { sentences } from './panel/sentences.tsx'
