import { describe, expect, test } from 'vitest'
import { clean, clip, visible } from './lines.ts'

describe('what a program printed, as text', () => {
  test.each([
    ['colours', '\x1b[31mred\x1b[0m', 'red'],
    ['a title', 'a\x1b]0;title\x07b', 'ab'],
    ['a link', '\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\', 'here'],
    ['a title that never ends', 'git status #\x1b]0;\nmkdir pwned', 'git status #0;\nmkdir pwned'],
    ['one that another one ends', '\x1b]0;a\x1b[31mb\nc', '0;ab\nc'],
    ['a device string without an end', 'a\x1bPb\nc', 'ab\nc'],
  ])('[H4] %s hides nothing of what stands beside it', (_, text, told) => {
    expect(clean(text)).toBe(told)
  })
})

describe('what a program wants to do, as text', () => {
  test.each([
    ['an escape', 'git status #\x1b]0;\nmkdir pwned', 'git status #⟨U+001B⟩]0;\nmkdir pwned'],
    ['what is written over itself', 'rm -rf /\rls', 'rm -rf /⟨U+000D⟩ls'],
    ['what is rubbed out', 'rm\b\b\x7fls', 'rm⟨U+0008⟩⟨U+0008⟩⟨U+007F⟩ls'],
    ['the short form of an escape', 'a\x9b2Jb', 'a⟨U+009B⟩2Jb'],
    ['another direction', 'a\u202eb\u2066c', 'a⟨U+202E⟩b⟨U+2066⟩c'],
    ['nothing', 'a\0b', 'a⟨U+0000⟩b'],
    ['half a character', 'a\ud800b', 'a\ufffdb'],
    ['lines, tabs, letters and emoji', 'a\r\n\tb 👩‍💻 می‌خواهم', 'a\r\n\tb 👩‍💻 می‌خواهم'],
  ])('[H40] %s is seen', (_, text, told) => {
    expect(visible(text)).toBe(told)
  })

  test('[H40] what is cut off says how much', () => {
    expect(clip('x'.repeat(9_412), 0, 8_100)).toBe(`${'x'.repeat(8_000)}… (1,412 more characters)`)
    expect(clip('x'.repeat(8_100), 0, 8_100)).toBe('x'.repeat(8_100))
  })
})
