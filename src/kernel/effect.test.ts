import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineEffect, type ReactorParts, react } from './effect.ts'
import { defineEvent, type LoggedEvent } from './event.ts'
import { Points } from './point.ts'

test('[X18] an effect reads a setting as it is now, and hears of events until it is over', async () => {
  const listeners = new Set<(events: LoggedEvent[]) => void>()
  const tell = (...types: string[]) => {
    for (const listener of listeners) listener(types.map((type) => ({ type }) as LoggedEvent))
  }
  let limit = 1
  const heard: unknown[] = []
  const listening = defineEffect({
    type: 'probe.listen',
    payload: z.strictObject({}),
    attempts: 1,
    async do(ctx) {
      const [a, b] = [defineEvent('a', z.strictObject({})), defineEvent('b', z.strictObject({}))]
      const end = ctx.on(a, ({ type }) => heard.push(type))
      ctx.on(b, ({ type }) => heard.push(type))
      tell('a', 'b', 'c')
      end()
      tell('a', 'b')
      heard.push(await ctx.setting('limit'))
      limit = 2
      heard.push(await ctx.setting('limit'))
      throw new Error('it fails, and hears nothing more')
    },
  })
  const parts = {
    types: new Map([[listening.type, listening]]),
    points: new Points([]),
    setting: async () => limit,
    subscribe(listener: (events: LoggedEvent[]) => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  } as unknown as ReactorParts
  const claim = {
    id: 'e',
    type: listening.type,
    payload: {},
    attempt: 1,
    maxAttempts: 1,
    cutOff: false,
    signal: new AbortController().signal,
  }
  expect(await react(parts, claim)).toMatchObject({ state: 'failed' })
  expect(heard).toEqual(['a', 'b', 'b', 1, 2])
  expect(listeners.size).toBe(0)
})
