import { expect, test } from 'vitest'
import { deferred, until } from '../testing/signals.ts'
import { Shared } from './shared.ts'

function looks() {
  const shared = new Shared<number>()
  const gates: ReturnType<typeof deferred<void>>[] = []
  const ask = (key = 'a') =>
    shared.ask(key, async () => {
      const gate = deferred<void>()
      const number = gates.push(gate)
      await gate.promise
      if (key === 'gone') throw new Error('gone')
      return number
    })
  return { gates, ask }
}

test('[W14] those who ask while a look is under way share the next one, which begins after they asked', async () => {
  const { gates, ask } = looks()
  const first = ask()
  const others = [ask(), ask(), ask()]
  const another = ask('b')
  expect(gates).toHaveLength(2)
  for (const gate of gates) gate.resolve()
  expect(await first).toBe(1)
  expect(await another).toBe(2)
  await until(() => gates.length === 3)
  gates[2]?.resolve()
  expect(await Promise.all(others)).toEqual([3, 3, 3])
  const later = ask()
  gates[3]?.resolve()
  expect(await later).toBe(4)
})

test('[W14] a look that fails keeps nobody from the next', async () => {
  const { gates, ask } = looks()
  const [first, second] = [ask('gone'), ask('gone')]
  gates[0]?.resolve()
  await expect(first).rejects.toThrow('gone')
  await until(() => gates.length === 2)
  gates[1]?.resolve()
  await expect(second).rejects.toThrow('gone')
})
