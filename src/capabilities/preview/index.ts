import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { launchPreview, stopPreview } from './effects.ts'
import { follower } from './follow.ts'
import { migrations } from './migrations.ts'
import { ended, ready, started } from './reports.ts'
import { HOURS, MINUTES } from './rules.ts'
import { PREVIEW_STATES, previewEnded, previewReady, previewStarted, previewStarting } from './schema.ts'
import { get, list, start, stop } from './tools.ts'

export const preview = defineCapability({
  name: 'preview',
  tools: [start, stop, get, list, started, ready, ended],
  migrations,
  values: { previews: { state: PREVIEW_STATES } },
  events: [previewStarting, previewStarted, previewReady, previewEnded],
  effects: [launchPreview, stopPreview],
  reactors: [follower],
  settings: {
    [HOURS]: setting(z.number().min(0.01).max(720), 12, 'How long a preview may run, in hours'),
    [MINUTES]: setting(z.number().min(0.01).max(120), 5, 'How long the program of a preview may take until it answers, in minutes'),
  },
})

export { askToStop as stopPreviewOf, endPreviewOf } from './effects.ts'
