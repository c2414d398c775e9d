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
  /** A failure or a limit was told: the exit needs no second one. */
  told: boolean
}

/** A program that never tells a result must not make the state grow for ever. */
const MOST_OPEN = 256

export const newStory = (): Story => ({ ready: false, turn: false, interrupted: false, open: [], told: false })

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
      return { story: { ...story, turn: false, interrupted: event.how === 'interrupted' }, events: [event] }
    case 'tool_call':
      if (story.open.includes(event.id)) return { story, events: [] }
      return { story: { ...story, open: [...story.open, event.id].slice(-MOST_OPEN) }, events: [event] }
    case 'tool_result':
      if (!story.open.includes(event.id)) return { story, events: [] }
      return { story: { ...story, open: story.open.filter((id) => id !== event.id) }, events: [event] }
    case 'failed':
    case 'limit_reached':
      return { story: { ...story, told: true }, events: [event] }
    default:
      return { story, events: [event] }
  }
}

export function tellAll(story: Story, events: HarnessEvent[]): Next {
  let now = story
  const told = events.flatMap((event) => {
    const next = tell(now, event)
    now = next.story
    return next.events
  })
  return { story: now, events: told }
}
