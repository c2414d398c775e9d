import { z } from 'zod'
import { defineCapability, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { taskEnds } from '../task/index.ts'
import { removal } from '../work/index.ts'
import { askToStop, endPreviewOf, launchPreview, stopPreview } from './effects.ts'
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
  answers: [answer(taskEnds, async (ctx, task) => void (await askToStop(ctx, task.id))), answer(removal, endPreviewOf, 'processes')],
  settings: {
    [HOURS]: setting(z.number().min(0.01).max(720), 12, 'How long a preview may run, in hours'),
    [MINUTES]: setting(z.number().min(0.01).max(120), 5, 'How long the program of a preview may take until it answers, in minutes'),
  },
})
