import { reaches } from '../../kernel/policy.ts'
import type { LookContext } from '../../kernel/tool.ts'
import type { Needed, NeedKind, Question } from '../need/index.ts'
import { effectList } from './store.ts'
import { list } from './tools.ts'

const STUCK: NeedKind = { kind: 'effect', title: 'Stuck outside of Signalbox', urgency: 'soon' }

/** Work on the outside world that is not done again by itself. It belongs to no project. */
export async function stuckEffects(ctx: LookContext, { project, kinds, limit, after }: Question): Promise<Needed> {
  const isSeen = project === undefined && reaches(ctx.principal.profile, list.profile)
  const isWanted = isSeen && kinds?.includes(STUCK.kind) !== false
  const rows = isWanted ? await effectList(ctx.view).stuckFrom(after(STUCK.urgency), limit) : []
  const { dead = 0, unknown = 0 } = isSeen ? await effectList(ctx.view).counts() : {}
  return {
    kinds: [STUCK],
    counts: { [STUCK.kind]: dead + unknown },
    needs: rows.map(({ id, type, state, error, finished_at }) => ({
      kind: STUCK.kind,
      id,
      handle: null,
      title: `${type} is ${state}`,
      detail: error,
      by: null,
      task_id: null,
      project_id: null,
      since: finished_at ?? 0,
    })),
    steps: async (shown) =>
      new Map(shown.map(({ id }) => [id, ['effect_retry', 'effect_drop'].map((tool) => ({ tool, arguments: { effect_id: id } }))])),
  }
}
