import { z } from 'zod'
import type { NewEffect } from '../../kernel/effect.ts'
import { refuse } from '../../kernel/error.ts'
import { iso, Timestamp } from '../../kernel/schema.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { takeTurn } from '../handle.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { workStore } from '../work/index.ts'
import { makeSetup, queueOf } from './make.ts'
import { forgetKept, GB, KEEP_GB } from './packages.ts'
import { NOT_WANTED } from './rules.ts'
import { KEPT, setupCleaned, setupEnded, setupStarted } from './schema.ts'
import { type SetupRow, setupStore } from './store.ts'

const internal = { impact: 'write', profile: 'maintainer', internal: true, output: z.strictObject({}) } as const

export const begin = defineTool({
  ...internal,
  output: z.strictObject({ ready: z.boolean() }),
  name: 'setup_begin',
  title: 'Somebody waits for the setup of a worktree',
  description: 'Begins it, or waits for the one that runs; one that has passed meanwhile is waited for by nobody.',
  input: z.strictObject({
    work_id: z.string(),
    path: z.string(),
    checkout: z.string(),
    head: z.string(),
    kept: z.enum(KEPT),
    host: z.string(),
    by: z.string(),
    next: z.string().describe('The effect that waits, as JSON'),
  }),
  async run(ctx, { work_id, path, checkout, head, kept, host, by, next }) {
    await takeTurn(ctx.tx, `setup:${work_id}`)
    const store = setupStore(ctx.tx)
    const work = await workStore(ctx.tx).find(work_id)
    const [repo, task] = work ? [await projectStore(ctx.tx).repo(work.repo_id), await taskStore(ctx.tx).find(work.task_id)] : []
    if (!work || !repo || !task) throw refuse('RESOURCE_NOT_FOUND', `There is no work "${work_id}".`)
    const known = await store.latest(work_id, checkout)
    if (known?.state === 'ready' && (known.command !== null || repo.setup === null)) return { ready: true }
    if (known?.state === 'running') {
      const waiting = JSON.parse(known.waiting) as string[]
      if (!waiting.includes(next)) await store.update(known.id, { waiting: JSON.stringify([...waiting, next]) })
      return { ready: false }
    }
    const { repo_id, project_id, task_id } = work
    const id = ctx.id('setup')
    const asked = {
      id,
      work_id,
      repo_id,
      project_id,
      task_id,
      path,
      checkout,
      head,
      kept,
      host,
      asked_by: by,
      command: repo.setup,
      how: null,
    }
    // Written down also when there is nothing to do: somebody is let in now.
    const ready = repo.setup === null && repo.files === '[]'
    await store.insert({
      ...asked,
      state: ready ? 'ready' : 'running',
      waiting: JSON.stringify(ready ? [] : [next]),
      reason: null,
      log: null,
      created_at: ctx.now,
      ended_at: ready ? ctx.now : null,
    })
    if (ready) return { ready }
    ctx.emit(setupStarted({ subject: id, project: project_id, task: task_id }, { handle: handleOf(task), work_id, command: repo.setup }))
    ctx.enqueue(makeSetup({ setup_id: id }, { queue: queueOf(host, repo_id) }))
    return { ready }
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
    how: z.enum(['made', 'kept']).nullable(),
    reason: z.string().nullable(),
    log: z.string().nullable(),
  }),
  async run(ctx, { setup_id, state, how, reason, log }) {
    const store = setupStore(ctx.tx)
    const before = await store.find(setup_id)
    if (!before) throw refuse('RESOURCE_NOT_FOUND', `There is no setup "${setup_id}".`)
    await takeTurn(ctx.tx, `setup:${before.work_id}`)
    const row = await store.find(setup_id)
    if (row?.state !== 'running') return {}
    await over(ctx, row, { state, how, reason, log })
    for (const next of JSON.parse(row.waiting) as string[]) ctx.enqueue(JSON.parse(next) as NewEffect)
    return {}
  },
})

/** For whoever waited and does so no more. A setup that nobody waits for is ended, also before its turn in the repository. */
export async function withdraw(ctx: RunContext, task_id: string, next: NewEffect): Promise<void> {
  const store = setupStore(ctx.tx)
  for (const { id, work_id } of await store.running([task_id])) {
    await takeTurn(ctx.tx, `setup:${work_id}`)
    const row = await store.find(id)
    if (row?.state !== 'running') continue
    const waiting = JSON.parse(row.waiting) as string[]
    const left = waiting.filter((one) => one !== JSON.stringify(next))
    if (left.length === waiting.length) continue
    if (left.length) await store.update(id, { waiting: JSON.stringify(left) })
    else await over(ctx, row, { state: 'failed', how: null, reason: NOT_WANTED, log: null })
  }
}

async function over(ctx: RunContext, row: SetupRow, told: Pick<SetupRow, 'state' | 'how' | 'reason' | 'log'>): Promise<void> {
  const task = await taskStore(ctx.tx).find(row.task_id)
  if (!task) throw refuse('RESOURCE_NOT_FOUND', `There is no task "${row.task_id}".`)
  await setupStore(ctx.tx).update(row.id, { ...told, waiting: '[]', ended_at: ctx.now })
  const { state, how, reason } = told
  const about = { subject: row.id, project: row.project_id, task: row.task_id }
  ctx.emit(setupEnded(about, { handle: handleOf(task), work_id: row.work_id, command: row.command, state, how, reason }))
}

export const undone = defineTool({
  ...internal,
  name: 'setup_undone',
  title: 'A worktree is being cleaned up',
  description: 'Whoever begins there after this sets it up anew.',
  input: z.strictObject({ work_id: z.string(), request: z.string() }),
  async run(ctx, { work_id }) {
    await takeTurn(ctx.tx, `setup:${work_id}`)
    await setupStore(ctx.tx).undo(work_id, 'Its cleanup was run.')
    return {}
  },
})

export const cleaned = defineTool({
  ...internal,
  name: 'setup_cleaned',
  title: 'A checkout was cleaned up',
  description: 'The worktree of a work, before it is taken away; without one, the checkout of checks.',
  input: z.strictObject({
    repo_id: z.string(),
    work_id: z.string().nullable(),
    command: z.string(),
    failure: z.string().nullable(),
    request: z.string(),
  }),
  async run(ctx, { repo_id, work_id, command, failure }) {
    const repo = await projectStore(ctx.tx).repo(repo_id)
    if (!repo) throw refuse('RESOURCE_NOT_FOUND', `There is no repository "${repo_id}".`)
    const work = work_id === null ? undefined : await workStore(ctx.tx).find(work_id)
    const task = work && (await taskStore(ctx.tx).find(work.task_id))
    const about = { subject: work?.id ?? repo.id, project: repo.project_id, ...(work && { task: work.task_id }) }
    ctx.emit(setupCleaned(about, { handle: task ? handleOf(task) : repo.handle, work_id, command, failure }))
    return {}
  },
})

const KeptView = z.strictObject({
  key: z.string(),
  command: z.string(),
  size_bytes: z.int().describe('With the copy that lies ready for the next checkout'),
  copy_ready: z.boolean().describe('Whether that copy is there; without it the next checkout waits for one'),
  kept_at: Timestamp,
  used_at: Timestamp.describe('When it was last copied into a checkout'),
})

export const kept = defineTool({
  name: 'setup_kept',
  title: 'List kept packages',
  description: 'What setups have made on this machine and the next checkout gets a copy of; the least recently used first.',
  input: z.strictObject({}),
  output: z.strictObject({ kept: z.array(KeptView), total_bytes: z.int(), limit_bytes: z.int() }),
  example: {},
  impact: 'read',
  profile: 'operator',
  async look(ctx) {
    const all = await ctx.ports.packages.list()
    const views = all.map(({ key, command, bytes, spare_bytes, kept_at, used_at }) => ({
      key,
      command,
      size_bytes: bytes,
      copy_ready: spare_bytes === 0,
      kept_at: iso(kept_at),
      used_at: iso(used_at),
    }))
    const limit_bytes = Math.round(ctx.setting<number>(KEEP_GB) * GB)
    return { kept: views, total_bytes: all.reduce((sum, { bytes }) => sum + bytes, 0), limit_bytes }
  },
})

function noPackages(key: string) {
  return refuse('RESOURCE_NOT_FOUND', `There are no kept packages ${key}.`, { next_tool: 'setup_kept', next_arguments: {} })
}

export const forget = defineTool({
  name: 'setup_forget',
  title: 'Delete kept packages',
  description:
    'Delete what setups have made and kept on this machine: by its key, or all of it. The next setup installs anew; no worktree changes.',
  input: z.strictObject({
    key: z
      .string()
      .regex(/^[0-9a-f]{40}$/)
      .optional()
      .describe('Default: all of it'),
  }),
  output: z.strictObject({ message: z.string() }),
  example: {},
  impact: 'write',
  profile: 'maintainer',
  by: 'person',
  async prepare(ctx, { key }) {
    const { packages, daemon } = ctx.ports
    const all = await packages.list()
    return key === undefined || all.some((one) => one.key === key) ? { count: all.length, host: daemon.host } : noPackages(key)
  },
  async run(ctx, { key }, { count, host }: { count: number; host: string }) {
    // Also of none: one may just be made.
    ctx.enqueue(forgetKept({ key: key ?? null, host }))
    if (key) return { message: `${key} is being deleted.` }
    return { message: count ? 'All that was kept is being deleted.' : 'There are no kept packages.' }
  },
})
