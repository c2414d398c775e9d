import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { capabilities } from '../capabilities/index.ts'
import { CODES, type ErrorBody, UsageError } from '../kernel/error.ts'
import { closest } from '../kernel/registry.ts'
import type { Tool } from '../kernel/tool.ts'
import { render } from './render.ts'

interface Property {
  type?: string
  items?: Property
  enum?: string[]
  anyOf?: Property[]
  pattern?: string
  description?: string
  default?: unknown
}

/** Where the daemon is, and who calls. Asked for only when something is sent. */
export interface Reach {
  version: string
  /** No token: no daemon of ours runs, so whoever listens there is a stranger and gets none. */
  daemon(): { url: string; token: string | undefined }
}

type Answered = { ok: true; result: Record<string, unknown> } | { ok: false; error: ErrorBody }

const tools = capabilities.flatMap((c) => c.tools).filter((tool) => !tool.internal)

const HELP = {
  tools: 'signalbox tools: list every verb with what it does.',
  events: 'signalbox events: follow what happens, one JSON line an event, until Ctrl-C. It survives a restart of the daemon.',
}

/** `signalbox <noun> <verb>`: flags, help and exit codes all derive from the tool's declaration. */
export async function toolCommand(args: string[], reach: Reach): Promise<void> {
  if (args[0] === 'tools' || args[0] === 'events') {
    const { values } = parseArgs({ args: args.slice(1), options: { help: { type: 'boolean', short: 'h' } } })
    if (values.help) return void process.stdout.write(`${HELP[args[0]]}\n`)
    return args[0] === 'tools' ? listTools() : followEvents(reach)
  }
  const [noun = '', verb = '', ...rest] = args
  const tool = tools.find((t) => t.name === `${noun}_${verb.replaceAll('-', '_')}`)
  if (['--help', '-h'].includes(verb)) return void process.stdout.write(verbsOf(noun))
  if (!tool) throw new UsageError(unknown(noun, verb))
  const { input, json, help, actFor } = parseFlags(tool, rest)
  if (help) return void process.stdout.write(helpFor(tool))
  const answer = await untilAnswered((next) => post(reach, tool.name, next, actFor), input)
  if (!answer.ok) return fail(answer.error, json)
  show(answer.result, json)
}

/** For commands made of several calls; a refusal ends the program with its exit code. */
export async function callTool(reach: Reach, name: string, input: object, json: boolean): Promise<Record<string, unknown>> {
  const answer = await post(reach, name, input, undefined)
  return answer.ok ? answer.result : fail(answer.error, json)
}

export function show(result: Record<string, unknown>, json: boolean): void {
  process.stdout.write(json || !process.stdout.isTTY ? `${JSON.stringify(result, null, json ? 2 : 0)}\n` : render(result))
}

/** A wait that the server cut short is taken up again where it stopped, until the time that was asked for is over. */
async function untilAnswered(ask: (input: object) => Promise<Answered>, input: Record<string, unknown>): Promise<Answered> {
  const began = performance.now()
  let next = input
  for (;;) {
    const answer = await ask(next)
    if (!answer.ok || answer.result.resume !== true) return answer
    const asked = input.timeout_seconds
    const left = typeof asked === 'number' ? asked - (performance.now() - began) / 1_000 : undefined
    if (left !== undefined && left <= 0) return answer
    next = { ...input, cursor: answer.result.cursor, ...(left === undefined ? {} : { timeout_seconds: left }) }
  }
}

async function post(reach: Reach, name: string, input: object, actFor: string | undefined): Promise<Answered> {
  const { url, token } = reach.daemon()
  if (!token) return unreachable(url)
  const headers: Record<string, string> = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'user-agent': `signalbox-cli/${reach.version}`,
  }
  if (actFor) headers['signalbox-act-for'] = actFor
  const response = await request(`${url}/api/tools/${name}`, { method: 'POST', headers, body: JSON.stringify(input) })
  return (await response.json()) as Answered
}

async function request(url: string, init: RequestInit): Promise<Response> {
  return (await fetch(url, init).catch(() => undefined)) ?? unreachable(url)
}

function unreachable(url: string): never {
  const hint = 'Start it with: signalbox serve   (in a checkout: npm start)'
  return fail({ code: 'DISCONNECTED', message: `No Signalbox answers at ${new URL(url).origin}.`, hint }, false)
}

async function listTools(): Promise<void> {
  const width = Math.max(...tools.map((tool) => tool.name.length))
  for (const tool of tools) process.stdout.write(`${tool.name.replace('_', ' ').padEnd(width)}  ${tool.description}\n`)
}

/** Takes up where it stopped when the daemon was restarted; ends with Ctrl-C. */
async function followEvents(reach: Reach): Promise<void> {
  for (let last: string | undefined; ; ) {
    const { url, token } = reach.daemon()
    const headers = { authorization: `Bearer ${token}`, ...(last ? { 'last-event-id': last } : {}) }
    const response = token ? await fetch(`${url}/api/events`, { headers }).catch(() => undefined) : undefined
    if (!response && last === undefined) unreachable(url)
    if (response && !response.ok) fail(((await response.json()) as { error: ErrorBody }).error, false)
    if (response) last = await printEvents(response, last)
    process.stderr.write('signalbox: the stream ended, connecting again…\n')
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
}

async function printEvents(response: Response, from: string | undefined): Promise<string | undefined> {
  const decoder = new TextDecoder()
  let last = from
  let rest = ''
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      rest += decoder.decode(chunk, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line.startsWith('id: ')) last = line.slice(4)
        if (line.startsWith('data: ')) process.stdout.write(`${line.slice(6)}\n`)
      }
    }
  } catch {
    // The daemon went away in the middle; `last` says where to go on.
  }
  return last
}

export function parseFlags(tool: Tool, args: string[]) {
  const properties = propertiesOf(tool)
  const required = ((tool.inputJson.required as string[]) ?? []).filter((name) => name in properties)
  const options: Record<string, { type: 'string' | 'boolean'; multiple?: boolean; short?: string }> = {
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    as: { type: 'string' },
  }
  for (const [name, property] of Object.entries(properties)) {
    const flag = name.replaceAll('_', '-')
    if (property.type === 'boolean') options[flag] = { type: 'boolean' }
    else options[flag] = { type: 'string', multiple: property.type === 'array' }
  }
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true, allowNegative: true })
  const input: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(properties)) {
    const given = values[name.replaceAll('_', '-')]
    if (given !== undefined) input[name] = convert(given, property, name)
  }
  const open = required.filter((name) => !(name in input))
  positionals.forEach((text, i) => {
    const name = open[i]
    if (!name) throw new UsageError(`"${text}" is one argument too many. See: signalbox ${tool.name.replace('_', ' ')} --help`)
    input[name] = convert(text, properties[name] as Property, name)
  })
  return { input, json: Boolean(values.json), help: Boolean(values.help), actFor: values.as as string | undefined }
}

/** One that may also be null is offered as what it is otherwise. */
function propertiesOf(tool: Tool): Record<string, Property> {
  const entries = Object.entries((tool.inputJson.properties ?? {}) as Record<string, Property>)
  return Object.fromEntries(
    entries.map(([name, property]) => {
      const [only, another] = (property.anyOf ?? []).filter((option) => option.type !== 'null')
      return [name, only && !another ? { ...only, description: property.description ?? only.description } : property]
    }),
  )
}

function convert(given: unknown, property: Property, name: string): unknown {
  if (Array.isArray(given))
    return given.flatMap((item: string) =>
      item.startsWith('[') ? (parseJson(item, name) as unknown[]) : [convert(item, property.items ?? {}, name)],
    )
  if (typeof given !== 'string') return given
  if (property.type === 'integer' || property.type === 'number') return Number.isNaN(Number(given)) ? given : Number(given)
  if (property.type === 'object') return parseJson(given, name)
  if (property.type === 'array') return given.startsWith('[') ? parseJson(given, name) : [convert(given, property.items ?? {}, name)]
  if (property.anyOf) return looselyTyped(given, property.anyOf)
  // A field that takes absolute paths only means this folder's when it is given a relative one.
  return property.pattern === '^\\/' ? resolve(given) : given
}

/** A value that may have several types is read as JSON where that fits, else as text. */
function looselyTyped(given: string, options: Property[]): unknown {
  try {
    const value = JSON.parse(given) as unknown
    const type = value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
    return options.some((option) => option.type === type || (option.type === 'integer' && type === 'number')) ? value : given
  } catch {
    return given
  }
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--${name.replaceAll('_', '-')} must be JSON.`)
  }
}

function helpFor(tool: Tool): string {
  const properties = Object.entries(propertiesOf(tool))
  const required = new Set((tool.inputJson.required as string[]) ?? [])
  const flags = properties.map(([name, p]) => {
    const type = p.enum
      ? p.enum.join('|')
      : p.type === 'array'
        ? `${p.items?.enum?.join('|') ?? p.items?.type ?? 'text'}, repeatable`
        : (p.type ?? 'value')
    const note = [
      p.description,
      required.has(name) && p.default === undefined ? 'required' : '',
      p.default === undefined ? '' : `default ${JSON.stringify(p.default)}`,
    ]
      .filter(Boolean)
      .join('; ')
    return `  --${name.replaceAll('_', '-').padEnd(22)} ${type}${note ? `: ${note}` : ''}\n`
  })
  return `signalbox ${tool.name.replace('_', ' ')}: ${tool.description}\n\n${flags.join('')}  --json                   print JSON\n  --as AGENT               act for this agent (people only; recorded)\n`
}

function verbsOf(noun: string): string {
  const own = tools.filter((tool) => tool.name.startsWith(`${noun}_`))
  if (!own.length) throw new UsageError(unknown(noun, ''))
  return own.map((tool) => `signalbox ${tool.name.replace('_', ' ').padEnd(20)} ${tool.description}\n`).join('')
}

function unknown(noun: string, verb: string): string {
  const verbs = tools.filter((tool) => tool.name.startsWith(`${noun}_`)).map((tool) => tool.name.slice(noun.length + 1))
  if (verbs.length)
    return `${verb ? `There is no "signalbox ${noun} ${verb}".` : `signalbox ${noun} what?`} Try one of: ${verbs.join(', ')}.`
  const near = closest(
    `${noun}_${verb}`,
    tools.map((tool) => tool.name),
  ).map((name) => `signalbox ${name.replace('_', ' ')}`)
  return `There is no "signalbox ${[noun, verb].filter(Boolean).join(' ')}".${near.length ? ` Did you mean: ${near.join(', ')}?` : ''} "signalbox tools" lists all, "signalbox --help" explains.`
}

function fail(error: ErrorBody, json: boolean): never {
  if (json) process.stdout.write(`${JSON.stringify({ error }, null, 2)}\n`)
  else
    process.stderr.write(
      `${error.code}: ${error.message}\n${error.hint ? `${error.hint}\n` : ''}${error.suggestions?.length ? `Perhaps: ${error.suggestions.join(', ')}\n` : ''}`,
    )
  process.exit(CODES[error.code]?.exit ?? 1)
}
