import { capabilities } from '../../capabilities/index.ts'
import { UsageError } from '../../kernel/error.ts'
import { closest } from '../../kernel/registry.ts'
import { commandOf as commandFor, type Tool } from '../../kernel/tool.ts'
import { BUILT_IN } from './built-in.ts'

/** What the command line offers: every tool that is on a surface. */
export const tools: Tool[] = capabilities.flatMap((capability) => capability.tools).filter((tool) => !tool.internal)

export const nouns: string[] = [...new Set(tools.map((tool) => nounOf(tool)))]

export function nounOf(tool: Tool): string {
  return tool.name.slice(0, tool.name.indexOf('_'))
}

export function verbOf(tool: Tool): string {
  return tool.name.slice(tool.name.indexOf('_') + 1).replaceAll('_', '-')
}

export function toolsOf(noun: string): Tool[] {
  return tools.filter((tool) => nounOf(tool) === noun)
}

export function commandOf(tool: Tool): string {
  return commandFor(tool.name)
}

export function named(name: string): Tool | undefined {
  return tools.find((tool) => tool.name === name)
}

export function find(noun: string, verb: string): Tool {
  const tool = named(`${noun}_${verb.replaceAll('-', '_')}`)
  if (tool) return tool
  throw new UsageError(unknown(noun, verb))
}

/** Refusals are written for every surface and name tools; here the reader types commands. */
export function inCommands(text: string): string {
  return text.replace(/\b[a-z]+(?:_[a-z]+)+\b/g, (word) => {
    const tool = named(word)
    return tool ? `signalbox ${commandOf(tool)}` : word
  })
}

function unknown(noun: string, verb: string): string {
  const asked = `There is no "signalbox ${[noun, verb].filter(Boolean).join(' ')}".`
  const verbs = toolsOf(noun).map(verbOf)
  if (verbs.length) {
    const near = closest(verb, verbs)
    return `${asked} ${near.length ? `Did you mean: ${near.map((v) => `signalbox ${noun} ${v}`).join(', ')}? ` : ''}Its verbs: ${verbs.join(', ')}.`
  }
  const near = nearest(noun, verb)
  const meant = near.length ? ` Did you mean: ${near.map((command) => `signalbox ${command}`).join(', ')}?` : ''
  return `${asked}${meant} "signalbox tools" lists all, "signalbox --help" explains.`
}

/** The verb is right in most cases where the noun is not, and the other way round. */
function nearest(noun: string, verb: string): string[] {
  const near = closest(noun, [...nouns, ...Object.keys(BUILT_IN)])
  const same = near.filter((other) => named(`${other}_${verb.replaceAll('-', '_')}`)).map((other) => `${other} ${verb}`)
  if (same.length) return same
  const whole = closest(`${noun} ${verb}`, tools.map(commandOf))
  return whole.length ? whole : near
}
