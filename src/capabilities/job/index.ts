import { z } from 'zod'
import { defineCapability, JSON_TEXT, setting } from '../../kernel/capability.ts'
import { answer } from '../../kernel/point.ts'
import { agentFacts } from '../agent/index.ts'
import { inLine, messageArrived, ofOwner, quotaWaits, runBegins, runEnds, runMessages, runPauses, runPlace } from '../run/index.ts'
import { attention, taskSteps, whereabouts } from '../task/index.ts'
import { inUse } from '../work/index.ts'
import { begin, jobsInLine } from './admission.ts'
import { aboutAgents, startAgent, stopAgent } from './agents.ts'
import { jobAttention, livingRun } from './attention.ts'
import { lingered, settleRun } from './effects.ts'
import { migrations } from './migrations.ts'
import { placeOfRun } from './place.ts'
import { messagesOf, watcher } from './reactor.ts'
import { heard, lingeredOn, reported, settled, taskOver, tellPaused, toSettle, unheard } from './reports.ts'
import { JOB } from './rules.ts'
import { ACTIONS, JOB_STATES, jobCancelling, jobEnded, jobPaused, jobQueued, jobStarted, jobSubmitted } from './schema.ts'
import { toStart } from './steps.ts'
import { jobStore } from './store.ts'
import { actions, submit } from './submit.ts'
import { cancel, events, get, list, wait } from './tools.ts'

export const job = defineCapability({
  name: 'job',
  tools: [actions, submit, get, list, wait, events, cancel, startAgent, stopAgent, unheard, settled, reported, lingeredOn, taskOver],
  migrations,
  values: {
    jobs: { state: JOB_STATES, action: ACTIONS, arguments: JSON_TEXT },
  },
  events: [jobSubmitted, jobStarted, jobQueued, jobCancelling, jobPaused, jobEnded],
  effects: [lingered, settleRun],
  reactors: [watcher],
  answers: [
    answer(agentFacts, aboutAgents),
    answer(attention, jobAttention, 'agent'),
    answer(taskSteps, toStart, 'agent'),
    answer(inUse, livingRun),
    answer(inLine, jobsInLine),
    answer(runBegins, async (ctx, { owner }) => (owner.kind === JOB ? begin(ctx, owner.id) : undefined)),
    answer(runPlace, ofOwner(JOB, placeOfRun)),
    answer(runMessages, ofOwner(JOB, messagesOf)),
    answer(messageArrived, ofOwner(JOB, heard)),
    answer(runPauses, ofOwner(JOB, tellPaused)),
    answer(runEnds, ofOwner(JOB, toSettle)),
    answer(quotaWaits, ({ view }, now) => jobStore(view).waitingForQuota(now)),
  ],
  settings: {
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
    'runs.linger_seconds': setting(z.number().min(0).max(3_600), 30, 'How long an agent that asked for review has to end by itself'),
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
  ],
  resources: [{ uri: 'signalbox://job/{id}', name: 'job', description: 'One job, by id or handle', tool: 'job_get', argument: 'job_id' }],
})

export { cancelJob } from './admission.ts'
export { livingRun } from './attention.ts'
export { briefOn } from './brief-for.ts'
export { type HandIn, handIn, handInNews, handIns, inReview } from './handed-in.ts'
export { type Presence, presenceOf } from './presence.ts'
export { letEnd, sentBack } from './rules.ts'
export { isAtWork, jobEnded, OPEN_STATES } from './schema.ts'
export { jobStore } from './store.ts'
export { beginWork, tellAgent } from './submit.ts'
