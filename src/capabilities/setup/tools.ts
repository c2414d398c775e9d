import { z } from 'zod'
import type { NewEffect } from '../../kernel/effect.ts'
import { refuse } from '../../kernel/error.ts'
import { defineTool } from '../../kernel/tool.ts'
import { takeTurn } from '../handle.ts'
import { projectStore } from '../project/index.ts'
import { workStore } from '../work/index.ts'
import { makeSetup, queueOf } from './make.ts'
import { setupEnded, setupStarted } from './schema.ts'
import { setupStore } from './store.ts'

const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const

export const begin = defineTool({
  ...internal,
  name: 'setup_begin',
  title: 'Somebody waits for the setup of a worktree',
  description: 'Begins it, or waits for the one that runs; one that has passed meanwhile is waited for by nobody.',
  input: z.strictObject({
    work_id: z.string(),
    path: z.string(),
    checkout: z.string(),
    host: z.string(),
    by: z.string(),
    next: z.string().describe('The effect that waits, as JSON'),
  }),
  async run(ctx, { work_id, path, checkout, host, by, next }) {
    await takeTurn(ctx.tx, `setup:${work_id}`)
    const store = setupStore(ctx.tx)
    const work = await workStore(ctx.tx).find(work_id)
    const repo = work && (await projectStore(ctx.tx).repo(work.repo_id))
    if (!work || !repo) throw refuse('RESOURCE_NOT_FOUND', `There is no work "${work_id}".`)
    const known = await store.latest(work_id, checkout)
    if (known?.state === 'ready') {
      ctx.enqueue(JSON.parse(next) as NewEffect)
      return {}
    }
    if (known?.state === 'running') {
      const waiting = JSON.parse(known.waiting) as string[]
      if (!waiting.includes(next)) await store.update(known.id, { waiting: JSON.stringify([...waiting, next]) })
      return {}
    }
    const { repo_id, project_id, task_id } = work
    const id = ctx.id('setup')
    const asked = { id, work_id, repo_id, project_id, task_id, path, checkout, host, asked_by: by, command: repo.setup }
    await store.insert({
      ...asked,
      state: 'running',
      waiting: JSON.stringify([next]),
      reason: null,
      log: null,
      created_at: ctx.now,
      ended_at: null,
    })
    ctx.emit(setupStarted({ subject: id, project: project_id, task: task_id }, { work_id, command: repo.setup }))
    ctx.enqueue(makeSetup({ setup_id: id }, { queue: queueOf(repo_id) }))
    return {}
  },
})

export const ended = defineTool({
  ...internal,
  name: 'setup_ended',
  title: 'The setup of a worktree has ended',
  description: 'Whoever waited for it goes on.',
  input: z.strictObject({
    setup_id: z.string(),
    state: z.enum(['ready', 'failed']),
    reason: z.string().nullable(),
    log: z.string().nullable(),
  }),
  async run(ctx, { setup_id, state, reason, log }) {
    const store = setupStore(ctx.tx)
    const before = await store.find(setup_id)
    if (!before) throw refuse('RESOURCE_NOT_FOUND', `There is no setup "${setup_id}".`)
    await takeTurn(ctx.tx, `setup:${before.work_id}`)
    const row = await store.find(setup_id)
    if (row?.state !== 'running') return {}
    await store.update(row.id, { state, reason, log, waiting: '[]', ended_at: ctx.now })
    const about = { subject: row.id, project: row.project_id, task: row.task_id }
    ctx.emit(setupEnded(about, { work_id: row.work_id, command: row.command, state, reason }))
    for (const next of JSON.parse(row.waiting) as string[]) ctx.enqueue(JSON.parse(next) as NewEffect)
    return {}
  },
})
