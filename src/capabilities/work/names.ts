import { slug } from '../handle.ts'

const RANDOM_CHARACTERS = 8
const PREFIX = 'signalbox/'

/** THE function that names worktrees and branches: the folder is the name, the branch has our prefix. */
export function nameOf(id: string, title: string, of: 'task' | 'epic' = 'task'): { name: string; branch: string } {
  const name = `${of}-${id.slice(-RANDOM_CHARACTERS)}-${slug(title, 'work')}`
  return { name, branch: `${PREFIX}${name}` }
}

/** Of a task or an epic. */
export function isOurs(branch: string): boolean {
  return branch.startsWith(PREFIX)
}
