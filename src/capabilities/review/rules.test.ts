import { describe, expect, test } from 'vitest'
import type { Principal } from '../../kernel/policy.ts'
import type { TaskRow } from '../task/index.ts'
import { checkMayDecide } from './rules.ts'
import type { ReviewRow } from './store.ts'

const task = { id: 'task_1', number: 1, project_id: 'project_1', epic_id: 'epic_1', assignee_id: 'agent_w' } as TaskRow
const round = (more: Partial<ReviewRow>) => ({ id: 'review_1', task_id: 'task_1', requested_by: 'agent_w', ...more }) as ReviewRow
const agent = (role: string, scope: object) =>
  ({ id: 'agent_x', kind: 'agent', role, profile: 'maintainer', scope }) as unknown as Principal

describe('who decides about a round', () => {
  const supervisor = agent('supervisor', { epic: 'epic_1', project: 'project_1' })
  const reviewer = agent('reviewer', { task: 'task_r', project: 'project_1' })

  test.for([null, 'timed_out', 'request_changes'] as const)(
    '[PR2] of one that is for a person no agent, also when it is %s',
    (decision) => {
      expect(checkMayDecide(supervisor, task, round({ decision, reader: null }))).toBe(undefined)
      expect(checkMayDecide(supervisor, task, round({ decision, reader: 'human' }))).toMatchObject({ body: { code: 'PERMISSION_DENIED' } })
    },
  )

  test('[V14] its reviewer as long as its time is not up', () => {
    const of = (decision: ReviewRow['decision']) =>
      checkMayDecide(reviewer, task, round({ decision, reader: null, reviewer_task_id: 'task_r' }))
    expect(of(null)).toBe(undefined)
    expect(of('timed_out')).toMatchObject({ body: { code: 'PERMISSION_DENIED' } })
  })
})
