import { execHere } from './exec.ts'
import type { Answered, Asked } from './starter.ts'

// A Ctrl-C in the terminal of the daemon reaches us too. The daemon decides when it ends; we end with it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())
const running = new Map<number, AbortController>()
process.on('message', async ({ id, command }: Asked) => {
  if (!command) return running.get(id)?.abort()
  const stop = new AbortController()
  running.set(id, stop)
  const ran = await execHere(command, stop.signal)
  running.delete(id)
  process.send?.({ id, ran } satisfies Answered, () => {})
})
