import { expect, test } from 'vitest'
import { answer, definePoint, Points } from './point.ts'

type Named = (ctx: { by: string }, name: string) => Promise<string | undefined>
const nobody: Named = async () => 'nobody'
const says =
  (word: string): Named =>
  async ({ by }, name) =>
    `${by} ${word} ${name}`
const silent: Named = async () => undefined

const asked = (...given: ReturnType<typeof answer>[]) => new Points(given).asking(() => ({ by: 'Ann' }))

test('[K37] one answer is that of the only capability that gives it, else what holds when nobody knows', async () => {
  const one = definePoint.one<Named>('test.one', nobody)
  expect(await asked()(one, 'Bob')).toBe('nobody')
  expect(await asked(answer(one, says('greets')))(one, 'Bob')).toBe('Ann greets Bob')
  expect(await asked(answer(one, silent))(one, 'Bob')).toBe(undefined)
  expect(() => asked(answer(one, silent), answer(one, silent))).toThrow('test.one takes one answer, and 2 are given')
})

test('[K37] the first that knows has the word, and who comes after it is not asked', async () => {
  const first = definePoint.first<Named>('test.first', nobody, ['near', 'far'])
  expect(await asked(answer(first, silent, 'near'))(first, 'Bob')).toBe('nobody')
  const given = [answer(first, says('waits for'), 'far'), answer(first, says('meets'), 'near')]
  expect(await asked(...given)(first, 'Bob')).toBe('Ann meets Bob')
})

test('[K37] all answers come in the order of their places, whatever the order of the registry', async () => {
  const all = definePoint.all<Named>('test.all', ['a', 'b', 'c'])
  expect(await asked()(all, 'Bob')).toEqual([])
  const given = [answer(all, says('c'), 'c'), answer(all, says('a'), 'a'), answer(all, says('b'), 'b')]
  expect(await asked(...given)(all, 'Bob')).toEqual(['Ann a Bob', 'Ann b Bob', 'Ann c Bob'])
})

test('[K37] a place that the point does not name is refused when the app is made', () => {
  const placed = definePoint.all<Named>('test.placed', ['a'])
  const free = definePoint.all<Named>('test.free')
  expect(() => asked(answer(placed, silent, 'b'))).toThrow('test.placed has no place "b": a')
  expect(() => asked(answer(placed, silent))).toThrow('test.placed has no place')
  expect(() => asked(answer(free, silent, 'a'))).toThrow('test.free has no place "a": it has none')
})

test('[K37] a point cannot be asked where its answers lack what they need', () => {
  const needsMore = definePoint.all<(ctx: { by: string; port: number }) => Promise<void>>('test.port')
  // @ts-expect-error this context has no port
  void asked()(needsMore)
  const named = definePoint.all<Named>('test.named')
  // @ts-expect-error a name is a string
  void asked()(named, 1)
})
