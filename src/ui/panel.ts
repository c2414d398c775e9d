import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import type { LiveEvent } from './stream.ts'

/** A screen of the dashboard. A capability's `panel.tsx` exports `panels`; the shell finds them by themselves. */
export interface Panel {
  /** Where it is: `/board`, or with a variable `/task/$task`. */
  path: string
  title: string
  component: () => ReactNode
  /** In the navigation, in this order; without it the panel is reached from others. */
  nav?: { icon: LucideIcon; order: number /** After `g`. */; key: string }
}

export function definePanels(...panels: Panel[]): Panel[] {
  return panels
}

/** Events in words, by their type; each goes on after the name of who did it. A capability's `panel.tsx` exports them as `sentences`. */
export type Sentences = Record<string, (event: LiveEvent) => ReactNode>
