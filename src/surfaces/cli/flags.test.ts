import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { TaskId } from '../../capabilities/ids.ts'
import { UsageError } from '../../kernel/error.ts'
import { defineTool, type Tool } from '../../kernel/tool.ts'
import { parseFlags } from './flags.ts'
import { named } from './names.ts'
import { flagsFor } from './shell.ts'

const tool = defineTool({
  name: 'probe_try',
  title: 'Probe',
  description: 'Takes one argument of every kind.',
  input: z.strictObject({
    title: z.string().max(200),
    body: z.string().max(2_000).nullable().optional(),
    count: z.int().min(-10).max(10).optional(),
    ratio: z.number().optional(),
    deep: z.boolean().default(false),
    accept: z.boolean().default(true),
    level: z.enum(['LOW', 'HIGH']).optional(),
    levels: z
      .array(z.enum(['LOW', 'HIGH']))
      .max(5)
      .optional(),
    blocked_by: z.array(TaskId).max(5).nullable().optional(),
    criteria: z.array(z.string().max(500)).max(5).optional(),
    items: z
      .array(z.strictObject({ name: z.string().max(10) }))
      .max(5)
      .optional(),
    where: z.strictObject({ x: z.number() }).optional(),
    path: z.string().max(100).regex(/^\//).optional(),
    value: z.union([z.string().max(100), z.number(), z.boolean(), z.array(z.string().max(10)).max(3), z.null()]).optional(),
  }),
  output: z.strictObject({}),
  impact: 'read',
  profile: 'viewer',
  look: async () => ({}),
})

const parse = async (args: string[], stdin = '') => (await parseFlags(tool, args, async () => stdin)).input

describe('values', () => {
  test.for<[string[], Record<string, unknown>]>([
    [['--title', 'a b'], { title: 'a b' }],
    [['--title=a=b'], { title: 'a=b' }],
    [['--title='], { title: '' }],
    [['a b'], { title: 'a b' }],
    [['--', '--deep'], { title: '--deep' }],
    [['--title=--deep'], { title: '--deep' }],
    [['--title', '-5'], { title: '-5' }],
    [['--count', '-5', '--ratio=0.5'], { count: -5, ratio: 0.5 }],
    [['--count', 'many'], { count: 'many' }],
    [['--deep'], { deep: true }],
    [['--no-accept', '--deep=false'], { accept: false, deep: false }],
    [['--level', 'low'], { level: 'LOW' }],
    [['--level', 'none'], { level: 'none' }],
    [['--levels', 'low,HIGH', '--levels', 'LOW'], { levels: ['LOW', 'HIGH', 'LOW'] }],
    [['--levels', '["HIGH"]'], { levels: ['HIGH'] }],
    [['--blocked-by', 'T-1, T-2'], { blocked_by: ['T-1', 'T-2'] }],
    [['--blocked_by', 'T-1'], { blocked_by: ['T-1'] }],
    [['--blocked-by='], { blocked_by: [] }],
    [['--blocked-by', 'null', '--body', 'null'], { blocked_by: null, body: null }],
    [['--criteria', 'one, two', '--criteria', '[ui] three'], { criteria: ['one, two', '[ui] three'] }],
    [['--criteria', '["a","b"]'], { criteria: ['a', 'b'] }],
    [['--items', '{"name":"a","n":1}', '--items', '[{"name":"b"}]'], { items: [{ name: 'a', n: 1 }, { name: 'b' }] }],
    [['--where', '{"x":1}'], { where: { x: 1 } }],
    [['--path', 'x'], { path: join(process.cwd(), 'x') }],
    [['--value', '5'], { value: 5 }],
    [['--value', 'five'], { value: 'five' }],
    [['--value', 'true'], { value: true }],
    [['--value', '["a"]'], { value: ['a'] }],
    [['--value', '{"a":1}'], { value: '{"a":1}' }],
    [['--value', 'null'], { value: null }],
    [['--title', '@@ann'], { title: '@ann' }],
    [['--title', '@'], { title: '@' }],
    [['--title=-'], { title: '-' }],
    [['--watch=false', 'x'], { title: 'x' }],
  ])('[E42] %j', async ([args, input]) => {
    expect(await parse(args)).toEqual(input)
  })

  test('[E42] @file is what is in the file, a list its lines, - is stdin and is read once', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-flags-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'f.txt')
    writeFileSync(file, 'first, line\nsecond\n')
    expect(await parse(['--body', `@${file}`])).toEqual({ body: 'first, line\nsecond' })
    expect(await parse(['--criteria', `@${file}`])).toEqual({ criteria: ['first, line', 'second'] })
    expect(await parse(['-', '--criteria', 'x'], 'from stdin\n')).toEqual({ title: 'from stdin', criteria: ['x'] })
    expect(await parse(['--title', '-'], 'x')).toEqual({ title: 'x' })
    expect(await parse(['--title=@-'], 'x')).toEqual({ title: 'x' })
    expect(await parse(['--items', '-'], '[{"name":"x"}]')).toEqual({ items: [{ name: 'x' }] })
    await expect(parse(['--title', '-', '--body', '-'], 'x')).rejects.toThrow('stdin was already read for --title')
    await expect(parse(['--body', '@/none'])).rejects.toThrow('there is no such file. For text that begins with @ write @@/none')
  })

  test('[E42] what a command line is written as is read as the same', async () => {
    const input = {
      title: "it's @5 o'clock",
      body: '@home',
      count: -1,
      deep: true,
      accept: false,
      level: 'HIGH',
      blocked_by: ['T-1', 'T-2'],
      criteria: ['a, b', '[c]'],
      items: [{ name: 'x' }],
      where: { x: 1 },
    }
    expect(await parse(flagsFor(tool, input))).toEqual(input)
    for (const text of ['-', '--', '--deep', '-5', '@', '@-', '@@', '@@-', '', ' ', 'a=b'])
      expect(await parse(flagsFor(tool, { title: text, criteria: [text || 'x', 'y'] }), 'stdin')).toEqual({
        title: text,
        criteria: [text || 'x', 'y'],
      })
    expect(await parse(flagsFor(tool, { title: 'x', blocked_by: [], body: null }))).toEqual({ title: 'x', blocked_by: [], body: null })
  })
})

describe('words', () => {
  const of = async (name: string, ...args: string[]) => (await parseFlags(named(name) as Tool, args, async () => '')).input

  test('[E42] the id of what a noun names stands without its flag, also where it may be left out', async () => {
    expect(await of('epic_get', 'E-1')).toEqual({ epic_id: 'E-1' })
    expect(await of('epic_get')).toEqual({})
    expect(await of('epic_finish', 'E-1', '--title', 'x')).toEqual({ epic_id: 'E-1', title: 'x' })
    expect(await of('epic_update', '--epic-id', 'E-1', '--max-workers', '2')).toEqual({ epic_id: 'E-1', max_workers: 2 })
    expect(await of('review_decide', 'T-9', 'approve')).toEqual({ task_id: 'T-9', decision: 'approve' })
    expect(await of('merge_retry', 'T-9')).toEqual({ task_id: 'T-9' })
    expect(await of('review_request', 'done')).toEqual({ summary: 'done' })
    await expect(of('epic_get', 'E-1', 'E-2')).rejects.toThrow('one argument too many')
    await expect(of('epic_get', '--epic-id', 'E-1', 'E-2')).rejects.toThrow('one argument too many')
    await expect(of('task_list', 'T-1')).rejects.toThrow('one argument too many')
  })
})

describe('what cannot be read', () => {
  test.for<[string[], RegExp]>([
    [['--titel', 'x'], /no flag --titel\. Did you mean: --title\?/],
    [['--acept'], /Did you mean: --accept\?/],
    [['-x'], /no flag --x/],
    [['--title'], /--title needs a value/],
    [['--title', '--deep'], /--title needs a value; one that begins with -- is given as --title=--deep/],
    [['--title', 'a', '--title', 'b'], /--title was given twice/],
    [['--deep=perhaps'], /--deep is on or off: write --deep or --no-deep/],
    [['--items', '[{'], /--items must be JSON/],
    [['--where', 'x'], /--where must be JSON/],
    [['a', 'b'], /"b" is one argument too many\. See: signalbox probe try --help/],
    [['--watch=maybe'], /--watch is on or off: write --watch or leave it out/],
    [['--yes'], /nothing to confirm/],
    [['--constructor'], /no flag --constructor/],
    [['--toString=x'], /no flag --toString/],
  ])('[E43] %j is told', async ([args, says]) => {
    const error = await parse(args).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message).toMatch(says)
  })
})
