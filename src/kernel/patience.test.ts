import { expect, test } from 'vitest'
import { within } from './patience.ts'

const aborted = (signal: AbortSignal) => new Promise<string>((resolve) => signal.addEventListener('abort', () => resolve('over')))

test('[K21] what may take so long ends then or with its caller, whichever is first', async () => {
  const caller = new AbortController()
  expect(await within(20, caller.signal, aborted)).toBe('over')
  expect(await within(20, undefined, aborted)).toBe('over')
  const waiting = within(60_000, caller.signal, aborted)
  caller.abort()
  expect(await waiting).toBe('over')
  expect(await within(60_000, caller.signal, async ({ aborted }) => aborted)).toBe(true)
  expect(await within(60_000, undefined, async () => 'done')).toBe('done')
})
