import { UsageError } from '../../kernel/error.ts'
import type { Tool } from '../../kernel/tool.ts'
import type { Reach, Row } from './call.ts'
import { titleOf } from './handles.ts'
import { commandOf, inCommands } from './names.ts'
import { kindOf } from './schema.ts'
import { painter } from './style.ts'
import type { Terminal } from './terminal.ts'
import { cut, oneLine } from './text.ts'

const LONGEST_VALUE = 80

/** Whether to go ahead with what cannot be undone. Where nobody can be asked, it must have been said on the command line. */
export async function confirmed(tool: Tool, input: Row, reach: Reach, terminal: Terminal): Promise<boolean> {
  if (!terminal.tty.in || !terminal.tty.err)
    throw new UsageError(`"signalbox ${commandOf(tool)}" cannot be undone, and there is no terminal to ask on. Add --yes to go ahead.`)
  const paint = painter(terminal.colours)
  const given: string[] = []
  for (const [name, value] of Object.entries(input)) given.push(await described(tool, name, value, reach))
  terminal.err(`${paint('bold', `${tool.title}: ${given.join(', ')}`)}\n`)
  terminal.err(`${inCommands(tool.description)}\n`)
  const answer = await terminal.ask('Go ahead? [y/N] ')
  if (/^y(es)?$/i.test(answer.trim())) return true
  terminal.err('Nothing was done.\n')
  return false
}

async function described(tool: Tool, name: string, value: unknown, reach: Reach): Promise<string> {
  const kind = kindOf(tool, name)
  if (!kind || typeof value !== 'string') return `${name.replaceAll('_', ' ')} ${shown(value)}`
  const title = await titleOf(kind, value, reach)
  return `${kind} ${shown(value)}${title ? ` (${shown(title)})` : ''}`
}

function shown(value: unknown): string {
  return cut(oneLine(typeof value === 'string' ? value : JSON.stringify(value)), LONGEST_VALUE)
}
