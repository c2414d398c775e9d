import { createHash, randomBytes } from 'node:crypto'
import type { Host } from '../kernel/invoke.ts'

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const TIME_CHARACTERS = 10
const RANDOM_CHARACTERS = 26

export function createHost(now: () => number = Date.now): Host {
  let last = 0
  return {
    now,
    monotonic: () => performance.now(),
    id(prefix) {
      // A clock that jumps back must not make new ids sort before old ones: pages would skip them.
      last = Math.max(last, now())
      return `${prefix}_${timePart(last)}${randomPart()}`
    },
    hash: (text) => createHash('sha256').update(text).digest('hex'),
  }
}

function timePart(ms: number): string {
  let text = ''
  for (let rest = ms, i = 0; i < TIME_CHARACTERS; i++, rest = Math.floor(rest / 32)) text = ALPHABET[rest % 32] + text
  return text
}

function randomPart(): string {
  return Array.from(randomBytes(RANDOM_CHARACTERS), (byte) => ALPHABET[byte & 31]).join('')
}
