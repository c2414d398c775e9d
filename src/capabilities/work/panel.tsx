import { defineTaskSections } from '../../ui/panel.ts'
import { Changes } from './panel/changes.tsx'
import { DIFF_TOOL } from './panel/diff.ts'

export const taskSections = defineTaskSections({ tab: 'Changes', order: 30, needs: DIFF_TOOL, component: Changes })
