import type { Capability, SettingDefinition } from '../kernel/capability.ts'
import { agent, askAboutAgents, askForTerminals } from './agent/index.ts'
import { approval } from './approval/index.ts'
import { effect } from './effect/index.ts'
import { epic, epicAttention, epicFacts, epicsOf, leftAttention, wakeAgent } from './epic/index.ts'
import { escalation } from './escalation/index.ts'
import { feedback, feedbackAttention, reviewerFacts } from './feedback/index.ts'
import { aboutAgents, job, jobAttention, livingRun, whenPresenceChanges } from './job/index.ts'
import { mail, presenceChanged as tellOfLetters, wakers } from './mail/index.ts'
import { beginLine, handedInOf, lineHeadOf, linesOfRepo, merge, reviewAttention, withdraw } from './merge/index.ts'
import { endPreviewOf, preview, stopPreviewOf } from './preview/index.ts'
import { belongings, project } from './project/index.ts'
import { askForReviewers, closePr, pullRequestOf, review } from './review/index.ts'
import { openSession, session, sessionAttention, terminalOf } from './session/index.ts'
import { cleanUpWork, setup, setupAttention } from './setup/index.ts'
import { system } from './system/index.ts'
import { askForAttention, askForEpics, task, tasksOfProject, whenTaskEnds } from './task/index.ts'
import { transcript } from './transcript/index.ts'
import { askForHandedIn, askForLines, askForPullRequests, beforeRemoval, inUse, work, workInRepo } from './work/index.ts'

/** THE registry: one line per capability. Order matters only for migrations that refer to an earlier one's tables. */
const all = [
  agent,
  project,
  task,
  work,
  setup,
  transcript,
  review,
  approval,
  job,
  mail,
  merge,
  session,
  preview,
  epic,
  feedback,
  effect,
  escalation,
  system((): Record<string, SettingDefinition> => settingDefinitions),
]

export const capabilities: Capability[] = all

askAboutAgents(aboutAgents)
askForTerminals(terminalOf)
askForAttention(feedbackAttention, leftAttention, reviewAttention, epicAttention, setupAttention, jobAttention, sessionAttention)
askForEpics(epicFacts)
askForPullRequests(pullRequestOf)
askForLines({ headOf: lineHeadOf, begin: beginLine })
askForHandedIn(handedInOf)
askForReviewers(reviewerFacts)
inUse.push(livingRun, openSession)
beforeRemoval.push((ctx, work) => endPreviewOf(ctx, work), cleanUpWork)
belongings.push(epicsOf, tasksOfProject, workInRepo, linesOfRepo)
whenTaskEnds.push(
  (ctx, task) => closePr(ctx, task, task.closed_reason ?? 'Its task is gone.'),
  async (ctx, task) => void (await stopPreviewOf(ctx, task.id)),
  async (ctx, task) => void (await withdraw(ctx, task, task.deleted_at === null ? 'Its task was closed.' : 'Its task was deleted.')),
)
whenPresenceChanges.push(tellOfLetters)
wakers.push(wakeAgent)

/** Every tool with its name, input and output: what a typed client is inferred from. */
export type Tools = (typeof all)[number]['tools'][number]

const settingDefinitions: Record<string, SettingDefinition> = Object.assign({}, ...capabilities.map((c) => c.settings ?? {}))

/** What the daemon and its streams act on themselves. */
export { createIdentity, ensureOwner, tokenEnded, tokenRotated } from './agent/index.ts'
export { effectStuck } from './effect/index.ts'
export { escalate } from './escalation/index.ts'
export { settingChanged, storedSettings } from './system/index.ts'
