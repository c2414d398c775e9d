import type { Call } from './script.ts'

/** A call as the program wants it. `patch` is for a tool that takes a text in the place of JSON. */
export interface NamedCall {
  name: string
  args: Record<string, unknown>
  patch?: string
}

type Shape = [name: string, args: (given: Record<string, unknown>) => Record<string, unknown>]

const SHELLS: Shape[] = [
  ['Bash', ({ command }) => ({ command, description: 'as the script says' })],
  ['run_shell_command', ({ command }) => ({ command })],
  // It answers after ten seconds, done or not, unless it is told to wait.
  ['exec_command', ({ command }) => ({ cmd: command, yield_time_ms: 30_000 })],
  ['shell_command', ({ command }) => ({ command })],
  ['shell', ({ command }) => ({ command: ['bash', '-lc', command] })],
  ['bash', ({ command }) => ({ command, description: 'as the script says' })],
]

const WRITERS: Shape[] = [
  ['Write', ({ path, content }) => ({ file_path: path, content })],
  ['write_file', ({ path, content }) => ({ file_path: path, content })],
  ['write', ({ path, content }) => ({ filePath: path, content })],
]

/** Every program names its tools in its own way; the request says which it has. */
export function named({ tool, args = {} }: Call, names: string[]): NamedCall {
  if (tool.startsWith('mcp:')) return { name: mcpName(tool.slice('mcp:'.length), names), args }
  if (tool === 'bash') return shaped(SHELLS, args, names) ?? { name: 'bash', args }
  if (tool === 'write') return written(args, names)
  return { name: tool, args }
}

function shaped(shapes: Shape[], args: Record<string, unknown>, names: string[]): NamedCall | undefined {
  const shape = shapes.find(([name]) => names.includes(name))
  return shape && { name: shape[0], args: shape[1](args) }
}

function written(args: Record<string, unknown>, names: string[]): NamedCall {
  const { path, content } = args
  const asShell = { command: `cat > '${path}' <<'SCRIPTED'\n${content}\nSCRIPTED` }
  if (names.includes('apply_patch')) return { name: 'apply_patch', args: {}, patch: addFile(String(path), String(content)) }
  return shaped(WRITERS, args, names) ?? shaped(SHELLS, asShell, names) ?? { name: 'write', args }
}

function addFile(path: string, content: string): string {
  const lines = content.replace(/\n$/, '').split('\n')
  return ['*** Begin Patch', `*** Add File: ${path}`, ...lines.map((line) => `+${line}`), '*** End Patch', ''].join('\n')
}

function mcpName(which: string, names: string[]): string {
  const [server = '', tool = ''] = which.split(/\.(.*)/s)
  const usual = [`mcp__${server}__${tool}`, `mcp_${server}_${tool}`, `${server}_${tool}`, `${server}__${tool}`]
  const byEnding = names.find((name) => name.includes(server) && name.endsWith(`_${tool}`))
  return usual.find((name) => names.includes(name)) ?? byEnding ?? (usual[0] as string)
}
