import { createHash, randomBytes } from 'node:crypto'
import type { Host } from '../kernel/invoke.ts'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARACTERS = 10
/** The time part counts milliseconds and, in its last 8 bits, the ids made within one: enough until the year 2109. */
const IDS_PER_MS = 256
const RANDOM_CHARACTERS = 26

/** New ids sort behind `newest`, the last one stored: the clock may have gone back while nobody was running. */
export function createHost(now: () => number = Date.now, newest?: string): Host {
  // What that call made has ids of the moments after its own.
  let last = newest ? ticksOf(newest) + 1_000 * IDS_PER_MS : 0
  return {
    now,
    monotonic: () => performance.now(),
    id(prefix) {
      // Neither a clock that jumps back nor a second id in one millisecond may sort before an older id: pages would skip it.
      last = Math.max(last + 1, now() * IDS_PER_MS)
      return `${prefix}_${timePart(last)}${randomPart()}`
    },
    hash: (text) => createHash('sha256').update(text).digest('hex'),
  }
}

function timePart(ticks: number): string {
  let text = ''
  for (let rest = ticks, i = 0; i < TIME_CHARACTERS; i++, rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text
  return text
}

function ticksOf(id: string): number {
  const time = id.slice(id.indexOf('_') + 1).slice(0, TIME_CHARACTERS)
  return [...time].reduce((ticks, character) => ticks * 32 + ALPHABET.indexOf(character), 0)
}

/** Asked for in large pieces: each time costs about as much, however few they are. */
const RANDOM_AT_ONCE = RANDOM_CHARACTERS * 256
let random = Buffer.alloc(0)
let used = 0

function randomPart(): string {
  if (used === random.length) {
    random = randomBytes(RANDOM_AT_ONCE)
    used = 0
  }
  let text = ''
  for (const end = used + RANDOM_CHARACTERS; used < end; used++) text += ALPHABET[(random[used] as number) & 31]
  return text
}
