import { callsOf, type Step, scriptIn } from './script.ts'

/** What was said so far, whichever API it came by. `step` is what the id of a call says. */
export type Entry =
  | { from: 'person'; text: string }
  | { from: 'model'; text: string }
  | { from: 'call'; step: number | undefined }
  | { from: 'tool'; text: string }

export interface Conversation {
  entries: Entry[]
  /** The names of the tools that may be called. */
  tools: string[]
  model: string
  stream: boolean
  /** The answer has to be JSON of this shape. */
  schema: Schema | undefined
}

export interface Schema {
  type?: string | string[]
  properties?: Record<string, Schema>
  enum?: unknown[]
  const?: unknown
  minimum?: number
}

export interface Rule {
  match: RegExp
  steps: Step[]
}

/** Where a conversation stands in its script. */
export interface Place {
  steps: Step[]
  at: number
  /** The message that a `listen` at this place has to answer. */
  heard: string | undefined
  last: string
}

/** The newest script counts; how far it got is seen from the ids of the calls after it, so that the server remembers nothing. */
export function placeOf({ entries }: Conversation, rules: Rule[]): Place {
  const begun = entries.findLastIndex((entry) => entry.from === 'person' && scriptIn(entry.text))
  if (begun < 0) return unscripted(entries, rules)
  return follow(scriptIn(textOf(entries[begun])) as Step[], entries.slice(begun + 1))
}

function unscripted(entries: Entry[], rules: Rule[]): Place {
  const begun = entries.findLastIndex((entry) => entry.from === 'person')
  const text = textOf(entries[begun])
  const rule = rules.find(({ match }) => match.test(text))
  return follow(rule?.steps ?? [{ say: `No script in: ${text.slice(-200)}` }], entries.slice(begun + 1))
}

function follow(steps: Step[], after: Entry[]): Place {
  let at = 0
  let spoken = false
  let answered = false
  let taken = 0
  let last = ''
  const messages: string[] = []
  const move = (to: number) => {
    taken += steps.slice(at, to).filter((step) => step.listen).length
    at = to
    spoken = false
    answered = false
  }
  for (const entry of after) {
    if (entry.from === 'tool') last = entry.text
    if (entry.from === 'model') {
      spoken = true
      answered ||= messages.length > taken
    }
    if (entry.from === 'call' && entry.step !== undefined) move(Math.max(at, entry.step + 1))
    if (entry.from === 'person') {
      // A step that ended the turn, or was broken off, is over when a person speaks again; one that listens, when it was answered.
      const step = steps[at]
      if (step?.listen && answered) move(at + 2)
      else if (step && !step.listen && (step.hang || spoken) && callsOf(step).length === 0) move(at + 1)
      messages.push(entry.text)
    }
  }
  return { steps, at, heard: messages[taken], last }
}

function textOf(entry: Entry | undefined): string {
  return entry && 'text' in entry ? entry.text : ''
}

const MARK = /sbm_s(\d+)_/

/** Holds the number of the step, which is how far a script got. */
export function callId(step: number, i: number): string {
  return `sbm_s${step}_${i}_${Math.random().toString(36).slice(2, 12)}`
}

export function stepOf(id: unknown): number | undefined {
  const found = MARK.exec(String(id ?? ''))
  return found ? Number(found[1]) : undefined
}

/** Without what programs put around the words of a person. */
export function spokenWords(text: string): string {
  return text
    .replace(/<(system-reminder|session_context)>[\s\S]*?<\/\1>/g, '')
    .replace(/\[Request interrupted by user[^\]]*\]/g, '')
    .trim()
}
