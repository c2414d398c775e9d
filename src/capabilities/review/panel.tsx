import { defineTaskSections } from '../../ui/panel.ts'
import { Review } from './panel/decide.tsx'
import { Reviews } from './panel/reviews.tsx'

export const taskSections = defineTaskSections(
  { order: 9, needs: 'review_list', component: Review },
  { tab: 'Reviews', order: 40, needs: 'review_list', component: Reviews },
)

export { sentences } from './panel/sentences.tsx'
