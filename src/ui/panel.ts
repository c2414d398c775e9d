import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import type { Output, ToolName } from './client.ts'
import type { LiveEvent } from './stream.ts'

/** A screen of the dashboard. A capability's `panel.tsx` exports `panels`; the shell finds them by themselves. */
export interface Panel {
  /** Where it is: `/board`, or with a variable `/task/$task`. */
  path: string
  title: string
  component: () => ReactNode
  /** In the navigation, in this order; without it the panel is reached from others. */
  nav?: { icon: LucideIcon; order: number /** After `g`. */; key: string /** What waits there for somebody. */; count?: () => ReactNode }
}

export function definePanels(...panels: Panel[]): Panel[] {
  return panels
}

export type TaskOnPage = Output<'task_context'>['task']

/** A part of the page of a task. A capability's `panel.tsx` exports them as `taskSections`: the task knows nobody who works on it. */
export interface TaskSection {
  /** The tab in which it stands; without one it stands above the tabs, whichever is open. */
  tab?: string
  /** Among the tabs, and within one. */
  order: number
  /** Who may not call this does not see the section. */
  needs: ToolName
  component: (props: { task: TaskOnPage; openTab(tab: string): void }) => ReactNode
}

export function defineTaskSections(...sections: TaskSection[]): TaskSection[] {
  return sections
}

/** Items of the menu on a card of the board, as `taskMenu`; drawn when somebody opens it. */
export type TaskMenu = (props: { task: TaskSummary }) => ReactNode
export type TaskSummary = Output<'task_list'>['tasks'][number]

/** Events in words, by their type; each goes on after the name of who did it. A capability's `panel.tsx` exports them as `sentences`. */
export type Sentences = Record<string, (event: LiveEvent) => ReactNode>
