import type { Tool } from '../../kernel/tool.ts'
import type { Reach, Row } from './call.ts'
import { isRow, type Look } from './cell.ts'
import { handlesIn } from './handles.ts'
import { inCommands, nounOf, toolsOf, verbOf } from './names.ts'
import { type Property, propertiesOf, requiredOf } from './schema.ts'
import { commandLine } from './shell.ts'
import { painter } from './style.ts'
import type { Terminal } from './terminal.ts'
import { plainJson } from './text.ts'
import { view } from './view.ts'

const SECRET = /^sbx_[a-z]+_/
const PAGING = ['limit', 'after', 'before']

/** JSON for programs. */
export function asJson(result: Row, pretty: boolean): string {
  return `${plainJson(JSON.stringify(result, null, pretty ? 2 : 0))}\n`
}

export async function lookFor(result: Row, reach: Reach, terminal: Terminal): Promise<Look> {
  const handles = await handlesIn(result, reach)
  return { columns: terminal.columns(), paint: painter(terminal.colours), handles, now: Date.now() }
}

/** For people: the answer, and what to do with it next. */
export function asText(tool: Tool, input: Row, result: Row, look: Look): string {
  const own = result[`${nounOf(tool)}_id`]
  if (typeof own === 'string' && typeof result.handle === 'string') look.handles.set(own, result.handle)
  const list = onlyList(tool)
  const rows = list ? ((result[list] ?? []) as Row[]) : []
  const shown = typeof result.message === 'string' ? { ...result, message: inCommands(result.message) } : result
  const parts = [list && !rows.length ? nothing(tool, list, input) : '', body(tool, shown, rows, look), more(tool, input, result)]
  return parts.filter(Boolean).join('\n') + keepSecret(result, look)
}

function body(tool: Tool, result: Row, rows: Row[], look: Look): string {
  const schema = tool.outputJson as Property
  const [only] = rows
  // Whoever gets one wants all of it; a table would leave out what is long.
  if (verbOf(tool) === 'get' && onlyList(tool) === `${nounOf(tool)}s` && only && rows.length === 1)
    return view(only, propertiesOf(schema)[onlyList(tool) ?? '']?.items ?? {}, nounOf(tool), look)
  return view(result, schema, nounOf(tool), look)
}

/** The key of the list of things that the tool's answer is: it stands first, or behind how many there are, and there is no other. */
function onlyList(tool: Tool): string | undefined {
  const all = Object.entries(propertiesOf(tool.outputJson as Property)).filter(([key]) => !isCount(key))
  const isList = ([, property]: [string, Property]) => Boolean(property.items?.properties)
  const [first, ...others] = all
  return first && isList(first) && !others.some(isList) ? first[0] : undefined
}

const isCount = (key: string) => /(^|_)count$/.test(key)

function nothing(tool: Tool, list: string, input: Row): string {
  const filtered = Object.keys(input).some((name) => !PAGING.includes(name))
  const counts = Object.keys(propertiesOf(tool.outputJson as Property)).some(isCount)
  if (tool.watch || counts) return `No ${list}.\n`
  if (filtered) return `No ${list} fit. All of them: ${commandLine(tool, {})}\n`
  if (list !== `${nounOf(tool)}s`) return list.endsWith('s') ? `No ${list}.\n` : 'The list is empty.\n'
  const maker = toolsOf(nounOf(tool)).find((other) => makes(other, nounOf(tool)))
  return maker ? `No ${list} yet. Begin with: ${commandLine(maker, leastOf(maker))}\n` : `No ${list}.\n`
}

/** It answers with the id of a thing of which it was not told. */
function makes(tool: Tool, noun: string): boolean {
  const id = `${noun}_id`
  return tool.impact === 'write' && id in propertiesOf(tool.outputJson as Property) && !requiredOf(tool).includes(id)
}

/** Of its example only what it cannot do without. */
function leastOf(tool: Tool): Row {
  const required = requiredOf(tool)
  return Object.fromEntries(Object.entries(tool.example ?? {}).filter(([name]) => required.includes(name)))
}

function more(tool: Tool, input: Row, result: Row): string {
  if (typeof result.next !== 'string') return ''
  const page = PAGING.slice(1).find((name) => name in propertiesOf(tool.inputJson as Property))
  return page ? `There is more: ${commandLine(tool, { ...input, [page]: result.next })}\n` : ''
}

function keepSecret(result: Row, look: Look): string {
  const [key] = Object.entries(result).find(([, value]) => typeof value === 'string' && SECRET.test(value)) ?? []
  if (!key || isRow(result[key])) return ''
  return `
${look.paint('yellow', `Keep the ${key} now: it is not shown again.`)} Whoever has it acts under this name.
  for an agent   SIGNALBOX_TOKEN=<${key}> signalbox mcp
  in a terminal  SIGNALBOX_TOKEN=<${key}> signalbox agent me
  over HTTP      Authorization: Bearer <${key}>
`
}
