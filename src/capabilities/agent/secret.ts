import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import type { TokenKind } from './schema.ts'

/** 256 random bits; the prefix lets logs and scanners recognise one. */
export function newSecret(kind: TokenKind): string {
  return `sbx_${kind}_${randomBytes(32).toString('base64url')}`
}

/** Only the hash is stored. The secret is random, so a plain digest cannot be guessed back. */
export function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

export function sameHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b))
}
