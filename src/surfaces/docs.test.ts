import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { capabilities } from '../capabilities/index.ts'
import { dialects } from '../dialects/index.ts'
import { defineCapability } from '../kernel/capability.ts'
import type { Dialect, DialectTool } from '../kernel/dialect.ts'
import { Registry } from '../kernel/registry.ts'
import { defineTool } from '../kernel/tool.ts'
import { parseFlags } from './cli/flags.ts'
import { dialectParts } from './docs/dialects.ts'
import { curl, typedLine } from './docs/example.ts'
import { code, prose, table } from './docs/markdown.ts'
import { docs } from './docs.ts'
import { createHttp, type HttpParts } from './http.ts'
import { openApi } from './openapi.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const registry = new Registry(capabilities, dialects)
const files = docs(registry, '1.2.3')
const parts = dialectParts(registry)
const each = registry.tools.filter((tool) => !tool.internal).map((tool) => [tool.name, tool] as const)

const noInput = () => Promise.reject(new Error('nothing reads the input'))
const page = (name: string) => files[name] as string

const probe = (more: object = {}) =>
  defineTool({
    name: 'probe_do',
    title: 'Probe',
    description: 'Does as it is told.',
    input: z.strictObject({ text: z.string().max(20) }),
    output: z.strictObject({}),
    example: { text: 'x' },
    impact: 'read',
    profile: 'viewer',
    look: async () => ({}),
    ...more,
  })

const withTools = (...tools: ReturnType<typeof probe>[]) =>
  new Registry([...capabilities, defineCapability({ name: 'probe', tools })], dialects)

describe('drift', () => {
  const run = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, 'scripts/docs.mjs'), ...args], { encoding: 'utf8' })
    return { status, said: stdout + stderr }
  }

  test('[DOC1] docs/ is what the source says', () => {
    expect(run('--check')).toEqual({ status: 0, said: '' })
  })

  test('[DOC1] what differs, is missing or is left over is named, with the command that mends it', () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const [changed, gone, stale, other] = ['errors.md', 'openapi.json', 'schemas/task_gone.json', 'by-hand.md'].map((path) =>
      join(folder, path),
    ) as [string, string, string, string]
    expect(run(folder).status).toBe(0)
    const before = [changed, gone].map((file) => readFileSync(file, 'utf8'))
    appendFileSync(changed, ' ')
    rmSync(gone)
    for (const file of [stale, other]) writeFileSync(file, 'mine')

    const { status, said } = run('--check', folder)
    expect(status).toBe(1)
    expect(said.match(/^docs\/\S+/gm)).toEqual(['docs/errors.md', 'docs/openapi.json', 'docs/schemas/task_gone.json'])
    expect(said).toContain('`npm run docs`')

    expect(run(folder).status).toBe(0)
    expect([changed, gone].map((file) => readFileSync(file, 'utf8'))).toEqual(before)
    expect(existsSync(stale)).toBe(false)
    expect(readFileSync(other, 'utf8')).toBe('mine')
  })

  test('[DOC8] a part of a page that differs is named and written, and what stands around it is kept', () => {
    const folder = mkdtempSync(join(tmpdir(), 'signalbox-docs-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    expect(run(folder).status).toBe(0)
    const [name] = Object.keys(parts) as [string]
    const file = join(folder, name)
    const part = readFileSync(file, 'utf8')
    expect(part).toContain(`\n\n${parts[name]}\n\n`)
    writeFileSync(file, `# Mine\n\n${part.replace('listed', 'hidden')}\nAlso mine.\n`)
    expect(run('--check', folder)).toMatchObject({ status: 1, said: expect.stringMatching(`^docs/${name} is not what the source says`) })
    expect(run(folder).status).toBe(0)
    expect(readFileSync(file, 'utf8')).toBe(`# Mine\n\n${part}\nAlso mine.\n`)
    expect(run('--check', folder).status).toBe(0)
  })

  test('[DOC2] the same declarations give the same bytes', () => {
    expect(docs(new Registry(capabilities, dialects), '1.2.3')).toEqual(files)
  })

  test('[DOC2] a tool is on every page that tools are on, and one of the daemon itself on none', () => {
    const at = (registry: Registry) => Object.entries(docs(registry, '1.2.3')).flatMap(([path, text]) => (/probe/.test(text) ? [path] : []))
    expect(at(withTools(probe()))).toEqual(['tools.md', 'permissions.md', 'openapi.json', 'schemas/probe_do.json'])
    expect(at(withTools(probe({ internal: true })))).toEqual([])
  })
})

describe('schemas', () => {
  const INVALID = [{}, { nonsense: 1 }, { limit: -1 }, { idempotency_key: '' }, { task_id: 'no such looks' }, { title: 7 }]

  test.for(each)('[DOC3] the published schema of %s takes its example, and refuses what the tool does by its looks', ([name, tool]) => {
    const schema = JSON.parse(page(`schemas/${name}.json`))
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    const validate = ajv.addSchema(schema, 'tool').compile({ $ref: 'tool#/$defs/input' })
    ajv.compile({ $ref: 'tool#/$defs/output' })
    expect([validate(tool.example), validate.errors]).toEqual([true, null])
    for (const more of INVALID) {
      const { idempotency_key, ...input } = { ...tool.example, ...more } as Record<string, unknown>
      const accepted = idempotency_key === undefined && tool.input.safeParse(input).success
      expect({ more, accepted: validate({ ...tool.example, ...more }) }).toEqual({ more, accepted })
    }
  })

  test('[DOC3] the OpenAPI description is valid', async () => {
    expect(await new Validator().validate(JSON.parse(page('openapi.json')))).toEqual({ valid: true })
  })
})

describe('the OpenAPI description', () => {
  test('[DOC4] has every route but MCP, which is not described in this way, and nothing else', () => {
    const { routes } = createHttp({ allowedHosts: [], kernel: { parts: { registry } } } as unknown as HttpParts)
    const served = routes.filter(({ path }) => !['/*', '/', '/mcp'].includes(path))
    const described = Object.entries(openApi(registry, '1.2.3').paths).flatMap(([path, methods]) =>
      Object.keys(methods as object).map((method) => `${method.toUpperCase()} ${path.replace(/^(\/api\/tools\/).+/, '$1:name')}`),
    )
    expect(served.map(({ method, path }) => `${method} ${path}`).sort()).toEqual([...new Set(described)].sort())
  })

  test('[DOC4] has every tool', () => {
    const { paths } = openApi(registry, '1.2.3')
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(each.map(([name]) => `/api/tools/${name}`)))
  })
})

describe('examples', () => {
  /** What a program sees of a line that somebody typed. */
  const typed = (line: string): string[] => {
    const { stdout, status } = spawnSync('sh', ['-c', `set -- ${line}\nprintf '%s\\0' "$@"`], { encoding: 'utf8' })
    expect(status).toBe(0)
    return stdout.split('\0').slice(0, -1)
  }

  test.for(each)('[DOC5] %s is called by its line as by its arguments', async ([name, tool]) => {
    const [program, noun, verb, ...rest] = typed(typedLine(tool))
    expect([program, `${noun}_${verb}`]).toEqual(['signalbox', name])
    expect((await parseFlags(tool, rest, noInput)).input).toEqual(tool.example)
    expect(JSON.parse(typed(curl(tool)).at(-1) as string)).toEqual(tool.example)
    expect(page('tools.md')).toContain(`\n${typedLine(tool)}\n\n${curl(tool)}\n`)
  })

  test('[DOC5] whatever an example holds', async () => {
    const input = z.strictObject({
      text: z.string().max(99),
      list: z.array(z.string().max(99)).max(9),
      yes: z.boolean(),
      no: z.boolean(),
      object: z.strictObject({ a: z.string().max(99) }),
    })
    const example = { text: '-it\'s `$HOME` "\\ \n*', list: ['[a', '--b', ''], yes: true, no: false, object: { a: "'" } }
    const tool = probe({ input, inputJson: undefined, example })
    const declared = { ...tool, inputJson: z.toJSONSchema(input) as Record<string, unknown> }
    expect((await parseFlags(declared, typed(typedLine(declared)).slice(3), noInput)).input).toEqual(example)
    expect(JSON.parse(typed(curl(declared)).at(-1) as string)).toEqual(example)
  })
})

describe('pages', () => {
  test('[DOC6] text from a declaration stays text', () => {
    expect(prose('a|b <img src=x> *c* [d](e) _f_ task_move & `g|h <i>`')).toBe(
      'a\\|b &lt;img src=x&gt; \\*c\\* \\[d\\](e) \\_f\\_ task_move &amp; `g\\|h <i>`',
    )
    expect(prose('one\n# two `')).toBe('one # two \\`')
    expect(code('a`b|c')).toBe('`` a`b\\|c ``')
    const hostile = 'x | y <b>\n\n# z'
    const input = z.strictObject({ text: z.string().max(20).describe(hostile).default('```|') })
    const text = docs(withTools(probe({ input, description: hostile, example: { text: '```\n# out' } })), '1')['tools.md'] as string
    const outsideCode = text.replace(/^(`{3,})[a-z]+\n[\s\S]*?\n\1$/gm, '')
    expect(outsideCode).not.toMatch(/<b>|^# z|^# out|^`{3}/m)
    expect(text).toContain(`| \`text\` | string | default ${code('"```|"')} | at most 20 characters | x \\| y &lt;b&gt; # z |`)
  })

  test('[DOC8] the page of a dialect has every tool of it', () => {
    const tool = {
      ...{ name: 'sink', native: 'project_create', description: 'Sinks.', inputJson: { required: ['deep'] } },
      ...{ fields: { deep: 'name', how: null, slug: 'slug' }, instead: [{ native: 'task_delete' }] },
    } as unknown as DialectTool
    const [known] = dialects as [Dialect]
    const codes = { ...known.codes, IDEMPOTENCY_MISMATCH: 'Twice' }
    const lines = (unlisted: boolean) => {
      const probe = { ...known, name: 'probe', codes, tools: [{ ...tool, unlisted }] }
      return dialectParts(new Registry(capabilities, [probe]))['probe.md']?.split('\n')
    }
    const row = (listed: string) =>
      `| \`sink\` | [project_create](tools.md#project_create), [task_delete](tools.md#task_delete) | \`deep\` (\`name\`), \`how\`?, \`slug\`? | ${listed} | \`${registry.tool('project_create').profile}\` | \`Twice\` |`
    expect(lines(false)).toEqual(expect.arrayContaining([row('yes'), '| `Twice` | `IDEMPOTENCY_MISMATCH` |']))
    expect(lines(true)).toContain(row(''))
    for (const { name, tools } of dialects)
      for (const tool of tools) expect(parts[`${name}.md`]).toContain(`\n| \`${tool.name}\` | [${tool.native}]`)
  })

  test('[DOC6] every row of a table has as many cells as its head', () => {
    expect(table(['a', 'b'], [['1', '2']])).toBe('| a | b |\n|---|---|\n| 1 | 2 |')
    for (const [path, text] of Object.entries({ ...files, ...parts }).filter(([name]) => name.endsWith('.md'))) {
      const tables = text.split('\n\n').filter((part) => part.startsWith('| '))
      expect(tables.length).toBeGreaterThan(0)
      for (const lines of tables.map((part) => part.trim().split('\n'))) {
        const cells = new Set(lines.map((line) => line.replaceAll('\\|', '').split('|').length))
        expect([path, lines[0], cells.size]).toEqual([path, lines[0], 1])
      }
    }
  })

  test('[DOC7] every event and setting that the source declares is on its page', () => {
    const root = join(ROOT, 'src/capabilities')
    const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .map((file) => readFileSync(join(root, file), 'utf8'))
    const types = sources.flatMap((source) => [...source.matchAll(/defineEvent\(\s*'([^']+)'/g)].map((match) => match[1] as string))
    expect(types.length).toBeGreaterThan(10)
    expect(types.filter((type) => !page('events.md').includes(`\n| \`${type}\` |`))).toEqual([])
    const keys = Object.keys(registry.settings)
    expect(keys.filter((key) => !page('settings.md').includes(`\n| \`${key}\` |`))).toEqual([])
  })

  test('[DOC7] every link leads to a file and a heading that are there', () => {
    const textOf = (path: string) => (Object.hasOwn(files, path) ? page(path) : readFileSync(join(ROOT, 'docs', path), 'utf8'))
    const headings = (text: string) =>
      [...text.matchAll(/^#+ (.+)$/gm)].map((match) => (match[1] as string).toLowerCase().replaceAll(' ', '-'))
    const links = Object.entries({ ...files, ...parts }).flatMap(([from, text]) =>
      from.endsWith('.md')
        ? [...text.replace(/`[^`\n]+`/g, '').matchAll(/\]\(([^)\s]+)\)/g)].map((match) => ({ from, to: match[1] as string }))
        : [],
    )
    expect(links.length).toBeGreaterThan(100)
    const broken = links.filter(({ from, to }) => {
      const [path, anchor] = to.split('#') as [string, string?]
      const file = path ? normalize(join(dirname(from), path)) : from
      if (!Object.hasOwn(files, file) && !existsSync(join(ROOT, 'docs', file))) return true
      return anchor !== undefined && !headings(textOf(file)).includes(anchor)
    })
    expect(broken).toEqual([])
  })
})
