import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { within } from '../../kernel/patience.ts'
import type { Delivery, Screen, Signs, TerminalState } from '../../ports/terminal.ts'
import type { Line } from './line.ts'
import { PANE, type Tmux } from './tmux.ts'

/** Somebody who follows one session. */
export interface Attended {
  tmux: Tmux
  line: Line
  look(): Promise<TerminalState>
  screen(): Promise<Screen | undefined>
}

/** Nobody is told when a hook has written its file: it is looked for this often, while a prompt is on its way. */
const TICK_MS = 100
/** One that ends while the line to it is being laid is heard of by nobody: it is looked for this often, until it is ready. */
const LOOK_MS = 1_000
/** A program that has drawn itself and says nothing waits for input. */
const QUIET_MS = 1_500
/** For so long it must have taken prompts: some draw their box first, and ask something a moment later. */
const SURE_MS = 1_000
/** Until a program has drawn what was pasted, and then drawn all of it. */
const SHOWN_MS = 15_000
const STILL_MS = 300
export interface Patience {
  /** After each Enter, before the next one. */
  takenMs: number[]
  /** What has left the box is being taken; a long text is drawn before the program says so. */
  drawnMs: number
}

/** The first is the longest that a hook was seen to take, twice. */
export const PATIENCE: Patience = { takenMs: [3_000, 4_000, 6_000], drawnMs: 15_000 }
/** Of its last line: more may stand on the next one. */
const SEEN_CHARACTERS = 30

/** What ends a paste before its end, and everything else that is a key and no letter. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not pass
const KEYS_IN_TEXT = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/g

/** Through a buffer, which has no length; as one paste where the program takes pastes. */
export async function paste(tmux: Tmux, text: string): Promise<void> {
  const name = `signalbox-${process.pid}-${performance.now()}`
  const plain = text.replaceAll('\r\n', '\n').replace(KEYS_IN_TEXT, '')
  await tmux.do(['load-buffer', '-b', name, '-'], { input: plain })
  await tmux.do(['paste-buffer', '-p', '-r', '-d', '-b', name, '-t', PANE])
}

export async function ready(
  attended: Attended,
  signs: Signs,
  onDialog: (what: string) => void,
  signal: AbortSignal,
): Promise<'ready' | 'gone'> {
  const { line } = attended
  let told = ''
  let since = performance.now()
  let readySince: number | undefined
  let mark: string | undefined
  while (!signal.aborted) {
    if ((await attended.look()).state !== 'running') return 'gone'
    const { version } = line
    const screen = await attended.screen()
    if (screen?.mark !== mark) since = performance.now()
    mark = screen?.mark
    const dialog = screen && dialogOn(screen, signs)
    if (dialog && dialog !== told) onDialog(dialog)
    told = dialog ?? ''
    const takes = !dialog && screen?.text && isReady(screen, signs, performance.now() - since)
    readySince = takes ? (readySince ?? performance.now()) : undefined
    if (readySince !== undefined && performance.now() - readySince >= SURE_MS) return 'ready'
    await news(line, version, takes || waitsForFile(signs.ready) || !signs.ready ? TICK_MS : LOOK_MS, signal)
    if (line.over) return 'gone'
  }
  return 'gone'
}

function isReady(screen: Screen, { ready, hooks }: Signs, stillMs: number): boolean {
  if (!ready) return stillMs >= QUIET_MS
  return 'event' in ready ? payloads(hooks, ready.event).length > 0 : ready.shows.test(screen.text)
}

export async function deliver(attended: Attended, text: string, signs: Signs, { takenMs, drawnMs }: Patience): Promise<Delivery> {
  const { tmux } = attended
  const before = await attended.screen()
  if (!before || (await attended.look()).state !== 'running') return failed('Nothing runs in that terminal.')
  const dialog = dialogOn(before, signs)
  if (dialog) return failed(`It asks something first: ${dialog}`)
  const earlier = signs.submitted && 'event' in signs.submitted ? payloads(signs.hooks, signs.submitted.event).length : 0
  await paste(tmux, text)
  const shown = await settled(attended, before.mark)
  if (!shown) return failed('What was pasted did not show, so Enter was not pressed.')
  const asked = dialogOn(shown, signs)
  if (asked) return failed(`It asks something first: ${asked}`)
  for (const patienceMs of takenMs) {
    await tmux.do(['send-keys', '-t', PANE, 'Enter'])
    const outcome = await taking(attended, text, signs, { shown, earlier, patienceMs, drawnMs })
    if (outcome !== 'again') return outcome
  }
  return {
    state: 'not_verified',
    detail: `Enter was pressed ${takenMs.length} times, and the program did not say that it took the prompt.`,
  }
}

/** `again`: nothing has happened since Enter, so it was swallowed. Where something has, a second one could answer a question. */
async function taking(
  attended: Attended,
  text: string,
  signs: Signs,
  { shown, earlier, patienceMs, drawnMs }: { shown: Screen; earlier: number; patienceMs: number; drawnMs: number },
): Promise<Delivery | 'again'> {
  const { line } = attended
  const { submitted } = signs
  const began = performance.now()
  const until = () => began + (now && mayEnterAgain(now, shown, signs) ? patienceMs : drawnMs)
  let now: Screen | undefined = shown
  while (performance.now() < until() && !line.over) {
    const { version } = line
    if (submitted && 'event' in submitted) {
      const told = payloads(signs.hooks, submitted.event)
      if (told.some((prompt) => isSame(prompt, text))) return { state: 'sent' }
      if (told.length > earlier)
        return { state: 'not_verified', detail: `It took another text: ${told.at(-1)?.length ?? 0} characters instead of ${text.length}.` }
    }
    now = await attended.screen()
    if (submitted && 'shows' in submitted && now && submitted.shows.test(now.text) && !submitted.shows.test(shown.text))
      return { state: 'sent' }
    if (now && !waitsForFile(submitted) && hasLeftTheBox(now, shown, text, signs)) return { state: 'sent' }
    const left = Math.max(1, Math.ceil(until() - performance.now()))
    await news(line, version, waitsForFile(submitted) ? Math.min(left, TICK_MS) : left)
  }
  if (!now || (await attended.look()).state !== 'running') return failed('The program ended.')
  const dialog = dialogOn(now, signs)
  if (dialog) return { state: 'not_verified', detail: `It asks something: ${dialog}` }
  if (mayEnterAgain(now, shown, signs)) return 'again'
  return { state: 'not_verified', detail: 'Enter was pressed and the screen changed; whether the program took the prompt is not known.' }
}

/** The text still stands there as it did, or the program, which would have said so, has not taken it. */
function mayEnterAgain(now: Screen, shown: Screen, { submitted, holds }: Signs): boolean {
  return waitsForFile(submitted) || now.mark === shown.mark || (holds?.test(shown.text) === true && holds.test(now.text))
}

/** It stood there folded, and stands now unfolded among what was said: a short turn may be over before anybody sees that it is one. */
function hasLeftTheBox(now: Screen, shown: Screen, text: string, { holds }: Signs): boolean {
  const end = text.trim().split('\n').at(-1)?.trim().slice(0, SEEN_CHARACTERS)
  if (!holds || !end) return false
  return holds.test(shown.text) && !holds.test(now.text) && !shown.text.includes(end) && now.text.includes(end)
}

export function taken(text: string, { submitted, hooks }: Signs): boolean | undefined {
  if (!submitted || !('event' in submitted)) return undefined
  return payloads(hooks, submitted.event).some((prompt) => isSame(prompt, text))
}

/** When the screen is another one, and has been so for a moment. */
async function settled({ line, screen }: Attended, before: string): Promise<Screen | undefined> {
  const until = performance.now() + SHOWN_MS
  let last: Screen | undefined
  let since = performance.now()
  while (performance.now() < until && !line.over) {
    const { version } = line
    const now = await screen()
    if (now?.mark !== last?.mark) since = performance.now()
    last = now
    if (now && now.mark !== before && performance.now() - since >= STILL_MS) return now
    await news(line, version, TICK_MS)
  }
  // One that never stands still has shown it all the same.
  return last && last.mark !== before ? last : undefined
}

function dialogOn({ text }: Screen, { dialogs }: Signs): string | undefined {
  return dialogs.find(({ shows }) => shows.test(text))?.what
}

function waitsForFile(sign: Signs['ready']): boolean {
  return sign !== undefined && 'event' in sign
}

/** The prompts of the events that were told, oldest first. One that is not whole yet is not there yet. */
function payloads(folder: string | undefined, event: string): string[] {
  if (!folder) return []
  try {
    const files = readdirSync(folder).filter((name) => name.startsWith(`${event}.`) && name.endsWith('.json'))
    return files.sort().map((name) => promptIn(readFileSync(join(folder, name), 'utf8')))
  } catch {
    return []
  }
}

function promptIn(json: string): string {
  try {
    return String((JSON.parse(json) as { prompt?: unknown }).prompt ?? '')
  } catch {
    return ''
  }
}

function isSame(prompt: string, text: string): boolean {
  return prompt.replaceAll('\r\n', '\n').trim() === text.replaceAll('\r\n', '\n').replace(KEYS_IN_TEXT, '').trim()
}

function failed(detail: string): Delivery {
  return { state: 'failed', detail }
}

/** News of the line, or a tick for what nobody tells. */
function news(line: Line, version: number, tickMs: number, signal?: AbortSignal): Promise<void> {
  return within(tickMs, signal, (either) => line.after(version, either))
}
