import { z } from 'zod'
import { refuse } from '../../kernel/error.ts'
import { defineTool, type RunContext, type WatchContext } from '../../kernel/tool.ts'
import type { RepoFacts } from '../../ports/git.ts'
import { RepoId } from '../ids.ts'
import { gone, projectStore, RepoView, repoView, synced } from '../project/index.ts'
import { watchUntil } from '../until.ts'
import { followLine, followQueue } from './effects.ts'
import { lineFollowed } from './schema.ts'
import { mergeStore } from './store.ts'

const FOLLOW_MS = 30_000

const Branch = z.strictObject({
  target: z.string(),
  behind: z.int().describe('How many commits of its line the branch does not have'),
  reason: z.string().nullable().describe('Why it could not follow, and what to do'),
})

const Wanted = z.strictObject({ repo_id: RepoId })

export const syncRepo = defineTool({
  name: 'repo_sync',
  title: 'Bring a repository up to date',
  description: "Let its branches follow what was merged, as far as that touches nobody's changes, and read its head and remote again.",
  input: Wanted,
  output: z.strictObject({ repo: RepoView, changed: z.boolean(), branches: z.array(Branch), message: z.string() }),
  example: { repo_id: 'web-shop' },
  impact: 'write',
  outcome: ({ branches }) => (branches.some(({ behind }) => behind > 0) ? 'failed' : 'done'),
  profile: 'operator',
  async prepare(ctx, input) {
    const row = await projectStore(ctx.view).repo(input.repo_id)
    const facts = row && (await ctx.ports.git.inspect(row.path))
    if (!row) return refuse('RESOURCE_NOT_FOUND', 'That repository is gone.')
    return facts?.top === row.path ? facts : gone(row)
  },
  async run(ctx: RunContext, input: z.output<typeof Wanted>, facts?: RepoFacts) {
    const before = await projectStore(ctx.tx).repo(input.repo_id)
    if (!before || !facts) return refuse('RESOURCE_NOT_FOUND', 'That repository is gone.')
    const changed = await synced(ctx, before, facts)
    const request = ctx.id('sync')
    const lines = await mergeStore(ctx.tx).lines(undefined, before.id)
    for (const { repo_id, target } of lines) ctx.enqueue(followLine({ repo_id, target, request }, { queue: followQueue(repo_id, target) }))
    return { repo_id: before.id, before: before.head, changed, request, targets: lines.map(({ target }) => target) }
  },
  watch: (ctx, _input, begun: Begun) => followed(ctx, begun),
})

interface Begun {
  repo_id: string
  /** The head that was known. */
  before: string | null
  changed: boolean
  request: string
  targets: string[]
}

async function followed(ctx: WatchContext, { repo_id, before, changed, request, targets }: Begun) {
  const missing = new Set(targets)
  await watchUntil(ctx, {
    about: { subject: repo_id },
    types: [lineFollowed],
    withinMs: FOLLOW_MS,
    recent: targets.length * 2 + 10,
    look(events) {
      for (const { data } of events) if (data.request === request) missing.delete(String(data.target))
      return missing.size ? undefined : true
    },
  })
  const repo = await projectStore(ctx.view).repo(repo_id)
  if (!repo) throw new Error(`the repository ${repo_id} is not there`)
  const lines = (await mergeStore(ctx.view).lines(undefined, repo_id)).filter(({ target }) => targets.includes(target))
  const branches = lines.map(({ target, behind, behind_reason }) => ({ target, behind, reason: behind_reason }))
  const behind = branches.filter((branch) => branch.behind > 0 || branch.reason !== null)
  const message = missing.size
    ? `Not looked at yet: ${[...missing].join(', ')}. merge_status tells.`
    : behind.map(({ target, behind: by, reason }) => (by ? `${target} is ${by} behind: ${reason}` : reason)).join(' ') ||
      'Everything is up to date.'
  return { repo: repoView(repo), changed: changed || repo.head !== before, branches, message }
}
