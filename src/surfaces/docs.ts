import { z } from 'zod'
import type { SettingDefinition } from '../kernel/capability.ts'
import { CODES, type ErrorBody, EXITS } from '../kernel/error.ts'
import type { EventType } from '../kernel/event.ts'
import type { Registry } from '../kernel/registry.ts'
import { EventView } from '../kernel/schema.ts'
import type { Tool } from '../kernel/tool.ts'
import { type JsonSchema, limitsOf, typeOf } from './docs/json-schema.ts'
import { block, code, page, prose, table } from './docs/markdown.ts'
import { permissionsPage } from './docs/permissions.ts'
import { toolsPage } from './docs/tools.ts'
import { ERROR_FIELDS, openApi } from './openapi.ts'

/** The reference, derived from the declarations: what is at each path under docs/. */
export function docs(registry: Registry, version: string): Record<string, string> {
  const tools = registry.tools.filter((tool) => !tool.internal)
  return {
    'tools.md': toolsPage(registry),
    'permissions.md': permissionsPage(registry),
    'errors.md': errorsPage(),
    'events.md': eventsPage(registry),
    'settings.md': settingsPage(registry),
    'openapi.json': json(openApi(registry, version)),
    ...Object.fromEntries(tools.map((tool) => [`schemas/${tool.name}.json`, json(schemaFile(tool))])),
  }
}

/** A schema of its own kind, so that validators and generators take it: `task_get.json#/$defs/input`. */
function schemaFile({ name, title, description, impact, profile, by, core, inputJson, outputJson }: Tool) {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: name,
    description: `${title}: ${description}`,
    'x-signalbox': { impact, profile, by, core },
    $defs: { input: inputJson, output: outputJson },
  }
}

const REFUSED = {
  code: 'CONFLICT',
  message: 'T-1 is at version 4, not 3.',
  next_tool: 'task_get',
  next_arguments: { task_id: 'T-1' },
} satisfies ErrorBody

function errorsPage(): string {
  return page(
    'Errors',
    `Every refusal has a code from this closed set and a message that says what to do next. A program branches on the code; messages may change.`,
    table(
      ['code', 'HTTP', 'exit', 'meaning'],
      Object.entries(CODES).map(([name, { status, exit, meaning }]) => [code(name), String(status), String(exit), prose(meaning)]),
    ),
    '## Shape',
    block('json', JSON.stringify({ ok: false, error: REFUSED }, null, 2)),
    table(
      ['field', 'type', 'meaning'],
      Object.entries(ERROR_FIELDS).map(([name, schema]) => [
        code(name),
        name === 'code' ? 'string' : typeOf(schema),
        prose(schema.description),
      ]),
    ),
    `That is the body over HTTP. In MCP the result has \`isError: true\` and \`{"error": …}\` as structured content and as text. The command line
writes the message to stderr, or \`{"error": …}\` to stdout with \`--json\`, and ends with the exit code.`,
    '## Exit codes of the command line',
    table(['exit', 'class'], Object.entries(EXITS)),
  )
}

function eventsPage({ capabilities }: Registry): string {
  const declared = capabilities.flatMap(({ name, events }) => (events?.length ? [{ name, events }] : []))
  return page(
    'Events',
    `What changed, in the order of the commits. \`GET /api/events\` streams them (SSE; resume with \`Last-Event-ID\`), \`signalbox events\` prints
them, and waiting tools return them. A reader gets those that its identity may read. Filters take a type, or all of a noun as \`task.*\`.`,
    '## Every event',
    table(
      ['field', 'type', 'meaning'],
      Object.entries(schemaOf(EventView).properties ?? {}).map(([name, schema]) => [
        code(name),
        typeOf(schema),
        prose(schema.description ?? ''),
      ]),
    ),
    ...declared.flatMap(({ name, events }) => [
      `## ${name}`,
      table(
        ['type', '`data`'],
        events.map((event) => [code(event.type), dataOf(event)]),
      ),
    ]),
  )
}

function dataOf({ data }: EventType): string {
  return Object.entries(schemaOf(data).properties ?? {})
    .map(([name, schema]) => `${code(name)}: ${typeOf(schema)}`)
    .join('; ')
}

function settingsPage(registry: Registry): string {
  const { name: reads } = registry.tool('setting_get')
  const { name: changes } = registry.tool('setting_update')
  const declared = registry.capabilities.flatMap(({ name, settings }) => (settings ? [{ name, settings }] : []))
  return page(
    'Settings',
    `Each changes without a restart and holds from the next call on: [${reads}](tools.md#${reads}) reads them, [${changes}](tools.md#${changes})
changes one, null goes back to the default. What the daemon needs before it has a database is in the environment: see the
[README](../README.md#settings).`,
    ...declared.flatMap(({ name, settings }) => [
      `## ${name}`,
      table(['setting', 'type', 'limits', 'default', 'meaning'], Object.entries(settings).map(settingRow)),
    ]),
  )
}

function settingRow([key, { schema, default: value, description }]: [string, SettingDefinition]): string[] {
  const shape = schemaOf(schema)
  return [code(key), typeOf(shape), limitsOf(shape).join('; '), code(JSON.stringify(value)), prose(description)]
}

const schemaOf = (schema: z.ZodType): JsonSchema => z.toJSONSchema(schema, { io: 'output', target: 'draft-2020-12' }) as JsonSchema

const json = (value: unknown): string => `${JSON.stringify(value, null, 2)}\n`
