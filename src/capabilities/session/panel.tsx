import { defineTaskSections } from '../../ui/panel.ts'
import { TerminalSection } from './panel/terminal.tsx'

export const taskSections = defineTaskSections({ order: 14, needs: 'session_exists', component: TerminalSection })

export { sentences } from './panel/sentences.tsx'
