import type { LookContext } from '../../kernel/tool.ts'
import { isAfter, type Need, type Needed, type NeedKind, type Question, type Step } from '../need/index.ts'
import { projectStore } from '../project/index.ts'
import { mergeStore } from './store.ts'

const HELD: NeedKind = { kind: 'line', title: 'Merge lines on hold', urgency: 'soon' }
const BEHIND: NeedKind = { kind: 'branch', title: 'Branches behind their line', urgency: 'later' }

/** Work that is approved and does not land, and branches that have not got what did. */
export async function linesToMend({ view }: LookContext, { project, kinds, after }: Question): Promise<Needed> {
  const lines = (await mergeStore(view).lines(project, undefined)).filter(({ held, behind }) => held !== null || behind > 0)
  const needs: Need[] = []
  const steps = new Map<string, Step[]>()
  for (const { repo_id, target, project_id, held, behind, behind_reason, updated_at } of lines) {
    const repo = (await projectStore(view).repo(repo_id))?.handle ?? repo_id
    const id = `${repo_id}:${target}`
    needs.push({
      kind: held === null ? BEHIND.kind : HELD.kind,
      id,
      handle: null,
      title: held === null ? `${target} of ${repo} is ${behind} behind what landed` : `Nothing lands on ${target} of ${repo}`,
      detail: held ?? behind_reason,
      by: null,
      task_id: null,
      project_id,
      since: updated_at,
    })
    const sync = { tool: 'repo_sync', arguments: { repo_id: repo } }
    steps.set(id, [held === null ? sync : { tool: 'merge_retry', arguments: { repo_id: repo, target } }])
  }
  const count = ({ kind }: NeedKind) => needs.filter((need) => need.kind === kind).length
  const isNext = (need: Need) => isAfter(need, after(need.kind === HELD.kind ? HELD.urgency : BEHIND.urgency))
  return {
    kinds: [HELD, BEHIND],
    counts: { [HELD.kind]: count(HELD), [BEHIND.kind]: count(BEHIND) },
    needs: needs.filter((need) => kinds?.includes(need.kind) !== false && isNext(need)),
    steps: async () => steps,
  }
}
