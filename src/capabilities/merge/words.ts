import type { LineRow } from './store.ts'

/** Of files as somebody called them: a line feed or an escape in a name would be words of ours in a letter. */
export function named(files: string[]): string {
  return files.map((file) => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(file) ? JSON.stringify(file) : file)).join(', ')
}

/** The branch did not follow what landed: how far it is behind, why, and what to do. Empty when it has all of it. */
export function behindWords({ target, behind, behind_reason }: Pick<LineRow, 'target' | 'behind' | 'behind_reason'>, repo: string): string {
  return behind ? `${target} is ${behind} behind what landed. ${behind_reason ?? ''} (repo_sync ${repo})` : ''
}

/** Reasons that people typed often lack the full stop. */
export function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** What lets a line go on that is held. */
export function goOn(repo: string, target: string): string {
  return `signalbox merge retry --repo-id ${repo} --target ${target}`
}

const MOST_LINES = 40

export function lastLines(log: string | null): string | null {
  return log === null ? null : log.trimEnd().split('\n').slice(-MOST_LINES).join('\n')
}
