import { pause } from '../../kernel/patience.ts'
import type { Reactor, ReactorContext } from '../../kernel/reactor.ts'
import { taskStore } from '../task/index.ts'
import { epicStore } from './store.ts'

/** After any of these somebody may have to be started, in the epic of the task. */
const OF_TASKS = ['task.created', 'task.updated', 'task.moved', 'task.deleted', 'job.ended', 'merge.stuck']
const OF_EPICS = ['epic.created', 'epic.updated', 'epic.moved']

const TRY_AGAIN_MS = 1_000

/** Hears what happens in epics, and has each compared with what it wants. All is in rows: what was missed is seen at the next start. */
export const watcher: Reactor = {
  name: 'epics',
  async start(ctx) {
    const one = new OneAtATime(ctx)
    for (const type of OF_EPICS) ctx.on(type, (event) => one.ask(event.subject))
    for (const type of OF_TASKS) ctx.on(type, (event) => void ofTask(ctx, event.task).then((epic) => epic && one.ask(epic)))
    for (const { id } of await epicStore(ctx.view).inProgress()) one.ask(id)
    return { ended: () => one.idle() }
  },
}

async function ofTask(ctx: ReactorContext, id: string | null | undefined): Promise<string | null | undefined> {
  const task = id ? await taskStore(ctx.view).find(id).catch(ctx.defect) : undefined
  return task?.epic_id
}

/** However much happens at once, an epic is looked at once more after it. */
class OneAtATime {
  readonly #ctx: ReactorContext
  readonly #running = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()

  constructor(ctx: ReactorContext) {
    this.#ctx = ctx
  }

  ask(epic: string): void {
    if (this.#ctx.signal.aborted) return
    if (this.#running.has(epic)) {
      this.#again.add(epic)
      return
    }
    this.#running.set(epic, this.#look(epic))
  }

  async idle(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #look(epic: string): Promise<void> {
    try {
      await this.#ctx.report('epic_reconcile', { epic_id: epic })
    } catch (error) {
      // A row that somebody else has changed meanwhile, or storage that was away: nobody else would look again.
      if (!this.#ctx.signal.aborted) this.#ctx.defect(error)
      await pause(TRY_AGAIN_MS, this.#ctx.signal)
      this.#again.add(epic)
    }
    this.#running.delete(epic)
    if (this.#again.delete(epic)) this.ask(epic)
  }
}
