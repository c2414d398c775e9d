import { defineTaskSections } from '../../ui/panel.ts'
import { PreviewSection } from './panel/preview-section.tsx'

export const taskSections = defineTaskSections({ order: 15, needs: 'preview_get', component: PreviewSection })

export { sentences } from './panel/sentences.tsx'
