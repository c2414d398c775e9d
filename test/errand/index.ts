import { z } from 'zod'
import { createAgent } from '../../src/capabilities/agent/index.ts'
import { ProjectId } from '../../src/capabilities/ids.ts'
import { isAfter, type Needed, needs, type Question } from '../../src/capabilities/need/index.ts'
import {
  admit,
  allowance,
  beginRun,
  inLine,
  ofOwner,
  type Place,
  type RunRow,
  runBegins,
  runEnds,
  runPlace,
  runStore,
} from '../../src/capabilities/run/index.ts'
import { tables } from '../../src/db/tables.ts'
import { defineCapability, type Migration } from '../../src/kernel/capability.ts'
import { defineEvent } from '../../src/kernel/event.ts'
import { answer } from '../../src/kernel/point.ts'
import type { Tx } from '../../src/kernel/storage.ts'
import { defineTool, type LookContext, type RunContext } from '../../src/kernel/tool.ts'

/** What a stranger's capability looks like that starts agents: in a folder, without a task, a job or a repository. */
interface ErrandRow {
  id: string
  project_id: string
  folder: string
  words: string
  harness: string
  options: string
  state: 'waiting' | 'running' | 'done' | 'failed'
  created_at: number
}

const ERRAND = 'errand'

const migrations: Migration[] = [
  {
    name: 'errands',
    up: ({ int, text, strict }) => [
      `CREATE TABLE errands (
        id ${text} PRIMARY KEY NOT NULL, project_id ${text} NOT NULL, folder ${text} NOT NULL, words ${text} NOT NULL, harness ${text} NOT NULL,
        options ${text} NOT NULL, state ${text} NOT NULL, created_at ${int} NOT NULL
      ) ${strict}`,
    ],
  },
]

function errandStore(tx: Tx) {
  const db = tables<{ errands: ErrandRow }>(tx)
  const all = db.selectFrom('errands').selectAll().orderBy('created_at').orderBy('id')
  return {
    find: (id: string) => db.selectFrom('errands').selectAll().where('id', '=', id).executeTakeFirst(),
    list: () => all.execute(),
    waiting: (limit: number) => all.where('state', '=', 'waiting').limit(limit).execute(),
    insert: (row: ErrandRow) => db.insertInto('errands').values(row).execute(),
    move: (id: string, state: ErrandRow['state']) => db.updateTable('errands').set({ state }).where('id', '=', id).execute(),
  }
}

const errandEnded = defineEvent('errand.ended', z.strictObject({ ok: z.boolean() }))

const start = defineTool({
  name: 'errand_start',
  title: 'Send an agent on an errand',
  description: 'An agent does what it is told in a folder.',
  input: z.strictObject({
    project_id: ProjectId,
    folder: z.string(),
    words: z.string(),
    harness: z.string(),
    script: z.string().optional(),
  }),
  output: z.strictObject({ errand_id: z.string() }),
  impact: 'write',
  profile: 'operator',
  by: 'person',
  async run(ctx, { script, ...wanted }) {
    const id = ctx.id('errand')
    await errandStore(ctx.tx).insert({
      id,
      ...wanted,
      options: JSON.stringify(script ? { script } : {}),
      state: 'waiting',
      created_at: ctx.now,
    })
    await admit(ctx)
    return { errand_id: id }
  },
})

const list = defineTool({
  name: 'errand_list',
  title: 'List errands',
  description: 'All errands, oldest first.',
  input: z.strictObject({}),
  output: z.strictObject({ errands: z.array(z.strictObject({ id: z.string(), words: z.string(), state: z.string() })) }),
  impact: 'read',
  profile: 'viewer',
  across: 'projects',
  async look(ctx) {
    return { errands: (await errandStore(ctx.view).list()).map(({ id, words, state }) => ({ id, words, state })) }
  },
})

async function begin(ctx: RunContext, id: string): Promise<boolean> {
  const errand = await errandStore(ctx.tx).find(id)
  if (errand?.state !== 'waiting') return false
  const { project_id, harness, options } = errand
  const allowed = await allowance(ctx, { task: null, project: project_id }, {})
  await errandStore(ctx.tx).move(id, 'body' in allowed ? 'failed' : 'running')
  if ('body' in allowed) return false
  const agent = await createAgent(ctx, { role: 'planner', project_id })
  await beginRun(ctx, {
    owner: { kind: ERRAND, id },
    task_id: null,
    project_id,
    agent_id: agent.id,
    harness,
    model: null,
    options: JSON.parse(options),
    approvals: undefined,
    allowed,
    session: null,
    life: 1,
  })
  return true
}

async function placeOf({ view }: { view: Tx }, { owner_id }: RunRow): Promise<Place> {
  const errand = await errandStore(view).find(owner_id)
  if (!errand) throw new Error(`the errand ${owner_id} is not there`)
  return { cwd: errand.folder, repo: null, env: { ERRAND: errand.id }, noScript: null, brief: async () => errand.words }
}

async function over(ctx: RunContext, { owner_id, id, project_id }: RunRow): Promise<void> {
  const ok = (await runStore(ctx.tx).find(id))?.ok === 1
  await errandStore(ctx.tx).move(owner_id, ok ? 'done' : 'failed')
  ctx.emit(errandEnded({ subject: owner_id, project: project_id }, { ok }))
  await admit(ctx)
}

async function failed({ view }: LookContext, { project, kinds, after }: Question): Promise<Needed> {
  const all = (await errandStore(view).list()).filter((one) => one.state === 'failed' && (!project || one.project_id === project))
  const found = all.map(({ id, words, project_id, created_at }) => ({
    kind: ERRAND,
    id,
    handle: null,
    title: words,
    detail: 'The errand failed.',
    by: null,
    task_id: null,
    project_id,
    since: created_at,
  }))
  return {
    kinds: [{ kind: ERRAND, title: 'Errands that failed', urgency: 'soon' }],
    counts: { [ERRAND]: all.length },
    needs: found.filter((need) => kinds?.includes(ERRAND) !== false && isAfter(need, after('soon'))),
    steps: async () => new Map(),
  }
}

export const errand = defineCapability({
  name: ERRAND,
  tools: [start, list],
  migrations,
  events: [errandEnded],
  answers: [
    answer(inLine, async ({ tx }, limit) =>
      (await errandStore(tx).waiting(limit)).map(({ id, project_id, created_at }) => ({
        owner: { kind: ERRAND, id },
        project_id,
        priority: 1,
        created_at,
        not_before: 0,
      })),
    ),
    answer(runBegins, async (ctx, { owner }) => (owner.kind === ERRAND ? begin(ctx, owner.id) : undefined)),
    answer(runPlace, ofOwner(ERRAND, placeOf)),
    answer(runEnds, ofOwner(ERRAND, over)),
    answer(needs, failed),
  ],
})
