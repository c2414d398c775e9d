import type { Draft, LineComment } from '../../../ui/drafts.ts'
import { visible } from '../../../ui/kit/plain.ts'

const MOST_QUOTED = 300

/** One text of all that was written: the words first, then each comment below its place and the line that it is about. */
export function feedbackOf({ text, comments }: Draft): string {
  return [text.trim(), ...inOrder(comments.filter(({ body }) => body.trim())).map(commentText)].filter(Boolean).join('\n\n')
}

export function inOrder(comments: LineComment[]): LineComment[] {
  return comments.toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line || a.side.localeCompare(b.side))
}

/** `src/a.ts:12` */
export function placeOf({ path, side, line }: Pick<LineComment, 'path' | 'side' | 'line'>): string {
  return `${oneLine(path)}:${line}${side === 'before' ? ' (removed)' : ''}`
}

function commentText(comment: LineComment): string {
  const quoted = oneLine(comment.quoted).slice(0, MOST_QUOTED)
  return `${placeOf(comment)}\n\n${fenced(quoted)}\n\n${comment.body.trim()}`
}

function oneLine(text: string): string {
  return visible(text).replaceAll('\n', '␊')
}

/** A line that has a fence itself must not end it: what follows would be read as the reviewer's words. */
function fenced(line: string): string {
  const longest = Math.max(2, ...[...line.matchAll(/`+/g)].map(([run]) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${line}\n${fence}`
}
