import type { Tool } from '../../kernel/tool.ts'
import { commandLine, quote } from '../cli/shell.ts'

const exampleOf = (tool: Tool): Record<string, unknown> => tool.example ?? {}

export function typedLine(tool: Tool): string {
  return commandLine(tool, exampleOf(tool))
}

export function curl(tool: Tool): string {
  return [
    `curl http://127.0.0.1:3001/api/tools/${tool.name}`,
    '-H "Authorization: Bearer $SIGNALBOX_TOKEN"',
    "-H 'Content-Type: application/json'",
    `-d ${quote(JSON.stringify(exampleOf(tool)))}`,
  ].join(' \\\n  ')
}
