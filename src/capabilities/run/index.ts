import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { APPROVALS } from '../../ports/harness.ts'
import { chatter, whereabouts } from '../task/index.ts'
import { admitNow } from './admission.ts'
import { APPROVAL_LINE } from './approvals.ts'
import { getBudget, setBudget } from './budget.ts'
import { forgetRun, launchRun, stopRun } from './effects.ts'
import { follower } from './follow.ts'
import { migrations } from './migrations.ts'
import { ended, prepared, progressed, sent, started } from './reports.ts'
import { budgetSet, RUN_EVENTS, RUN_STATES, RunView, runProgressed } from './schema.ts'
import { runStore } from './store.ts'
import { list } from './tools.ts'
import { getUsage } from './usage.ts'

const Places = z.int().min(1).max(1_000)

/** The lives of agent programs: their processes, what they print and are told, what they use. Why they run is their owners' matter. */
export const run = defineCapability({
  name: 'run',
  tools: [list, getBudget, setBudget, getUsage, admitNow, prepared, started, progressed, sent, ended],
  migrations,
  values: {
    runs: { state: RUN_STATES, kind: RunView.shape.kind.options, approvals: APPROVALS, limits: JSON_TEXT, options: JSON_TEXT },
  },
  events: [...RUN_EVENTS, budgetSet],
  effects: [launchRun, stopRun, forgetRun],
  reactors: [follower],
  answers: [answer(chatter, async () => [runProgressed])],
  settings: {
    'runs.max_per_host': setting(Places, 8, 'How many agents run on one machine at a time; others wait in line'),
    'runs.max_per_project': setting(Places, 8, 'How many agents run in one project at a time'),
    'runs.approvals': setting(
      z
        .array(z.string().regex(APPROVAL_LINE, 'each is like claude=ask: a harness, or * for all others, and then allow, ask or deny'))
        .max(100),
      [],
      'What becomes of what an agent asks permission for, as claude=ask: by harness, or * for all others; allow without asking (also when it is not named), ask a person, or deny',
    ),
    'runs.quota_retry_minutes': setting(z.number().min(0.01).max(10_080), 30, 'When to go on after a quota whose end is not known'),
    'runs.quota_least_seconds': setting(z.number().min(0).max(86_400), 60, 'How long to wait at the least after a quota was reached'),
    'runs.keep_days': setting(z.number().min(0).max(3_650), 7, 'How long the raw output of a run is kept on disk; its transcript stays'),
  },
  things: [
    {
      kind: 'run',
      async find(tx, ref) {
        const row = await runStore(tx).find(ref)
        const { task_id, project_id } = row ?? {}
        if (!row || !project_id) return undefined
        return { id: row.id, within: task_id ? await whereabouts(tx, { task_id, project_id }) : { project: project_id } }
      },
    },
  ],
})

export { admit, admitNow, beginRun, inLine, runBegins, type Waiting } from './admission.ts'
export { approvalsFor, cannotAsk } from './approvals.ts'
export { allowance, allowanceOf, leftOf, unmetered } from './budget.ts'
export { launching, requireHere, requireRun } from './effects.ts'
export {
  type Message,
  messageArrived,
  ofOwner,
  type Place,
  presenceChanged,
  presenceChanges,
  quotaWaits,
  runEnds,
  runMessages,
  runPauses,
  runPlace,
} from './points.ts'
export { aboutRun, askToStop, rememberLeft, rememberReported } from './rules.ts'
export { isLiving, Limits, RUN_EVENTS, RunView, runInput, runStarted } from './schema.ts'
export { budgetStore, type RunRow, runStore } from './store.ts'
export { runView } from './view.ts'
