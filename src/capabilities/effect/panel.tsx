import { definePanels } from '../../ui/panel.ts'
import { Effects } from './panel/effects.tsx'

/** Reached from the activity when there is something to decide. */
export const panels = definePanels({ path: '/effects', title: 'Effects', component: Effects })

export { sentences } from './panel/sentences.tsx'
