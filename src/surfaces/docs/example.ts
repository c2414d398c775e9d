import type { Tool } from '../../kernel/tool.ts'
import { fieldsOf } from './json-schema.ts'

/** The line to type in a shell: ids that the tool requires stand by themselves, everything else is named. */
export function commandLine(tool: Tool): string {
  const example: Record<string, unknown> = tool.example ?? {}
  const alone = fieldsOf(tool.inputJson, tool.places).flatMap(({ path, required, id }) =>
    required && id && typeof example[path] === 'string' ? [path] : [],
  )
  const named = Object.entries(example).filter(([name]) => !alone.includes(name))
  const words = [
    ...alone.map((name) => quoted(String(example[name]))),
    ...named.flatMap(([name, value]) => flags(name.replaceAll('_', '-'), value)),
  ]
  return ['signalbox', tool.name.replace('_', ' '), ...words].join(' ')
}

export function curl(tool: Tool): string {
  return [
    `curl http://127.0.0.1:3001/api/tools/${tool.name}`,
    '-H "Authorization: Bearer $SIGNALBOX_TOKEN"',
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(tool.example ?? {}))}`,
  ].join(' \\\n  ')
}

function flags(flag: string, value: unknown): string[] {
  if (typeof value === 'boolean') return [value ? `--${flag}` : `--no-${flag}`]
  const repeated = Array.isArray(value) && value.every((item) => typeof item !== 'object' && !String(item).startsWith('['))
  const texts = repeated ? value.map(String) : [typeof value === 'object' ? JSON.stringify(value) : String(value)]
  // With a space between, what begins with a dash would be another flag.
  return texts.map((text) => `--${flag}${text.startsWith('-') ? '=' : ' '}${quoted(text)}`)
}

function quoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}
