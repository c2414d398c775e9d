import { FolderGit2 } from 'lucide-react'
import { definePanels } from '../../ui/panel.ts'
import { Projects } from './panel/projects.tsx'

export const panels = definePanels({
  path: '/projects',
  title: 'Projects',
  component: Projects,
  nav: { icon: FolderGit2, order: 2, key: 'p' },
})

export { sentences } from './panel/sentences.tsx'
