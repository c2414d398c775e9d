import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8')

/** Each walk of docs/architecture.md: how many files it says it has, and those that it lists. */
const walks = read('../../docs/architecture.md')
  .split(/^(?=\*\*[^\n]* until )/m)
  .slice(1)
  .map((walk) => ({
    says: Number(walk.match(/ (\d+) files;/)?.[1]),
    files: [...walk.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, file]) => file as string),
  }))

test('the walks of the architecture go through files that are there, as many as they say', () => {
  expect(walks).toHaveLength(3)
  for (const { says, files } of walks) {
    expect(files).toHaveLength(says)
    expect(files.filter((file) => !existsSync(fileURLToPath(new URL(file, import.meta.url))))).toEqual([])
  }
})
