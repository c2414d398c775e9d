import { createHash } from 'node:crypto'
import type { Screen } from '../../ports/terminal.ts'
import { clean } from '../harness-shared/lines.ts'
import { PANE, type Tmux } from './tmux.ts'

/** A screen is some ten thousand characters; with its history it must still fit into an answer. */
const MOST_CHARACTERS = 400_000

/** `joined`: what was wrapped at the edge is one line again, so that a secret in it can be recognised. */
export async function capture(tmux: Tmux, history = 0, joined = false): Promise<Screen | undefined> {
  const size = ['display-message', '-p', '-t', PANE, '#{pane_width} #{pane_height}']
  const { ok, out } = await tmux.ask([
    ...size,
    ';',
    'capture-pane',
    '-p',
    ...(joined ? ['-J'] : []),
    '-t',
    PANE,
    '-S',
    history ? `-${history}` : '0',
  ])
  if (!ok) return undefined
  const end = out.indexOf('\n')
  const [columns = 0, rows = 0] = out.slice(0, end).split(' ').map(Number)
  const lines = out
    .slice(end + 1)
    .split('\n')
    .map((line) => clean(line).trimEnd())
  while (lines.length && lines.at(-1) === '') lines.pop()
  const { text, cut } = newest(lines)
  return { text, cut, columns, rows, mark: createHash('sha256').update(`${columns}x${rows}\n${text}`).digest('hex').slice(0, 20) }
}

function newest(lines: string[]): { text: string; cut: boolean } {
  let room = MOST_CHARACTERS
  let from = lines.length
  while (from > 0 && room - (lines[from - 1] as string).length - 1 >= 0) room -= (lines[--from] as string).length + 1
  return { text: lines.slice(from).join('\n'), cut: from > 0 }
}
