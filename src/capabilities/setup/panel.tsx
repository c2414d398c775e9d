import { defineTaskSections } from '../../ui/panel.ts'
import { SetupSection } from './panel/setup-section.tsx'

export const taskSections = defineTaskSections({ order: 13, needs: 'setup_get', component: SetupSection })

export { sentences } from './panel/sentences.tsx'
