import { execHere } from './exec.ts'
import type { Answered, Asked } from './starter.ts'

// A Ctrl-C in the terminal of the daemon reaches us too. The daemon decides when it ends; we end with it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
process.on('disconnect', () => process.exit())
process.on('message', async ({ id, command }: Asked) => {
  process.send?.({ id, ran: await execHere(command) } satisfies Answered, () => {})
})
