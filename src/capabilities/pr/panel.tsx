import { defineTaskSections } from '../../ui/panel.ts'
import { PullRequest } from './panel/pull-request.tsx'

/** Above what was said about it. */
export const taskSections = defineTaskSections({ tab: 'Reviews', order: 39, needs: 'pr_get', component: PullRequest })

export { sentences } from './panel/sentences.tsx'
