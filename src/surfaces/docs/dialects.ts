import type { Dialect, DialectTool } from '../../kernel/dialect.ts'
import { CODES, type Code } from '../../kernel/error.ts'
import type { Registry } from '../../kernel/registry.ts'
import type { Tool } from '../../kernel/tool.ts'
import { fieldsOf } from './json-schema.ts'
import { code, codes, table } from './markdown.ts'
import { missing } from './tools.ts'

/** The table of tools and codes on each dialect's page; the rest of the page is written by hand. */
export function dialectParts(registry: Registry): Record<string, string> {
  return Object.fromEntries([...registry.dialects.values()].map((dialect) => [`${dialect.name}.md`, partOf(registry, dialect)]))
}

function partOf(registry: Registry, dialect: Dialect): string {
  const { codes: called, tools } = dialect
  return [
    table(
      ['document', 'Signalbox', 'arguments', 'listed', 'profile', 'codes'],
      tools.map((tool) => row(registry, dialect, tool)),
    ),
    `Arguments with a ? are optional; a native name that differs is in brackets. Every tool can also refuse with
${codes([...new Set([called.INVALID_INPUT, called.PERMISSION_DENIED])])}, and its own rules with other codes.`,
    ...renamedCodes(called),
  ].join('\n\n')
}

function row(registry: Registry, { codes: called }: Dialect, tool: DialectTool): string[] {
  const natives = [...new Set([tool, ...(tool.instead ?? [])].map(({ native }) => native))].map((name) => registry.tool(name))
  const { profile } = registry.tool(tool.native)
  return [
    code(tool.name),
    natives.map(({ name }) => `[${name}](tools.md#${name})`).join(', '),
    Object.entries(tool.fields).map(argument(tool)).join(', '),
    tool.unlisted ? '' : 'yes',
    code(profile),
    codes([...new Set(codesOf(registry.tool(tool.native), tool).map((native) => called[native]))]),
  ]
}

const argument =
  ({ inputJson }: DialectTool) =>
  ([name, native]: [string, string | null]): string => {
    const needed = (inputJson.required as string[] | undefined)?.includes(name)
    return `${code(name)}${needed ? '' : '?'}${native === null || native === name ? '' : ` (${code(native)})`}`
  }

/** The codes for documented arguments that name nothing, and for a reused idempotency key. */
function codesOf(native: Tool, { fields }: DialectTool): Code[] {
  const taken = new Set(Object.values(fields))
  const named = fieldsOf(native.inputJson, native.places).filter(({ path }) => taken.has(path.split(/[.[]/)[0] ?? ''))
  return [...missing(named).keys(), ...(native.run ? (['IDEMPOTENCY_MISMATCH'] as const) : [])]
}

function renamedCodes(called: Dialect['codes']): string[] {
  const renamed = (Object.keys(CODES) as Code[]).filter((native) => called[native] !== native)
  const names = [...new Set(renamed.map((native) => called[native]))]
  const natives = (name: string) => codes(renamed.filter((native) => called[native] === name))
  return names.length
    ? [
        table(
          ['code', 'stands also for'],
          names.map((name) => [code(name), natives(name)]),
        ),
      ]
    : []
}
