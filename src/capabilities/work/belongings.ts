import type { Belonging } from '../project/index.ts'
import { handleOf, isDuty, taskStore, transition } from '../task/index.ts'
import { takeAway } from './effects.ts'
import { workStore } from './store.ts'

const MOST = 1_000

/** The work in a repository: what has not landed is closed with its task. Every branch stays. */
const belonging: Belonging = {
  async open({ view }, { repo }) {
    const open: string[] = []
    for (const { task_id } of repo ? await workStore(view).openIn(repo, MOST) : []) {
      const task = await taskStore(view).find(task_id)
      if (task && !isDuty(task)) open.push(`${handleOf(task)} (${task.status})`)
    }
    return open
  },
  async end(ctx, { repo }, reason) {
    if (!repo) return
    const store = workStore(ctx.tx)
    for (const { task_id } of await store.openIn(repo, MOST)) {
      const task = await taskStore(ctx.tx).find(task_id)
      if (task) await transition(ctx, task, 'DONE', reason)
    }
    for (const row of await store.madeIn(repo, MOST)) await takeAway(ctx, row)
  },
}

export const workInRepo = async () => belonging
