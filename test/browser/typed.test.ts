import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { capabilities } from '../../src/capabilities/index.ts'

const SRC = resolve(import.meta.dirname, '../../src')
const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => /^(ui|capabilities\/[^/]+\/panel)[./].*tsx?$/.test(file))
  .filter((file) => !file.endsWith('.types.ts'))
  .map((file) => ({ file, text: readFileSync(join(SRC, file), 'utf8') }))

describe('every action is a tool', () => {
  // That a misspelt name, argument or field does not compile is what src/ui/client.types.ts shows to `npm run check`.
  test('[U11] pages reach the daemon through one typed function, and the stream', () => {
    const reaching = sources.filter(({ text }) =>
      /\b(fetch|XMLHttpRequest|EventSource|WebSocket|sendBeacon)\b\(|new (EventSource|WebSocket)/.test(text),
    )
    expect(reaching.map(({ file }) => file).sort()).toEqual(['ui/client.ts', 'ui/stream.ts'])
    expect(sources.filter(({ text }) => /as any|@ts-ignore|@ts-nocheck/.test(text)).map(({ file }) => file)).toEqual([])
  })

  test('[U11] every name that is called is one of the registry', () => {
    const names = sources.flatMap(({ text }) =>
      [...text.matchAll(/\b(?:call|use[A-Z]\w*)(?:<[^>(]*>)?\(\s*'([a-z]+_[a-z_]+)'/g)].map((match) => match[1]),
    )
    const tools = new Set<string>(capabilities.flatMap(({ tools }) => tools.map(({ name }) => name)))
    expect(names.length).toBeGreaterThan(10)
    expect(names.filter((name) => !tools.has(name as string))).toEqual([])
  })
})
