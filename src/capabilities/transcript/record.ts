import { redactText } from '../../kernel/redact.ts'
import type { RunContext } from '../../kernel/tool.ts'
import type { EntryKind } from './schema.ts'
import { type EntryRow, transcriptStore } from './store.ts'

const LONGEST_BODY = 16_384
const MOST_ENTRIES = 20_000
/** A program that prints without end would fill the database; what its agent says and does is kept longer. */
const MOST_WITH_OUTPUT = 2_000

export interface Said {
  turn: number
  kind: EntryKind
  name?: string
  body: string
}

/** Adds to the transcript of a run. Secrets never reach it, nothing in it is without bound, and what is left out is said. */
export async function record(ctx: RunContext, about: { run: string; task: string }, said: Said[]): Promise<number> {
  const store = transcriptStore(ctx.tx)
  const before = await store.size(about.run)
  const room = MOST_ENTRIES - before
  if (room <= 0 || !said.length) return 0
  const kept = withLessOutput(said, before).slice(0, room)
  const last = kept.at(-1)
  if (last && kept.length === room)
    kept[kept.length - 1] = {
      turn: last.turn,
      kind: 'signalbox',
      body: `What follows is not kept: a run has at most ${MOST_ENTRIES} entries.`,
    }
  const rows = kept.map(
    ({ turn, kind, name, body }, i): EntryRow => ({
      run_id: about.run,
      number: before + i + 1,
      task_id: about.task,
      turn,
      kind,
      name: name === undefined ? null : storable(name).slice(0, 200),
      body: cut(redactText(storable(body))),
      at: ctx.now,
    }),
  )
  await store.insert(rows)
  return rows.length
}

function withLessOutput(said: Said[], before: number): Said[] {
  const kept: Said[] = []
  for (const one of said) {
    const number = before + kept.length + 1
    if (number === MOST_WITH_OUTPUT)
      kept.push({ turn: one.turn, kind: 'signalbox', body: 'From here on, what its programs print by the way is not kept.' })
    if (number < MOST_WITH_OUTPUT || (one.kind !== 'program' && one.kind !== 'error')) kept.push(one)
  }
  return kept
}

/** A program prints what it likes; no engine stores a NUL or half a character. */
function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed()
}

function cut(text: string): string {
  if (text.length <= LONGEST_BODY) return text
  return `${text.slice(0, LONGEST_BODY).toWellFormed()}\n[${text.length - LONGEST_BODY} more characters are not kept]`
}
