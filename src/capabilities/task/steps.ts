import { definePoint } from '../../kernel/point.ts'
import type { LookContext } from '../../kernel/tool.ts'
import type { Step } from '../need/index.ts'
import type { TaskRow } from './store.ts'

export interface ToMove {
  task: TaskRow
  /** As `task.attention` has them; undefined: its status says what to do. */
  told: Step[] | undefined
}

/** The calls by which a person moves these tasks, each complete. */
export type StepSource = (ctx: LookContext, tasks: ToMove[]) => Promise<Map<string, Step[]>>

/** The first that knows a task has the word. */
export const taskSteps = definePoint.all<StepSource>('task.steps', ['review', 'terminal', 'agent'])
