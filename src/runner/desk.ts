import type { Socket } from 'node:net'
import type { Agent } from './agent.ts'
import type { Keeper } from './keeper.ts'
import type { Input } from './socket.ts'
import type { Spec } from './spec.ts'

/** More than this and the agent does not read what it is sent. */
const MOST_UNREAD_BYTES = 64 * 1024 * 1024

/** Takes what is sent to the agent, in order, each once. What comes before the agent is there waits for it. */
export interface Desk {
  take(input: Input): Promise<boolean>
  open(agent: Agent, stdin: Socket | undefined, spec: Spec, keeper: Keeper): void
  close(): void
}

type Hand = (input: Input) => Promise<boolean>

export function createDesk(): Desk {
  const seen = new Map<number, Promise<boolean>>()
  const refuse: Hand = async () => false
  let hand = refuse
  let opened!: () => void
  const ready = new Promise<void>((resolve) => {
    opened = resolve
  })
  return {
    async take(input) {
      await ready
      const taken = seen.get(input.seq) ?? hand(input)
      seen.set(input.seq, taken)
      return taken
    },
    open(agent, stdin, spec, keeper) {
      hand = handTo(agent, stdin, spec, keeper)
      opened()
    },
    close() {
      hand = refuse
      opened()
    },
  }
}

function handTo(agent: Agent, stdin: Socket | undefined, spec: Spec, keeper: Keeper): Hand {
  let open = stdin !== undefined
  // An agent may close its input whenever it likes.
  stdin?.on('error', () => {
    open = false
  })
  function write(text: string, seq?: number): boolean {
    if (!open || !stdin || stdin.writableLength > MOST_UNREAD_BYTES || !keeper.told(text, seq)) return false
    stdin.write(text)
    return true
  }
  function end(): boolean {
    const wasOpen = open
    open = false
    stdin?.end()
    return wasOpen
  }
  if (typeof spec.stdin === 'object') {
    write(spec.stdin.text)
    if (!spec.stdin.open) end()
  }
  return async ({ seq, data, close, signal }) => {
    if (data !== undefined && !write(data, seq)) return false
    if (close && !end()) return false
    return signal ? agent.signal(signal) : true
  }
}
