import { z } from 'zod'
import { definePoint } from '../../kernel/point.ts'
import { defineTool, type RunContext } from '../../kernel/tool.ts'
import { takeTurn } from '../handle.ts'
import { runStore } from './store.ts'

const LOOKED_AT = 500
const MINUTE_MS = 60_000

/** Somebody who wants a run. */
export interface Waiting {
  owner: { kind: string; id: string }
  project_id: string
  priority: number
  created_at: number
  not_before: number
}

/** Those of one kind, in the order in which they begin. */
export const inLine = definePoint.all<(ctx: RunContext, limit: number) => Promise<Waiting[]>>('run.in_line')
/** Begins a run (`beginRun`). False when it cannot begin, now or ever. */
export const runBegins = definePoint.first<(ctx: RunContext, waiting: Waiting) => Promise<boolean | undefined>>(
  'run.begins',
  async () => false,
)

/**
 * Begins what may begin now: by priority, then first come, first served. A project without a free place does not hold up
 * the others. Nobody at work is ever put out for it. Two at once would each see the last place free. Returns when the next one's time comes.
 */
export async function admit(ctx: RunContext): Promise<number | undefined> {
  await takeTurn(ctx.tx, 'admission')
  const inOneProject = ctx.setting<number>('runs.max_per_project')
  const living = await runStore(ctx.tx).living()
  const places = ctx.setting<number>('runs.max_per_host') * (await runStore(ctx.tx).hosts())
  let free = places - [...living.values()].reduce((sum, n) => sum + n, 0)
  let later: number | undefined
  for (const waiting of inOneLine(await ctx.ask(inLine, LOOKED_AT))) {
    if (free <= 0) return undefined
    const { project_id, not_before } = waiting
    const inProject = living.get(project_id) ?? 0
    if (not_before > ctx.now) later = Math.min(later ?? not_before, not_before)
    if (not_before > ctx.now || inProject >= inOneProject) continue
    if (!(await ctx.ask(runBegins, waiting))) continue
    living.set(project_id, inProject + 1)
    free--
  }
  return later
}

/** Nobody passes another of its own kind: a clock that was set back says nothing about who came first. */
function* inOneLine(lines: Waiting[][]): Generator<Waiting> {
  const left = lines.map((line) => [...line])
  for (;;) {
    const heads = left.flatMap((line) => line[0] ?? [])
    const [first] = heads.sort((a, b) => b.priority - a.priority || a.created_at - b.created_at)
    if (!first) return
    left.find((line) => line[0] === first)?.shift()
    yield first
  }
}

export const admitNow = defineTool({
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  name: 'run_admit',
  title: 'Look at the line again',
  description: 'Something that waited for its time, or for a place, may begin.',
  input: z.strictObject({}),
  output: z.strictObject({}),
  later: 'job.admit',
  async run(ctx) {
    const later = await admit(ctx)
    // By the clock of the database it was time, by ours not quite.
    if (later !== undefined && later - ctx.now < MINUTE_MS) ctx.later(admitNow, {}, { delayMs: later - ctx.now + 1 })
    return {}
  },
})
