import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { dialects } from '../dialects/index.ts'
import { globMatches, ROLES, reaches } from '../kernel/policy.ts'
import { Registry } from '../kernel/registry.ts'
import { defineTool } from '../kernel/tool.ts'
import { openTestApp } from '../testing/app.ts'
import { withProbe } from '../testing/probe.ts'
import * as ids from './ids.ts'
import { capabilities } from './index.ts'

type Schema = Record<string, unknown>

const { tools } = new Registry(capabilities, dialects)
const names = new Set(tools.map((tool) => tool.name))
/** Internal ones are on no surface: what they take is what the daemon itself gives them. */
const each = tools.filter((tool) => !tool.internal).map((tool) => [tool.name, tool] as const)

/** Every schema inside a schema, with the path to it. */
function* inside(schema: Schema, path: string): Generator<[string, Schema]> {
  yield [path, schema]
  for (const [key, value] of Object.entries(schema)) {
    if (key === 'properties')
      for (const [name, inner] of Object.entries(value as Record<string, Schema>)) yield* inside(inner, `${path}.${name}`)
    else if (key === 'anyOf' || key === 'oneOf' || key === 'allOf') for (const inner of value as Schema[]) yield* inside(inner, path)
    else if ((key === 'items' || key === 'additionalProperties') && typeof value === 'object') yield* inside(value as Schema, `${path}[]`)
  }
}

const problems = (schema: Schema, wrong: (schema: Schema) => boolean) =>
  [...inside(schema, 'it')].filter(([, inner]) => wrong(inner)).map(([path]) => path)

const isBounded = (schema: Schema) => ['maxLength', 'pattern', 'enum', 'format', 'const'].some((key) => schema[key] !== undefined)

describe('names', () => {
  test.for(each)('[K30] %s is a name that every client shows unchanged', ([name]) => {
    expect(name).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)+$/)
    expect(name.length).toBeLessThanOrEqual(40)
  })

  test('[K30] no two are the same for a client that knows only letters, digits and _', () => {
    const seen = [...names, ...dialects.flatMap((dialect) => dialect.tools.map((tool) => `${dialect.name}:${tool.name}`))]
    expect(new Set(seen.map((name) => name.replaceAll(/[.\-/]/g, '_'))).size).toBe(seen.length)
  })
})

describe('declarations', () => {
  test.for(each)('[K30] %s says in one line what it does', ([, tool]) => {
    expect(tool.title).toMatch(/^[A-Z][^\n]{2,59}$/)
    expect(tool.description).toMatch(/^[A-Z][^\n]{10,158}[.]$/)
    expect(tool.description).not.toContain('  ')
  })

  test.for(each)('[K30] the input of %s is bounded, strict and portable', ([, { inputJson }]) => {
    expect(inputJson.type).toBe('object')
    for (const combinator of ['anyOf', 'oneOf', 'allOf', 'not', 'if', '$ref']) expect(inputJson).not.toHaveProperty(combinator)
    expect(problems(inputJson, (s) => s.type === 'string' && !isBounded(s))).toEqual([])
    expect(problems(inputJson, (s) => s.type === 'integer' && (s.minimum === undefined || s.maximum === undefined))).toEqual([])
    expect(problems(inputJson, (s) => s.type === 'array' && s.maxItems === undefined)).toEqual([])
    expect(problems(inputJson, (s) => s.type === 'object' && s.additionalProperties !== false)).toEqual([])
    expect(JSON.stringify(inputJson)).not.toMatch(/"\$(schema|ref|defs)"/)
  })

  test.for(each)('[K30] the output of %s is strict and portable', ([, { outputJson }]) => {
    expect(outputJson.type).toBe('object')
    expect(problems(outputJson, (s) => s.type === 'integer' && (s.minimum === undefined || s.maximum === undefined))).toEqual([])
    expect(problems(outputJson, (s) => s.properties !== undefined && s.additionalProperties !== false)).toEqual([])
    expect(JSON.stringify(outputJson)).not.toMatch(/"\$(schema|ref|defs)"/)
  })

  test.for(each)('[K30] %s has an example that it would accept', ([, tool]) => {
    expect(tool.input.safeParse(tool.example)).toMatchObject({ success: true })
  })

  test.for(each)('[K30] %s takes an idempotency_key when it writes, and only then', ([, tool]) => {
    const properties = tool.inputJson.properties as Schema
    expect(Object.hasOwn(properties, 'idempotency_key')).toBe(tool.impact !== 'read')
    expect(tool.inputJson.required ?? []).not.toContain('idempotency_key')
    expect(Object.keys(tool.input.shape)).not.toContain('idempotency_key')
  })

  test('[K30] what clients keep loaded is small', () => {
    const core = tools.filter((tool) => tool.core)
    expect(core.length).toBeGreaterThanOrEqual(6)
    expect(core.length).toBeLessThanOrEqual(10)
  })

  test('[K30] the list of a worker is lean', () => {
    const { profile, deny } = ROLES.worker
    const denied = (name: string) => deny.some((glob) => globMatches(glob, name))
    const may = (tool: (typeof tools)[number]) =>
      !tool.internal && tool.by === undefined && reaches(profile, tool.profile) && !denied(tool.name)
    const list = tools.filter(may).map(({ name, description, inputJson }) => ({ name, description, inputJson }))
    const tokens = JSON.stringify(list).length / 4
    expect(tokens).toBeLessThan(8_200)
  })
})

describe('what a refusal tells to do next', () => {
  const sources = ['capabilities', 'kernel', 'db'].flatMap((folder) => {
    const root = fileURLToPath(new URL(`../${folder}/`, import.meta.url))
    const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
    )
    return files.map((file) => readFileSync(root + file, 'utf8'))
  })
  const found = (pattern: RegExp) => sources.flatMap((source) => [...source.matchAll(pattern)].map((match) => match[1] as string))

  test('[K30] every next_tool exists', () => {
    const named = found(/next_tool: '([^']+)'/g)
    expect(named.length).toBeGreaterThan(5)
    expect(named.filter((name) => !names.has(name))).toEqual([])
  })

  test('[K30] every tool that a hint names exists', () => {
    const nouns = [...new Set(tools.map((tool) => tool.name.split('_')[0]))].join('|')
    const words = found(/hint:\s*['"`]([^\n]*)/g).flatMap((hint) => hint.match(new RegExp(`\\b(?:${nouns})_[a-z_]+\\b`, 'g')) ?? [])
    expect(words.length).toBeGreaterThan(5)
    expect(words.filter((word) => !names.has(word) && !word.endsWith('_id'))).toEqual([])
  })

  test('[K30] an id that leads nowhere leads to a list only where there is one', async () => {
    const kinds = Object.entries(ids).map(([name, schema]) => [name.replace(/Id$/, '').toLowerCase(), schema] as const)
    const probe = defineTool({
      name: 'probe_find',
      title: 'Probe',
      description: 'Takes an id of any kind.',
      input: z.strictObject(Object.fromEntries(kinds.map(([kind, schema]) => [kind, schema.optional()]))),
      output: z.strictObject({}),
      impact: 'read',
      profile: 'viewer',
      look: async () => ({}),
    })
    const app = await openTestApp({ capabilities: withProbe([probe]) })
    onTestFinished(() => app.close())
    for (const [kind] of kinds) {
      const error = await app.owner.refused('probe_find', { [kind]: `${kind}_${'0'.repeat(36)}` })
      expect(error.code).toMatch(/_NOT_FOUND$/)
      expect(error.message).toContain(kind)
      if (error.next_tool) expect(names).toContain(error.next_tool)
      else expect(names).not.toContain(`${kind}_list`)
    }
  })
})
