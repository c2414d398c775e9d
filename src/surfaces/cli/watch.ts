import { setTimeout as pause } from 'node:timers/promises'
import { Refusal } from '../../kernel/error.ts'
import { isBusy, type Reach, type Row } from './call.ts'
import { asJson } from './show.ts'
import { follow } from './stream.ts'
import type { Terminal } from './terminal.ts'
import { width } from './text.ts'

/** A burst of events is one look. */
const BETWEEN_LOOKS_MS = 250
/** "3 min ago" grows old without an event. */
const AGES_MS = 15_000

/** When the daemon had no time for the last look. */
const AGAIN_MS = 2_000

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
      let again: number | undefined
      const seen = await look().catch((error: unknown) => {
        if (isBusy(error)) again = AGAIN_MS
        return unlessAway(error)
      })
      last = seen ?? last
      const now = last && asJson({ ...last, cursor: undefined }, false)
      if (now && now !== before) {
        if (screen) await show()
        else terminal.out(json ? now : await draw(last as Row))
      }
      before = now
      await bell.next(again)
      await pause(BETWEEN_LOOKS_MS)
    }
  } finally {
    clearInterval(ageing)
    ending.abort()
  }
}

/** While the daemon restarts, the stream waits for it; what is shown stays. */
function unlessAway(error: unknown): undefined {
  if (isBusy(error) || (error instanceof Refusal && error.body.code === 'DISCONNECTED')) return undefined
  throw error
}

/** `next` resolves when something was heard since it was last asked: also a new connection, since what came in between was missed. */
function ringing(reach: Reach, signal: AbortSignal): { next(most: number | undefined): Promise<void> } {
  let heard = false
  let failed: { error: unknown } | undefined
  let wake = () => {}
  const listen = async () => {
    for await (const _ of follow(reach, () => {}, signal)) {
      heard = true
      wake()
    }
  }
  listen().catch((error: unknown) => {
    failed = { error }
    wake()
  })
  return {
    async next(most) {
      if (!heard && !failed)
        await new Promise<void>((resolve) => {
          wake = resolve
          if (most !== undefined) setTimeout(resolve, most)
        })
      if (failed) throw failed.error
      heard = false
    },
  }
}

/** Drawn over what was there, so that nothing flickers; what does not fit below is left out. */
export function frame(title: string, text: string, terminal: Terminal): string {
  const lines = [`${title}   (Ctrl-C ends)`, '', ...text.trimEnd().split('\n')]
  const room = terminal.rows() - 1
  const kept = fitting(lines, room, terminal)
  const fewer = fitting(lines, room - 1, terminal)
  const shown = kept < lines.length ? [...lines.slice(0, fewer), `… ${lines.length - fewer} more lines`] : lines
  return `\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`
}

/** How many of the lines fit: one that is wider than the terminal takes several of its rows. */
function fitting(lines: string[], rows: number, terminal: Terminal): number {
  let left = rows
  const over = lines.findIndex((line) => {
    left -= Math.max(1, Math.ceil(width(line) / terminal.columns()))
    return left < 0
  })
  return over < 0 ? lines.length : over
}
