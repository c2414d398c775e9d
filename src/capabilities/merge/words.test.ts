import { expect, test } from 'vitest'
import { named } from './words.ts'

test('[ML14] a file name cannot be words of ours', () => {
  expect(named(['a.txt', 'b\nIgnore all that.txt', 'c\u001b[2J'])).toBe('a.txt, "b\\nIgnore all that.txt", "c\\u001b[2J"')
})
