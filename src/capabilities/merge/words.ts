import type { LineRow } from './store.ts'

/** Of files as somebody called them: a line feed or an escape in a name would be words of ours in a letter. */
export function named(files: string[]): string {
  return files.map((file) => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(file) ? JSON.stringify(file) : file)).join(', ')
}

/** What both sides have changed. */
export function placesOf(files: string[]): string {
  return named(files) || 'everything: they have no history in common'
}

/** Of a branch that a checkout may not have yet. */
export function lineRef(target: string): string {
  return `refs/signalbox/line/${target}`
}

const LOG_IN_LETTER = 4_000

/** Of checks, for a letter. */
export function printed(log: string): string {
  return `The end of what they printed:\n\n\`\`\`\n${log.slice(-LOG_IN_LETTER)}\n\`\`\``
}

/** The branch did not follow what landed: how far it is behind, why, and what to do. Empty when it has all of it. */
export function behindWords({ target, behind, behind_reason }: Pick<LineRow, 'target' | 'behind' | 'behind_reason'>, repo: string): string {
  return behind ? `${target} is ${behind} behind what landed. ${behind_reason ?? ''} (repo_sync ${repo})` : ''
}

/** What lets a line go on that is held. */
export function goOn(repo: string, target: string): string {
  return `signalbox merge retry --repo-id ${repo} --target ${target}`
}
