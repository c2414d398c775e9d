import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { APPROVALS } from '../../ports/harness.ts'
import { agentFacts } from '../agent/index.ts'
import { attention, chatter, whereabouts } from '../task/index.ts'
import { inUse } from '../work/index.ts'
import { aboutAgents, startAgent, stopAgent } from './agents.ts'
import { APPROVAL_LINE } from './approvals.ts'
import { jobAttention, livingRun } from './attention.ts'
import { getBudget, setBudget } from './budget.ts'
import { forgetRun, launchRun, lingered, settleRun, stopRun } from './effects.ts'
import { follower } from './follow.ts'
import { migrations } from './migrations.ts'
import { admitNow, ended, lingeredOn, prepared, progressed, reported, sent, settled, started, taskOver, unheard } from './reports.ts'
import {
  ACTIONS,
  budgetSet,
  JOB_STATES,
  jobCancelling,
  jobEnded,
  jobPaused,
  jobQueued,
  jobStarted,
  jobSubmitted,
  RUN_STATES,
  RunView,
  runEnded,
  runInput,
  runProgressed,
  runStarted,
  runStopping,
} from './schema.ts'
import { jobStore, runStore } from './store.ts'
import { actions, submit } from './submit.ts'
import { cancel, events, get, list, runs, wait } from './tools.ts'
import { getUsage } from './usage.ts'

const Places = z.int().min(1).max(1_000)

export const job = defineCapability({
  name: 'job',
  tools: [
    actions,
    submit,
    get,
    list,
    wait,
    events,
    cancel,
    runs,
    getBudget,
    setBudget,
    getUsage,
    startAgent,
    stopAgent,
    prepared,
    started,
    progressed,
    sent,
    unheard,
    ended,
    settled,
    reported,
    lingeredOn,
    admitNow,
    taskOver,
  ],
  migrations,
  values: {
    jobs: { state: JOB_STATES, action: ACTIONS, arguments: JSON_TEXT },
    runs: { state: RUN_STATES, kind: RunView.shape.kind.options, approvals: APPROVALS, limits: JSON_TEXT, options: JSON_TEXT },
  },
  events: [
    jobSubmitted,
    jobStarted,
    jobQueued,
    jobCancelling,
    jobPaused,
    jobEnded,
    runStarted,
    runProgressed,
    runInput,
    runStopping,
    runEnded,
    budgetSet,
  ],
  effects: [launchRun, stopRun, lingered, settleRun, forgetRun],
  reactors: [follower],
  answers: [
    answer(agentFacts, aboutAgents),
    answer(attention, jobAttention, 'agent'),
    answer(inUse, livingRun),
    answer(chatter, async () => [runProgressed]),
  ],
  settings: {
    'runs.max_per_host': setting(Places, 8, 'How many agents run on one machine at a time; others wait in line'),
    'runs.max_per_project': setting(Places, 8, 'How many agents run in one project at a time'),
    'runs.max_lives': setting(z.int().min(1).max(100), 4, 'How often an agent that dies is started in all, before its job has failed'),
    'runs.back_off_seconds': setting(
      z.number().min(0).max(3_600),
      5,
      'How long after a death the agent is started again; doubled each time',
    ),
    'runs.default_harness': setting(
      z.string().max(40),
      '',
      'Which agent program is started where nobody says which; empty: the only one that is installed and logged in',
    ),
    'runs.approvals': setting(
      z
        .array(z.string().regex(APPROVAL_LINE, 'each is like claude=ask: a harness, or * for all others, and then allow, ask or deny'))
        .max(100),
      [],
      'What becomes of what an agent asks permission for, as claude=ask: by harness, or * for all others; allow without asking (also when it is not named), ask a person, or deny',
    ),
    'runs.linger_seconds': setting(z.number().min(0).max(3_600), 30, 'How long an agent that asked for review has to end by itself'),
    'runs.quota_retry_minutes': setting(z.number().min(0.01).max(10_080), 30, 'When to go on after a quota whose end is not known'),
    'runs.quota_least_seconds': setting(z.number().min(0).max(86_400), 60, 'How long to wait at the least after a quota was reached'),
    'runs.keep_days': setting(z.number().min(0).max(3_650), 7, 'How long the raw output of a run is kept on disk; its transcript stays'),
    'runs.wait_max_seconds': setting(z.int().min(1).max(86_400), 900, 'The longest that job_wait waits, over several calls'),
  },
  things: [
    {
      kind: 'job',
      async find(tx, ref) {
        const row = await jobStore(tx).find(ref)
        return row && { id: row.id, within: await whereabouts(tx, row) }
      },
    },
    {
      kind: 'run',
      async find(tx, ref) {
        const row = await runStore(tx).find(ref)
        return row && { id: row.id, within: await whereabouts(tx, row) }
      },
    },
  ],
  resources: [{ uri: 'signalbox://job/{id}', name: 'job', description: 'One job, by id or handle', tool: 'job_get', argument: 'job_id' }],
})

export { cancelJob } from './admission.ts'
export { livingRun } from './attention.ts'
export { briefOn } from './brief-for.ts'
export { type HandIn, handIn, handInNews, handIns, inReview } from './handed-in.ts'
export { type Presence, presenceChanges, presenceOf } from './presence.ts'
export { letEnd, sentBack } from './rules.ts'
export { isAtWork, jobEnded, OPEN_STATES, runStarted } from './schema.ts'
export { jobStore, runStore } from './store.ts'
export { beginWork, tellAgent } from './submit.ts'
