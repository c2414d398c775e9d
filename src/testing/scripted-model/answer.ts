import { type Conversation, type Place, placeOf, type Rule, type Schema } from './conversation.ts'
import { callsOf, type Step, type Usage } from './script.ts'
import { type NamedCall, named } from './tools.ts'

/** What the model says to one request. */
export interface Answer {
  think: string
  text: string
  calls: NamedCall[]
  /** Of the step that is done; ids of calls carry it. */
  step: number
  usage: Usage
}

/** An answer, and the step that says how it is given. */
export interface Planned {
  answer: Answer
  how: Pick<Step, 'delayMs' | 'hang' | 'cut' | 'error'>
  place: Place
}

const USAGE: Usage = { input: 1200, output: 42, cached: 0 }
const LONGEST_LAST = 4_000

export function plan(conversation: Conversation, rules: Rule[]): Planned {
  const place = placeOf(conversation, rules)
  const aside = sideCall(conversation)
  if (aside !== undefined) return { answer: spoken(aside), how: {}, place }
  const { steps, at, heard, last } = place
  const listens = steps[at]?.listen === true
  if (listens && heard === undefined) return { answer: spoken('listening'), how: steps[at] ?? {}, place }
  const index = listens ? at + 1 : at
  const step = steps[index] ?? { say: listens ? '' : 'The script is over.' }
  const filled = fill(step, last)
  const text = [listens ? `heard: ${heard}` : '', filled.say ?? ''].filter(Boolean).join('\n')
  const calls = callsOf(filled).map((call) => named(call, conversation.tools))
  return { answer: { think: filled.think ?? '', text, calls, step: index, usage: { ...USAGE, ...step.usage } }, how: step, place }
}

/** A title, a summary, a verdict: programs ask for these beside the work, without tools. */
function sideCall({ tools, schema }: Conversation): string | undefined {
  if (schema && (tools.length === 0 || schema.properties?.risk_level)) return JSON.stringify(instance(schema))
  return tools.length === 0 ? 'A title' : undefined
}

function spoken(text: string): Answer {
  return { think: '', text, calls: [], step: 0, usage: USAGE }
}

function fill(step: Step, last: string): Step {
  const text = JSON.stringify(last.slice(0, LONGEST_LAST)).slice(1, -1)
  return JSON.parse(JSON.stringify(step).replaceAll('{{last}}', () => text))
}

/** The smallest value that a schema allows. */
function instance(schema: Schema): unknown {
  if (schema.enum) return schema.enum[0]
  if (schema.const !== undefined) return schema.const
  const type = [schema.type ?? (schema.properties ? 'object' : 'string')].flat()[0]?.toLowerCase()
  if (type === 'object') return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, of]) => [name, instance(of)]))
  if (type === 'array') return []
  if (type === 'number' || type === 'integer') return schema.minimum ?? 1
  return type === 'boolean' ? false : 'scripted'
}

/** As a model streams it. */
export function words(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? []
}
