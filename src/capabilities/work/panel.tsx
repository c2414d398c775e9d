import { defineTaskSections } from '../../ui/panel.ts'
import { Changes } from './panel/changes.tsx'

export const taskSections = defineTaskSections({ tab: 'Changes', order: 30, needs: 'diff_get', component: Changes })

export { sentences } from './panel/sentences.tsx'
