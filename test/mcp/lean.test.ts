import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { Pipe } from './pipe.ts'

const DIST = join(dirname(BIN), '../dist')
const MOST_BYTES = 70_000_000

test('the pipe is made of Node and itself: no SDK, no schema library, no database', () => {
  const main = readFileSync(join(DIST, 'main.js'), 'utf8')
  const entry = /case "mcp":\s*return \(await import\("(\.\/[^"]+)"\)\)/.exec(main)?.[1]
  expect(entry).toBeDefined()
  const seen = new Map([...graph('./main.js'), ...graph(entry as string)])
  expect([...seen.values()].flat().filter((name) => !isBuiltin(name) && !name.startsWith('.'))).toEqual([])
  const bytes = [...seen.keys()].reduce((sum, file) => sum + readFileSync(join(DIST, file)).length, 0)
  expect(bytes).toBeLessThan(60_000)
  // The same look at the daemon finds what is meant, so that the one above is not blind.
  const serve = /case "serve":\s*return \(await import\("(\.\/[^"]+)"\)\)/.exec(main)?.[1] as string
  expect([...graph(serve).values()].flat()).toContain('@modelcontextprotocol/server')
})

describe.runIf(process.platform === 'linux')('the running pipe', () => {
  let daemon: TestDaemon
  beforeAll(async () => {
    daemon = await TestDaemon.start()
    await daemon.call('project_create', { name: 'Web' })
  })
  afterAll(() => daemon.remove())

  test('stays under 70 MB after a thousand calls', async () => {
    const pipe = await Pipe.open(daemon, ['--admin', '--no-start'])
    try {
      for (let round = 0; round < 10; round++) await Promise.all(Array.from({ length: 100 }, () => pipe.call('task_list')))
      const resident = Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pipe.pid}/status`, 'utf8'))?.[1]) * 1_024
      expect(resident).toBeGreaterThan(10_000_000)
      expect(resident).toBeLessThan(MOST_BYTES)
    } finally {
      await pipe.kill()
    }
  })
})

/** Every file that is loaded with this one at once, what each of them imports, and the packages that were bundled into it. */
function graph(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen
  const text = readFileSync(join(DIST, file), 'utf8')
  const imports = [...text.matchAll(/^(?:import|export)\b[^;'"(]*?(?:from\s*)?["']([^"']+)["'];$/gm)].map((match) => match[1] as string)
  const bundled = [...text.matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)/gm)].map((match) => match[1] as string)
  seen.set(file, [...imports, ...bundled])
  for (const next of imports.filter((name) => name.startsWith('.'))) graph(next, seen)
  return seen
}
