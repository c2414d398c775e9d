import type { Terminal } from './terminal.ts'
import { span } from './when.ts'

const PATIENCE_MS = 700
const FRAME_MS = 120
const FRAMES = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏']

/** Says on stderr that it goes on and for how long, once it takes longer than one would wonder. For people only. */
export async function withProgress<T>(terminal: Terminal, label: string, work: () => Promise<T>): Promise<T> {
  if (!terminal.tty.err) return work()
  const began = performance.now()
  let frame = 0
  let shown = false
  const draw = () => {
    const elapsed = performance.now() - began
    if (elapsed < PATIENCE_MS || (shown && !terminal.redraws)) return
    shown = true
    const text = `${label}… ${span(elapsed / 1_000)}`
    terminal.err(terminal.redraws ? `\r${FRAMES[frame++ % FRAMES.length]} ${text}\u001b[K` : `${label}…\n`)
  }
  const timer = setInterval(draw, FRAME_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    if (shown && terminal.redraws) terminal.err('\r\u001b[K')
  }
}
