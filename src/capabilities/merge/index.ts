import { defineCapability } from '../../kernel/capability.ts'
import { mergeWork } from './effects.ts'
import { conflict, merged, stuck } from './reports.ts'
import { reviewConflicted, reviewDecided, reviewMerged, reviewStuck } from './schema.ts'
import { decide, queue } from './tools.ts'

/** What becomes of work that was handed in: decisions about it, and its merge. */
export const merge = defineCapability({
  name: 'merge',
  tools: [queue, decide, merged, conflict, stuck],
  events: [reviewDecided, reviewMerged, reviewConflicted, reviewStuck],
  effects: [mergeWork],
})

export { reviewAttention } from './attention.ts'
export { isCurrent } from './rules.ts'
export { reviewConflicted, reviewDecided, reviewMerged, reviewStuck } from './schema.ts'
