import { type Refusal, refuse } from '../../kernel/error.ts'
import type { LookContext } from '../../kernel/tool.ts'
import { type Git, GitRefusal, type Place } from '../../ports/git.ts'
import { projectStore } from '../project/index.ts'
import { nameOf } from '../work/index.ts'
import { epicHandle } from './rules.ts'
import type { EpicRow } from './store.ts'

/** Whoever believes that an epic is completed believes that its work is on the base branch. */
export async function notMerged(ctx: LookContext, epic: EpicRow): Promise<Refusal | undefined> {
  const repo = epic.repo_id ? await projectStore(ctx.view).repo(epic.repo_id) : undefined
  if (!repo) return undefined
  const { git } = ctx.ports
  const { base_branch: base, branch } = epic
  const place = {
    repo: repo.path,
    path: git.placeFor({ repo_handle: repo.handle, name: nameOf(epic.id, epic.title, 'epic').name }),
    branch,
  }
  // What was merged at the remote is on its branch first.
  for (const target of [`refs/heads/${base}`, `refs/remotes/origin/${base}`]) if (await isOn(git, place, target)) return undefined
  return refuse('CONFLICT', `${epicHandle(epic)} is not merged: ${base} does not have what is on ${branch}.`, {
    hint: `Merge it in ${repo.path} (git merge ${branch}), then say so again; where this repository cannot show that it was merged, say merged_elsewhere too.`,
  })
}

/** By its commits; or, of a squash or a rebase, by what they changed: every file that the epic touched is the same there. */
async function isOn(git: Git, place: Place, target: string): Promise<boolean> {
  try {
    const { head, ahead } = await git.state(place, target)
    if (head === null || ahead === 0) return head !== null
    const differing = await git.diff(place, { from: target, at: `refs/heads/${place.branch}`, bytes: 0 })
    const touched = await git.diff(place, { from: target, follows: target, at: `refs/heads/${place.branch}`, bytes: 0 })
    const differs = new Set(differing.files.flatMap(({ path, from }) => [path, from]))
    return touched.files.every(({ path, from }) => !differs.has(path) && (from === null || !differs.has(from)))
  } catch (error) {
    if (error instanceof GitRefusal) return false
    throw error
  }
}
