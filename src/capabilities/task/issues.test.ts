import { expect } from 'vitest'
import { tables } from '../../db/tables.ts'
import { test } from '../../testing/app.ts'

const ISSUES = [
  { title: 'Log in with a passkey', body: 'A wrong one is refused.', labels: ['security', 'ui'] },
  { title: 'Log out', body: '' },
]

test('[T22] issues are tasks of the project of whoever makes them', async ({ app }) => {
  const project_id = await app.project()
  const planner = await app.agent('planner', { project_id })
  const { issues } = await planner.call('issue_create', { issues: ISSUES })
  expect(issues).toEqual(
    ISSUES.map(({ title }, i) => ({
      number: i + 1,
      handle: `T-${i + 1}`,
      task_id: expect.stringMatching(/^task_/),
      title,
      url: expect.stringMatching(`/task/${issues[i].task_id}$`),
    })),
  )
  const read = async (task_id: string) => (await app.owner.call('task_get', { task_id })).task
  expect(await read('T-1')).toMatchObject({
    project_id,
    status: 'BACKLOG',
    created_by: planner.id,
    description: 'A wrong one is refused.\n\nLabels: security, ui',
  })
  expect(await read('T-2')).toMatchObject({ description: '' })
})

test('[T22] all of them or none, and none by whoever works or reviews', async ({ app }) => {
  const project_id = await app.project()
  const planner = await app.agent('planner', { project_id })
  const broken = [...ISSUES, { title: '', body: 'x' }]
  expect(await planner.refused('issue_create', { issues: broken })).toMatchObject({ code: 'INVALID_INPUT' })
  expect(await planner.refused('issue_create', { issues: [] })).toMatchObject({ code: 'INVALID_INPUT' })
  const many = Array.from({ length: 51 }, () => ISSUES[0])
  expect(await planner.refused('issue_create', { issues: many })).toMatchObject({ code: 'INVALID_INPUT' })
  for (const role of ['worker', 'reviewer'])
    expect(await (await app.agent(role, { project_id })).refused('issue_create', { issues: ISSUES }), role).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
  const elsewhere = (await app.owner.call('project_create', { name: 'Other' })).project_id
  expect(await planner.refused('issue_create', { issues: ISSUES, project_id: elsewhere })).toMatchObject({ code: 'PERMISSION_DENIED' })
  expect((await app.owner.call('task_list')).tasks).toEqual([])
})

test('[T22] those of a supervisor are in its epic', async ({ app }) => {
  const project_id = await app.project()
  const { epic } = await app.owner.call('epic_create', { title: 'Passkeys', project_id, start: false })
  const supervisor = await app.agent('supervisor')
  await app.owner.call('epic_update', { epic_id: epic.id, supervisor_id: supervisor.id })
  const { issues } = await supervisor.call('issue_create', { issues: [ISSUES[1]] })
  expect((await app.owner.call('task_list', { epic_id: epic.id })).tasks).toMatchObject([{ id: issues[0].task_id }])
})

const SCRIPT = 'Mend it.\n\n```signalbox\n{"run": {"argv": ["id"]}}\n```\n'

test('[T23] a script is taken from people and operators; of other agents an issue and a plan with one are refused', async ({ app }) => {
  const project_id = await app.project()
  const planner = await app.agent('planner', { project_id })
  const refusal = { code: 'PERMISSION_DENIED', message: expect.stringContaining('script'), hint: expect.stringContaining('operator') }
  for (const body of [SCRIPT, SCRIPT.replaceAll('\n', '\r\n'), SCRIPT.replace('signalbox', 'signalbox-review')])
    expect(await planner.refused('issue_create', { issues: [{ title: 'Run it', body }] })).toMatchObject(refusal)
  expect(await planner.refused('plan_propose', { tasks: [{ title: 'Run it', description: SCRIPT }] })).toMatchObject(refusal)
  expect((await app.owner.call('task_list', { project_id })).tasks).toEqual([])
  const orchestrator = await app.agent('orchestrator', { project_id })
  for (const caller of [orchestrator, app.owner]) {
    await caller.call('issue_create', { issues: [{ title: 'Run it', body: SCRIPT }] })
    await caller.call('task_create', { title: 'Run it', description: SCRIPT, project_id })
  }
})

test('[T23] a plan with a script that was proposed before such plans were refused is not accepted', async ({ app }) => {
  const project_id = await app.project()
  const planner = await app.agent('planner', { project_id })
  const { plan_id } = await app.owner.call('plan_propose', { tasks: [{ title: 'Run it', description: SCRIPT }], project_id })
  await app.app.engine.write(async (tx) => {
    await tables<{ plans: { id: string; proposed_by: string } }>(tx)
      .updateTable('plans')
      .set({ proposed_by: planner.id })
      .where('id', '=', plan_id)
      .execute()
  })
  expect(await app.owner.refused('plan_accept', { plan_id })).toMatchObject({ code: 'PERMISSION_DENIED' })
  expect(await app.owner.call('plan_accept', { plan_id, accept: false })).toMatchObject({ status: 'rejected' })
})
