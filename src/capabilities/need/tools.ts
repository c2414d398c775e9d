import { z } from 'zod'
import { iso, PageSize } from '../../kernel/schema.ts'
import { defineTool } from '../../kernel/tool.ts'
import { ProjectId } from '../ids.ts'
import { END, isAfter, type Mark, type Need, type Needed, needs, type Question, START, type Step } from './point.ts'
import { KindView, NeedView, URGENCIES, type UrgencyName } from './schema.ts'

const PAGE = /^([0-2])\.([0-9]{1,15})\.(.{1,300})$/

export const list = defineTool({
  name: 'need_list',
  title: 'List what needs a person',
  description: 'Everything that waits for a person, most urgent first, then oldest, with the calls that resolve it.',
  input: z.strictObject({
    project_id: ProjectId.optional(),
    kinds: z.array(z.string().max(40)).min(1).max(40).optional().describe('Only these'),
    limit: PageSize,
    after: z.string().max(400).regex(PAGE, 'not a page of need_list').describe('`next` of the page before').optional(),
  }),
  output: z.strictObject({
    needs: z.array(NeedView),
    kinds: z.array(KindView).describe('Counts by kind, over all pages'),
    total: z.int(),
    tasks: z.record(z.string(), z.int()).describe('Number of tasks by status'),
    next: z.string().nullable(),
    cursor: z.string(),
  }),
  example: { limit: 20 },
  impact: 'read',
  profile: 'viewer',
  async look(ctx, { project_id, kinds, limit, after }) {
    const cursor = await ctx.cursor()
    const all = await ctx.ask(needs, { project: project_id, kinds, limit: limit + 1, after: marksOf(after) })
    const known = all.flatMap((one) => one.kinds.map((kind) => ({ ...kind, count: one.counts[kind.kind] ?? 0 })))
    const urgencyOf = new Map(known.map(({ kind, urgency }) => [kind, urgency]))
    const rank = ({ kind }: Need) => URGENCIES.indexOf(urgencyOf.get(kind) ?? 'later')
    const found = all.flatMap((one) => one.needs).sort((a, b) => rank(a) - rank(b) || (isAfter(a, b) ? 1 : -1))
    const page = found.slice(0, limit)
    const steps = await stepsOf(all, page)
    const last = page.at(-1)
    return {
      needs: page.map(({ since, ...need }) => ({
        ...need,
        urgency: urgencyOf.get(need.kind) ?? 'later',
        began_at: iso(since),
        steps: steps.get(need.id) ?? [],
      })),
      kinds: known.filter(({ count }) => count > 0).sort((a, b) => URGENCIES.indexOf(a.urgency) - URGENCIES.indexOf(b.urgency)),
      total: known.reduce((sum, { kind, count }) => sum + (kinds?.includes(kind) === false ? 0 : count), 0),
      tasks: Object.assign({}, ...all.map(({ totals }) => totals ?? {})),
      next: last && found.length > limit ? `${rank(last)}.${last.since}.${last.id}` : null,
      cursor,
    }
  },
})

/** What is more urgent than where the page before ended was shown by it; of what is less, nothing was. */
function marksOf(after: string | undefined): Question['after'] {
  const [, at = '0', since = '0', id = ''] = (after ?? '').match(PAGE) ?? []
  const mark: Mark = after === undefined ? START : { since: Number(since), id }
  return (urgency: UrgencyName) => {
    const rank = URGENCIES.indexOf(urgency)
    return rank === Number(at) ? mark : rank < Number(at) ? END : START
  }
}

async function stepsOf(all: Needed[], page: Need[]): Promise<Map<string, Step[]>> {
  const steps = new Map<string, Step[]>()
  for (const one of all) {
    const shown = page.filter((need) => one.needs.includes(need))
    if (shown.length) for (const [id, its] of await one.steps(shown)) steps.set(id, its)
  }
  return steps
}
