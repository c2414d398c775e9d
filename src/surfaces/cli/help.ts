import { EXITS } from '../../kernel/error.ts'
import type { Tool } from '../../kernel/tool.ts'
import { BUILT_IN } from './built-in.ts'
import { OWN_FLAGS } from './flags.ts'
import { commandOf, inCommands, nouns, tools, toolsOf } from './names.ts'
import { argumentsOf, flagOf, kindOf, type Property, requiredOf, wordsOf } from './schema.ts'
import { commandLine } from './shell.ts'
import { painter } from './style.ts'
import type { Terminal } from './terminal.ts'
import { pad, width, wrap } from './text.ts'

const WIDEST = 110
const LONGEST_FLAG = 34

type Entry = [left: string, right: string]

/** `more`: flags of a command that does more than call the tool; it is neither watched nor done for another. */
export function helpFor(tool: Tool, terminal: Terminal, more: Entry[] = []): string {
  const required = requiredOf(tool)
  const heading = headings(terminal)
  const usage = ['signalbox', commandOf(tool), ...wordsOf(tool).map((name) => placeholder(tool, name)), '[flags]'].join(' ')
  const flags = Object.entries(argumentsOf(tool)).map(
    ([name, property]): Entry => [flagLine(tool, name), note(property, required.includes(name))],
  )
  const own = Object.entries(OWN_FLAGS).filter(([name, { when }]) =>
    more.length ? ['json', 'help'].includes(name) : (when?.(tool) ?? true),
  )
  const always = own.map(([name, { does, takes }]): Entry => [`--${name}${takes ? ` ${takes}` : ''}`, does])
  const parts = [
    `${wrap(`signalbox ${commandOf(tool)}: ${inCommands(tool.description)}`, Math.min(terminal.columns(), WIDEST)).join('\n')}\n${needs(tool)}`,
    `${heading('Usage')}  ${usage}\n`,
    flags.length + more.length ? heading('Flags') + entries([...flags, ...more], terminal) : '',
    heading('Always') + entries(always, terminal),
    `${heading('Example')}  ${commandLine(tool, (tool.example ?? {}) as Record<string, unknown>, terminal.columns() - 2)}\n`,
    takesText(tool)
      ? 'A value may be @file (what is in the file), - (stdin) or @@text (text that begins with @); the text - is given as --flag=-.\n'
      : '',
  ]
  return parts.filter(Boolean).join('\n')
}

export function helpForNoun(noun: string, terminal: Terminal): string {
  const verbs = toolsOf(noun).map((tool): Entry => [`signalbox ${commandOf(tool)}`, inCommands(tool.description)])
  return `${entries(verbs, terminal)}\n  signalbox ${noun} <verb> --help explains one.\n`
}

export function listOfTools(terminal: Terminal): string {
  const heading = headings(terminal)
  if (!terminal.tty.out) return entries(tools.map(line), terminal, '')
  return nouns.map((noun) => heading(noun) + entries(toolsOf(noun).map(line), terminal)).join('\n')
}

export function generalHelp(terminal: Terminal): string {
  const heading = headings(terminal)
  const builtIn = Object.entries(BUILT_IN).map(([name, { does, verbs }]): Entry => {
    return [`signalbox ${name}${verbs ? ` ${verbs.join('|')}` : ''}`, does]
  })
  const usage: Entry[] = [['signalbox <noun> <verb> [flags]', 'call a tool: signalbox task create --title "Fix login"'], ...builtIn]
  const more: Entry[] = [
    ['signalbox <noun>', `its verbs; nouns: ${nouns.join(', ')}`],
    ['signalbox <noun> <verb> --help', 'its flags and an example'],
    ['signalbox --version', ''],
  ]
  return `Signalbox coordinates coding agents on shared repositories.

${heading('Usage')}${entries(usage, terminal)}
${heading('More')}${entries(more, terminal)}
On a terminal answers are tables; elsewhere, and with --json, they are JSON.
NO_COLOR, FORCE_COLOR and TERM=dumb are honoured.

${heading('Exit codes')}${entries(Object.entries(EXITS), terminal)}
Environment: SIGNALBOX_HOME (~/.signalbox), SIGNALBOX_PORT (3001), SIGNALBOX_HOST, SIGNALBOX_URL,
SIGNALBOX_TOKEN, SIGNALBOX_TOKEN_FILE, SIGNALBOX_DATABASE_URL, SIGNALBOX_ALLOWED_HOSTS, SIGNALBOX_LOG_LEVEL.
`
}

function line(tool: Tool): Entry {
  return [commandOf(tool), inCommands(tool.description)]
}

function headings(terminal: Terminal): (text: string) => string {
  const paint = painter(terminal.colours)
  return (text) => `${paint('bold', text)}\n`
}

function needs({ profile, by, impact }: Tool): string {
  const who = by === 'owner' ? 'Only the owner may.' : by === 'person' ? 'Only people may.' : `Profile: ${profile} or above.`
  return `${who}${impact === 'destructive' ? ' It cannot be undone, so it asks first.' : ''}\n`
}

/** Two columns; what does not fit behind a long flag stands below it. */
function entries(lines: Entry[], terminal: Terminal, margin = '  '): string {
  const left = Math.min(LONGEST_FLAG, Math.max(...lines.map(([flag]) => width(flag))))
  const indent = margin.length + left + 2
  const room = Math.max(30, Math.min(terminal.columns(), WIDEST) - indent)
  return lines
    .map(([flag, text]) => {
      const wrapped = text ? wrap(text, room) : ['']
      const below = width(flag) > left
      const [first = '', ...rest] = below ? ['', ...wrapped] : wrapped
      return [`${margin}${pad(flag, left)}  ${first}`, ...rest.map((more) => ' '.repeat(indent) + more)]
        .map((shown) => `${shown.trimEnd()}\n`)
        .join('')
    })
    .join('')
}

function flagLine(tool: Tool, name: string): string {
  const property = argumentsOf(tool)[name] as Property
  if (property.type === 'boolean') return property.default === true ? `--no-${flagOf(name)}` : `--${flagOf(name)}`
  return `--${flagOf(name)} ${metavar(tool, name)}`
}

/** In the line of usage, where no flag says what it is. */
function placeholder(tool: Tool, name: string): string {
  const word = kindOf(tool, name)?.toUpperCase() ?? name.toUpperCase()
  return requiredOf(tool).includes(name) ? word : `[${word}]`
}

/** What stands for the value: the kind of thing, the words to choose from, or what type it has. */
function metavar(tool: Tool, name: string): string {
  const property = argumentsOf(tool)[name] as Property
  const list = property.type === 'array'
  const one = kindOf(tool, name)?.toUpperCase() ?? typeName(list ? (property.items ?? {}) : property)
  return `${one}${list ? '…' : ''}`
}

function typeName({ enum: words, type, format, pattern }: Property): string {
  if (words) return words.join('|')
  if (type === 'integer' || type === 'number') return 'N'
  if (type === 'object') return 'JSON'
  if (format === 'date-time') return 'TIME'
  if (pattern === '^\\/') return 'PATH'
  return type === 'string' ? 'TEXT' : 'VALUE'
}

function note(property: Property, required: boolean): string {
  const fallback = property.type === 'boolean' && property.default === false ? undefined : property.default
  const given = Array.isArray(fallback) && !fallback.length ? undefined : fallback === '' ? undefined : fallback
  return [
    inCommands(property.description ?? ''),
    property.type === 'array' ? 'repeatable' : '',
    required ? 'required' : '',
    property.nullable ? 'null for none' : '',
    given === undefined ? '' : `default ${Array.isArray(given) ? given.join(', ') : String(given)}`,
  ]
    .filter(Boolean)
    .join('; ')
}

function takesText(tool: Tool): boolean {
  return Object.entries(argumentsOf(tool)).some(
    ([name, p]) => name !== 'idempotency_key' && p.type === 'string' && (p.maxLength ?? 0) > 200,
  )
}
