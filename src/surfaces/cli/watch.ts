import { setTimeout as pause } from 'node:timers/promises'
import { Refusal } from '../../kernel/error.ts'
import type { Reach, Row } from './call.ts'
import { asJson } from './show.ts'
import { follow } from './stream.ts'
import type { Terminal } from './terminal.ts'

/** A burst of events is one look. */
const BETWEEN_LOOKS_MS = 250
/** "3 min ago" grows old without an event. */
const AGES_MS = 15_000

export interface Watched {
  title: string
  /** One line of JSON for each change. */
  json: boolean
  look(): Promise<Row>
  draw(result: Row): Promise<string>
}

/** Looks again whenever the log goes on, and shows what changed; ends with the process, or when the thing is gone. */
export async function watch({ title, json, look, draw }: Watched, reach: Reach, terminal: Terminal): Promise<never> {
  const screen = !json && terminal.redraws
  const ending = new AbortController()
  const bell = ringing(reach, ending.signal)
  let before: string | undefined
  let last: Row | undefined
  const show = async () => last && terminal.out(frame(title, await draw(last), terminal))
  const ageing = screen ? setInterval(() => void show(), AGES_MS) : undefined
  if (screen) terminal.out('\u001b[2J')
  try {
    for (;;) {
      last = (await look().catch(unlessAway)) ?? last
      const now = last && asJson({ ...last, cursor: undefined }, false)
      if (now && now !== before) {
        if (screen) await show()
        else terminal.out(json ? now : await draw(last as Row))
      }
      before = now
      await bell.next()
      await pause(BETWEEN_LOOKS_MS)
    }
  } finally {
    clearInterval(ageing)
    ending.abort()
  }
}

/** While the daemon restarts, the stream waits for it; what is shown stays. */
function unlessAway(error: unknown): undefined {
  if (error instanceof Refusal && ['DISCONNECTED', 'SHUTTING_DOWN'].includes(error.body.code)) return undefined
  throw error
}

/** `next` resolves when something was heard since it was last asked: also a new connection, since what came in between was missed. */
function ringing(reach: Reach, signal: AbortSignal): { next(): Promise<void> } {
  let heard = false
  let wake = () => {}
  const over = (async () => {
    for await (const _ of follow(reach, () => {}, signal)) {
      heard = true
      wake()
    }
  })()
  over.catch(() => {})
  return {
    async next() {
      if (!heard) await Promise.race([new Promise<void>((resolve) => (wake = resolve)), over])
      heard = false
    },
  }
}

/** Drawn over what was there, so that nothing flickers; what does not fit below is left out. */
function frame(title: string, text: string, terminal: Terminal): string {
  const lines = [`${title}   (Ctrl-C ends)`, '', ...text.trimEnd().split('\n')]
  const room = terminal.rows() - 1
  const shown = lines.length > room ? [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`] : lines
  return `\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`
}
