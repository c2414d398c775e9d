import type { HarnessEvent } from '../../ports/harness.ts'

/**
 * What has to be remembered for the events to make sense together, whatever a program prints: turns open and close in pairs, and a
 * result belongs to a call that is open.
 */
export interface Story {
  ready: boolean
  turn: boolean
  /** The last turn was ended by somebody, and no other has begun since. */
  interrupted: boolean
  /** Tool calls without a result. */
  open: string[]
  /** What it asked permission for in this turn. Unsaid in the state of an older daemon. */
  asked?: string[]
  /** A failure or a limit was told: the exit needs no second one. */
  told: boolean
}

/** A program that never tells a result must not make the state grow for ever. */
const MOST_OPEN = 256

export const newStory = (): Story => ({ ready: false, turn: false, interrupted: false, open: [], asked: [], told: false })

type Next = { story: Story; events: HarnessEvent[] }

/** The event as it fits in; nothing when it does not. */
export function tell(story: Story, event: HarnessEvent): Next {
  switch (event.type) {
    case 'ready':
      return story.ready ? { story, events: [] } : { story: { ...story, ready: true }, events: [event] }
    case 'turn_started':
      return story.turn ? { story, events: [] } : { story: { ...story, turn: true, interrupted: false }, events: [event] }
    case 'turn_ended':
      if (!story.turn) return { story, events: [] }
      return { story: { ...story, turn: false, interrupted: event.how === 'interrupted', asked: [] }, events: [event] }
    case 'tool_call':
      if (story.open.includes(event.id)) return { story, events: [] }
      return { story: { ...story, open: [...story.open, event.id].slice(-MOST_OPEN) }, events: [event] }
    case 'tool_result':
      return resulted(story, event)
    case 'approval_asked':
      return { story: { ...story, asked: [...without(story.asked, event.id), event.id].slice(-MOST_OPEN) }, events: [event] }
    case 'failed':
    case 'limit_reached':
      return { story: { ...story, told: true }, events: [event] }
    default:
      return { story, events: [event] }
  }
}

/** It was withdrawn, or it has gone on by itself: whoever was asked need not answer any more. */
export const notAskedAnyMore = (id: string): HarnessEvent => ({
  type: 'tool_result',
  id,
  ok: false,
  output: 'It went on without an answer to its question.',
})

/** Of a call that is open, or of a question. */
function resulted(story: Story, event: Extract<HarnessEvent, { type: 'tool_result' }>): Next {
  const { id } = event
  if (!story.open.includes(id) && !story.asked?.includes(id)) return { story, events: [] }
  return { story: { ...story, open: without(story.open, id), asked: without(story.asked, id) }, events: [event] }
}

const without = (ids: string[] | undefined, id: string) => (ids ?? []).filter((one) => one !== id)

export function tellAll(story: Story, events: HarnessEvent[]): Next {
  let now = story
  const told = events.flatMap((event) => {
    const next = tell(now, event)
    now = next.story
    return next.events
  })
  return { story: now, events: told }
}
