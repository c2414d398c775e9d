import type { Output } from '../../../ui/client.ts'

export type Diff = Pick<Output<'diff_get'>, 'files' | 'patch' | 'cut'>
/** A file that a task changed. */
export type Change = Diff['files'][number]

/** The part of the patch that is about a file; undefined when it was cut off, or when git writes its name otherwise. */
export function partOf(diff: Diff, { path, from }: Change): string | undefined {
  const parts = diff.patch.split(/^(?=diff --git )/m)
  const heading = `diff --git a/${from ?? path} b/${path}\n`
  const own = parts.filter((part) => part.startsWith(heading))
  const last = parts.at(-1)
  if (!own.length || (diff.cut && last !== undefined && own.includes(last))) return undefined
  return own.join('')
}

export interface Line {
  /** Its place in the patch: the same text may stand there twice. */
  key: number
  is: 'added' | 'removed' | 'same' | 'hunk' | 'note'
  text: string
  before: number | undefined
  after: number | undefined
}

const HUNK = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)/

/** Lines with their numbers in the old and the new file. What stands before the first hunk says nothing that the list does not. */
export function linesOf(part: string): Line[] {
  const lines: Line[] = []
  let [before, after, inside] = [0, 0, false]
  for (const [key, text] of part.replace(/\n$/, '').split('\n').entries()) {
    const hunk = HUNK.exec(text)
    if (hunk) {
      ;[before, after, inside] = [Number(hunk[1]), Number(hunk[2]), true]
      lines.push({ key, is: 'hunk', text, before: undefined, after: undefined })
    } else if (text.startsWith('diff --git ')) inside = false
    else if (!inside) {
      if (text.startsWith('Binary files ')) lines.push({ key, is: 'note', text: 'Not text', before: undefined, after: undefined })
    } else if (text.startsWith('+')) lines.push({ key, is: 'added', text: text.slice(1), before: undefined, after: after++ })
    else if (text.startsWith('-')) lines.push({ key, is: 'removed', text: text.slice(1), before: before++, after: undefined })
    else if (text.startsWith('\\')) lines.push({ key, is: 'note', text: text.slice(2), before: undefined, after: undefined })
    else lines.push({ key, is: 'same', text: text.slice(1), before: before++, after: after++ })
  }
  return lines
}
