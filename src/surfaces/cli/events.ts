import type { Reach, Row } from './call.ts'
import { type Look, lineOf } from './cell.ts'
import { handlesIn } from './handles.ts'
import { follow } from './stream.ts'
import { painter } from './style.ts'
import type { Terminal } from './terminal.ts'
import { cut, oneLine, pad, plainJson } from './text.ts'

const TYPE_WIDTH = 16

/** What happens, until the process ends: a line of JSON an event for programs, a readable one for people. */
export async function printEvents(reach: Reach, terminal: Terminal, json: boolean): Promise<number> {
  const onCut = () => terminal.err('signalbox: the stream ended, connecting again…\n')
  const look: Look = { columns: terminal.columns(), paint: painter(terminal.colours), handles: new Map(), now: Date.now() }
  for await (const { data } of follow(reach, onCut)) {
    if (data === undefined) continue
    terminal.out(
      json || !terminal.tty.out
        ? `${plainJson(data)}\n`
        : await readable(JSON.parse(data) as Row, reach, { ...look, columns: terminal.columns() }),
    )
  }
  return 0
}

/** `12:03:44  task.moved  T-1  ann  from=BACKLOG to=IN_PROGRESS`, cut where the terminal ends. */
async function readable(event: Row, reach: Reach, look: Look): Promise<string> {
  await learn(event, reach, look)
  const { handle, version: _, ...data } = event.data as Row
  const at = new Date(String(event.at)).toTimeString().slice(0, 8)
  const type = pad(oneLine(String(event.type)), TYPE_WIDTH)
  const about = handle ? oneLine(String(handle)) : lineOf('subject', event.subject, look)
  const rest = [about, `by ${lineOf('actor', event.actor, look)}`, lineOf('data', data, look)].filter((part) => part !== '-').join('  ')
  return `${look.paint('dim', at)}  ${look.paint('bold', type)}  ${cut(rest, Math.max(20, look.columns - TYPE_WIDTH - 12))}\n`
}

/** Who is who is asked once for each that is new. */
async function learn(event: Row, reach: Reach, { handles }: Look): Promise<void> {
  const { actor, subject, data } = event
  const fresh = [actor, subject, ...Object.values(data as Row)].filter((id) => typeof id === 'string' && !handles.has(id))
  if (!fresh.length) return
  for (const id of fresh) handles.set(id as string, id as string)
  for (const [id, handle] of await handlesIn({ fresh }, reach)) handles.set(id, handle)
}
