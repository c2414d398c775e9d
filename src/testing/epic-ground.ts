import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, test } from 'vitest'
import { EFFECT_TIMES } from '../kernel/effect.ts'
import type { Git } from '../ports/git.ts'
import { type Caller, openTestApp } from './app.ts'
import { realGit } from './git.ts'
import { type Work, WorkGround } from './work.ts'

/** A real repository, an epic in it, and a supervisor who leads it from a window of their own. */
export class EpicGround extends WorkGround {
  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  epic: any
  supervisor!: Caller

  override async prepare(): Promise<this> {
    await super.prepare()
    const { app } = this
    this.epic = (await app.owner.call('epic_create', { title: 'Passkeys', start: false })).epic
    this.supervisor = await app.agent('supervisor')
    await app.owner.call('epic_update', { epic_id: this.epic.id, supervisor_id: this.supervisor.id })
    return this
  }

  override begun(title = 'Do it', fields: object = {}): Promise<Work> {
    return super.begun(title, { epic_id: this.epic.id, ...fields })
  }

  decide({ task }: Work, decision: string, more: object = {}) {
    return this.supervisor.call('review_decide', { task_id: task.id, decision, ...more })
  }

  async queue(): Promise<string[]> {
    const { queue } = await this.supervisor.call('review_queue')
    return queue.map(({ handle }: { handle: string }) => handle)
  }

  override landed(branch = this.epic.branch): string[] {
    return super.landed(branch)
  }
}

export const epicTest = test.extend<{ ground: EpicGround }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  ground: async ({}, use) => {
    const app = await openTestApp()
    await use(await new EpicGround(app).prepare())
    await app.close()
  },
})

/** Real git, whose merges wait or fail as the test says. */
export async function epicGround(more: (real: Git) => Partial<Git>): Promise<EpicGround> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-merges-'))
  const real = realGit({ worktrees: join(folder, 'worktrees') })
  const app = await openTestApp({ ports: { git: { ...real, ...more(real) } }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
  onTestFinished(async () => {
    await app.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return new EpicGround(app).prepare()
}
