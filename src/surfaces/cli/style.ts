/** SGR codes of what the tables and the help use. */
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, blue: 34, cyan: 36 } as const

export type Colour = keyof typeof CODES
export type Paint = (colour: Colour | undefined, text: string) => string

export function painter(colours: boolean): Paint {
  return (colour, text) => (colours && colour && text ? `\u001b[${CODES[colour]}m${text}\u001b[0m` : text)
}

/** What the words of states, outcomes and priorities mean to the eye. A word that is not here stays plain. */
const TONES: Record<Colour, string[]> = {
  green: ['done', 'ok', 'active', 'accepted', 'merged', 'approved', 'succeeded', 'idle', 'yes'],
  cyan: ['in_progress', 'running', 'busy', 'starting', 'replayed', 'changed'],
  yellow: ['review', 'waiting_review', 'human', 'proposed', 'paused', 'waiting', 'high', 'dependency', 'wait_timeout', 'unknown'],
  red: ['failed', 'refused', 'dead', 'crashed', 'rejected', 'damaged', 'critical', 'error'],
  dim: ['backlog', 'stopped', 'ended', 'expired', 'dropped', 'low'],
  bold: [],
  blue: [],
}

export function toneOf(word: string): Colour | undefined {
  const wanted = word.toLowerCase()
  return (Object.keys(TONES) as Colour[]).find((colour) => TONES[colour].includes(wanted))
}
