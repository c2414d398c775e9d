import { Mail } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { Inbox, UnreadCount } from './panel/inbox.tsx'
import { Thread } from './panel/thread.tsx'

export const panels = definePanels(
  { path: '/mail', title: 'Mail', component: Inbox, nav: { icon: Mail, order: 1.7, key: 'm', count: UnreadCount } },
  { path: '/mail/$thread', title: 'Letters', component: Thread },
)

export { sentences } from './panel/sentences.tsx'
