import { commandOf } from '../../kernel/tool.ts'

/** A call as the receiver of a letter makes it: an agent by the name of the tool, a person by a command. */
export function callFor(to: string, tool: string, ...words: string[]): string {
  return to.startsWith('agent_') ? tool : `\`${['signalbox', commandOf(tool), ...words].join(' ')}\``
}
