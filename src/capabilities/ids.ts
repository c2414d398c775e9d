import { idSchema } from '../kernel/id.ts'

/** Every kind of id in one place: capabilities name each other's things without importing each other. */
const SLUG = /[a-z][a-z0-9]*(?:-[a-z0-9]+)*/

export const AgentId = idSchema('agent', 'agent', SLUG)
export const PersonId = idSchema('person', 'person', SLUG)
export const TokenId = idSchema('token', 'token')
export const ProjectId = idSchema('project', 'project', SLUG)
export const RepoId = idSchema('repo', 'repo', SLUG)
export const TaskId = idSchema('task', 'task', /T-[1-9][0-9]{0,9}/)
export const EpicId = idSchema('epic', 'epic', /E-[1-9][0-9]{0,9}/)
export const PrId = idSchema('pr', 'pr')
export const MergeId = idSchema('merge', 'merge')
export const PlanId = idSchema('plan', 'plan')
export const WorkId = idSchema('work', 'work')
export const EffectId = idSchema('effect', 'effect')
export const JobId = idSchema('job', 'job', /J-[1-9][0-9]{0,9}/)
export const RunId = idSchema('run', 'run')
export const ApprovalId = idSchema('approval', 'approval', /A-[1-9][0-9]{0,9}/)
export const MailId = idSchema('mail', 'mail')
export const ThreadId = idSchema('thread', 'thread')
