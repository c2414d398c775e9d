import { defineTaskSections } from '../../ui/panel.ts'
import { Reviews } from './panel/reviews.tsx'

export const taskSections = defineTaskSections({ tab: 'Reviews', order: 40, needs: 'review_list', component: Reviews })

export { sentences } from './panel/sentences.tsx'
