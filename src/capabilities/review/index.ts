import { defineCapability } from '../../kernel/capability.ts'
import type { Tx } from '../../kernel/storage.ts'
import { migrations } from './migrations.ts'
import { reviewStore } from './store.ts'
import { list, request, reviewRequested } from './tools.ts'

export const review = defineCapability({ name: 'review', tools: [request, list], migrations, events: [reviewRequested] })

/** All rounds of a task, oldest first. */
export const reviewsOf = (tx: Tx, task: string) => reviewStore(tx).ofTask(task)

export { requestReview, reviewRequested } from './tools.ts'
