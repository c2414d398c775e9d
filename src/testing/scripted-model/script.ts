/** A call of a tool. `bash`, `write` and `mcp:<server>.<tool>` are found among the tools of whichever program asks; other names are taken as they are. */
export interface Call {
  tool: string
  args?: Record<string, unknown>
}

/** An answer that is no answer. */
export interface Fault {
  status: number
  /** So often, then the step is done. */
  times: number
  /** In seconds. */
  retryAfter?: number
  /** In the place of what the API would say. */
  body?: string
  headers?: Record<string, string>
}

export interface Usage {
  input: number
  output: number
  cached?: number
}

/**
 * What the model does when it is asked next. A step with calls leaves the turn open; one without ends it, and the step after it is for the
 * next message of the person. `{{last}}` in a text or an argument is the result of the last tool.
 */
export interface Step extends Partial<Call> {
  tools?: Call[]
  say?: string
  think?: string
  /** Answers the next message that has no script of its own by `heard: <its text>`, and does the step after it in the same breath. */
  listen?: boolean
  delayMs?: number
  /** Never answers. */
  hang?: boolean
  /** Drops the connection in the middle of the answer. */
  cut?: boolean
  error?: Omit<Fault, 'times'> & { times?: number }
  usage?: Usage
}

const BEGIN = '@@SCRIPT'
const END = '@@END'

/** The text that a prompt carries. */
export function script(steps: Step[]): string {
  // No text within it may look like its end.
  return `${BEGIN} ${JSON.stringify(steps).replaceAll('@@', '\\u0040\\u0040')} ${END}`
}

/** The last script of a text; undefined when it has none. */
export function scriptIn(text: string): Step[] | undefined {
  const from = text.lastIndexOf(BEGIN)
  const to = text.indexOf(END, from)
  if (from < 0 || to < 0) return undefined
  const json = text.slice(from + BEGIN.length, to)
  return parsed(json) ?? parsed(json.replaceAll('\\"', '"')) ?? [{ say: `This script cannot be read: ${json.trim()}` }]
}

function parsed(json: string): Step[] | undefined {
  try {
    const steps = JSON.parse(json)
    return Array.isArray(steps) ? steps : undefined
  } catch {
    return undefined
  }
}

export function callsOf(step: Step): Call[] {
  if (step.tools) return step.tools
  return step.tool ? [{ tool: step.tool, args: step.args }] : []
}
