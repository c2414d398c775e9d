import type { Code } from '../../kernel/error.ts'
import { notFound } from '../../kernel/id.ts'
import type { Registry } from '../../kernel/registry.ts'
import type { Tool } from '../../kernel/tool.ts'
import { curl, typedLine } from './example.ts'
import { type Field, fieldsOf, type JsonSchema, limitsOf, single, typeOf } from './json-schema.ts'
import { block, code, codes, page, prose, table } from './markdown.ts'

const CALLERS = { everyone: 'people and agents', person: 'people only', owner: 'the owner only' }

const INTRODUCTION = `The same tool has the same name, arguments and answer on every surface: in MCP, at \`POST /api/tools/<name>\`
([openapi.json](openapi.json)) and as \`signalbox <noun> <verb>\`. Over HTTP the answer is \`{"ok": true, "result": …}\` or
\`{"ok": false, "error": …}\`.

- **Impact**: a *read* changes nothing, a *write* changes something, a *destructive* one cannot be taken back.
- **Profile**: the lowest step of the ladder that may call it; [permissions.md](permissions.md) has the whole matrix.
- A handle (\`T-7\`, \`ann\`) is accepted wherever an id is.
- In the examples \`$SIGNALBOX_TOKEN\` is your token.
- What the door refuses for any tool, such as input that does not fit, is in [errors.md](errors.md). Below a tool stand only the codes that
  follow from its declaration; its own rules can refuse with others.`

export function toolsPage({ capabilities }: Registry): string {
  const groups = capabilities
    .map(({ name, tools }) => ({ name, tools: tools.filter((tool) => !tool.internal) }))
    .filter(({ tools }) => tools.length > 0)
  return page(
    'Tools',
    INTRODUCTION,
    '## Contents',
    ...groups.flatMap(({ name, tools }) => [`**[${name}](#${name})**`, contents(tools)]),
    ...groups.flatMap(({ name, tools }) => [`## ${name}`, ...tools.flatMap(section)]),
  )
}

/** Whether an agent may call it on what lies in its scope only. */
export const isScoped = (tool: Tool): boolean => fieldsOf(tool.inputJson, tool.places).some(({ id }) => isLimited(tool, id))

export const callersOf = (tool: Tool): string => CALLERS[tool.by ?? 'everyone']

function contents(tools: Tool[]): string {
  return tools.map((tool) => `- [${tool.name}](#${tool.name}): ${prose(tool.description)}`).join('\n')
}

function section(tool: Tool): string[] {
  const fields = fieldsOf(tool.inputJson, tool.places)
  return [
    `### ${tool.name}`,
    `**${prose(tool.title)}.** ${prose(tool.description)}`,
    `Impact: ${tool.impact} · profile: ${code(tool.profile)} · called by ${callersOf(tool)} · [JSON Schema](schemas/${tool.name}.json)`,
    fields.length ? argumentTable(tool, fields) : 'No arguments.',
    'Answer:',
    resultTable(tool.outputJson),
    ...refusals(fields, tool),
    'Example, as MCP arguments, on the command line and over HTTP:',
    block('json', short(tool.example ?? {})),
    block('sh', `${typedLine(tool)}\n\n${curl(tool)}`),
  ]
}

function argumentTable(tool: Tool, fields: Field[]): string {
  return table(
    ['argument', 'type', 'required', 'limits', 'meaning'],
    fields.map(({ path, schema, required, id }) => [
      code(path),
      typeOf(schema, id),
      required ? 'yes' : schema.default === undefined ? '' : `default ${code(JSON.stringify(schema.default))}`,
      [...limitsOf(schema, id), ...scopeOf(tool, id)].join('; '),
      meaningOf(schema),
    ]),
  )
}

function scopeOf(tool: Tool, id: Field['id']): string[] {
  if (id?.use === 'self') return ['your own']
  return isLimited(tool, id) ? ["in an agent's scope"] : []
}

/** Whether it matters to an agent where the thing lies. */
function isLimited(tool: Tool, id: Field['id']): boolean {
  return id?.use === 'act' && tool.scoped && tool.by === undefined
}

/** One row a field; what is inside an object is named, the JSON Schema has the rest. */
function resultTable(output: JsonSchema): string {
  const rows = Object.entries(output.properties ?? {}).map(([name, schema]) => {
    const inner = single(schema)
    const names = Object.keys(inner.items?.properties ?? inner.properties ?? {})
    return [code(name), typeOf(schema), [meaningOf(schema), names.length ? `with ${codes(names)}` : ''].filter(Boolean).join('; ')]
  })
  return rows.length ? table(['field', 'type', 'meaning'], rows) : 'An empty object.'
}

/** On one line where that can be read. */
function short(value: unknown): string {
  const line = JSON.stringify(value, null, 1).replace(/\n */g, ' ')
  return line.length > 100 ? JSON.stringify(value, null, 2) : line
}

function meaningOf(schema: JsonSchema): string {
  return prose(schema.description ?? single(schema).description ?? '')
}

function refusals(fields: Field[], tool: Tool): string[] {
  const lines = [...missing(fields)].map(([name, kinds]) => `${code(name)} when there is no such ${[...kinds].join(' or ')}`)
  if (tool.run) lines.push(`${code('IDEMPOTENCY_MISMATCH')} when the key was used with another input`)
  return lines.length ? [`Refused with ${lines.join(', ')}.`] : []
}

/** What may not be there, by the code that says so. */
export function missing(fields: Field[]): Map<Code, Set<string>> {
  const kinds = new Map<Code, Set<string>>()
  for (const { id } of fields) {
    if (!id) continue
    const name = notFound(id.kind, '', undefined).body.code
    kinds.set(name, (kinds.get(name) ?? new Set()).add(id.kind))
  }
  return kinds
}
