import { describe, expect, test } from 'vitest'
import type { LineComment } from '../../../ui/drafts.ts'
import { feedbackOf } from './feedback.ts'

const on = (path: string, line: number, body: string, more: Partial<LineComment> = {}): LineComment => ({
  path,
  side: 'after',
  line,
  quoted: 'const x = 1',
  body,
  ...more,
})

describe('comments on lines', () => {
  test('[U24] become one text, in the order of files and lines, each with its place and its line', () => {
    const comments = [
      on('src/b.ts', 3, 'Why?', { side: 'before', quoted: 'old' }),
      on('src/a.ts', 12, 'Later.'),
      on('src/a.ts', 4, ' Rename it. '),
    ]
    expect(feedbackOf({ text: ' Nearly. \n', comments })).toBe(
      [
        'Nearly.',
        'src/a.ts:4\n\n```\nconst x = 1\n```\n\nRename it.',
        'src/a.ts:12\n\n```\nconst x = 1\n```\n\nLater.',
        'src/b.ts:3 (removed)\n\n```\nold\n```\n\nWhy?',
      ].join('\n\n'),
    )
  })

  test('[U24] with nothing in them are left out, and nothing at all is no feedback', () => {
    expect(feedbackOf({ text: '', comments: [on('a', 1, ' '), on('b', 1, 'Yes')] })).toBe('b:1\n\n```\nconst x = 1\n```\n\nYes')
    expect(feedbackOf({ text: ' ', comments: [on('a', 1, '')] })).toBe('')
  })

  test('[U24] quote a line that would end its quotation, hide or act on a terminal as what it is', () => {
    const text = feedbackOf({ text: '', comments: [on('a\nb', 1, 'No.', { quoted: '```` \u001b[2J\u202eevil' })] })
    expect(text).toBe('a␊b:1\n\n`````\n```` ␛[2J⟨U+202E⟩evil\n`````\n\nNo.')
  })
})
