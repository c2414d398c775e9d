import { describe, expect, test } from 'vitest'
import { type Change, linesOf, partOf } from './patch.ts'

const file = (path: string, from: string | null = null) => ({ path, from, status: 'M', added: 1, removed: 1 }) as Change
const A = 'diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@ top\n same\n-old\n+diff --git a/b b/b\n'
const B =
  'diff --git a/b old b/b new\nsimilarity index 90%\n--- a/b old\n+++ b/b new\n@@ -3 +3,2 @@\n x\n+y\n\\ No newline at end of file\n'

describe('a patch', () => {
  test('[U16] is taken apart by file, also when one was moved or has a line that looks like a heading', () => {
    const diff = { files: [file('a.txt'), file('b new', 'b old')], patch: A + B, cut: false }
    expect(partOf(diff, file('a.txt'))).toBe(A)
    expect(partOf(diff, file('b new', 'b old'))).toBe(B)
    expect(partOf(diff, file('c.txt'))).toBe(undefined)
  })

  test('[U16] that was cut is not taken for the whole of the last file', () => {
    const diff = { files: [file('a.txt'), file('b new', 'b old')], patch: A + B, cut: true }
    expect(partOf(diff, file('a.txt'))).toBe(A)
    expect(partOf(diff, file('b new', 'b old'))).toBe(undefined)
  })

  test('[U16] has the numbers of its lines, before and after', () => {
    const shown = (part: string) => linesOf(part).map(({ is, text, before, after }) => `${is} ${before ?? ''}:${after ?? ''} ${text}`)
    expect(shown(A)).toEqual(['hunk : @@ -1,2 +1,2 @@ top', 'same 1:1 same', 'removed 2: old', 'added :2 diff --git a/b b/b'])
    expect(shown(B)).toEqual(['hunk : @@ -3 +3,2 @@', 'same 3:3 x', 'added :4 y', 'note : No newline at end of file'])
    expect(shown('diff --git a/x b/x\nBinary files a/x and b/x differ\n')).toEqual(['note : Not text'])
  })
})
