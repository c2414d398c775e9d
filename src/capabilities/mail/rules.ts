import { type Refusal, refuse } from '../../kernel/error.ts'
import type { Principal } from '../../kernel/policy.ts'
import type { RunContext } from '../../kernel/tool.ts'
import { HUMAN, hashOf } from '../agent/index.ts'
import { presenceOf } from '../job/index.ts'
import { type LetterRow, mailStore } from './store.ts'

const MINUTE_MS = 60_000

/** Where letters to this principal lie. Every person reads what is for the human. */
export function addressesOf({ kind, id }: Principal): string[] {
  return kind === 'person' ? [id, HUMAN] : [id]
}

export function isMine(principal: Principal, letter: Pick<LetterRow, 'to_id'>): boolean {
  return addressesOf(principal).includes(letter.to_id)
}

export function notMine(letter: LetterRow, principal: Principal, verb: string): Refusal | undefined {
  if (isMine(principal, letter)) return undefined
  return refuse('PERMISSION_DENIED', `You can only ${verb} a letter that you received.`, {
    hint: letter.from_id === principal.id ? 'You sent this one: mail_thread shows it.' : 'mail_inbox lists those that are yours.',
    next_tool: letter.from_id === principal.id ? 'mail_thread' : 'mail_inbox',
  })
}

export function fingerprintOf(letter: Pick<LetterRow, 'from_id' | 'to_id' | 'subject' | 'body'>): string {
  return hashOf(JSON.stringify([letter.from_id, letter.to_id, letter.subject, letter.body]))
}

/**
 * Each letter is paid for with a share of a minute, up to a burst in advance. One row for each token, in the database: neither
 * a restart nor another daemon gives a storm a new start. A clock that was set back locks nobody out for longer than a burst
 * is worth. Throws, so that what was not sent costs nothing.
 */
export async function requireRoom({ tx, principal, now, setting }: RunContext, letters: number): Promise<void> {
  const perMinute = setting<number>('mail.per_minute')
  const share = MINUTE_MS / perMinute
  const burst = Math.ceil(setting<number>('mail.burst') * share)
  // One letter to many must be possible, though they are more than a burst.
  const cost = Math.min(Math.ceil(letters * share), burst)
  const latest = now + burst
  const until = await mailStore(tx).pay(principal.tokenId ?? principal.id, now, latest, cost)
  if (until <= latest) return
  const seconds = Math.ceil((until - latest) / 1_000)
  throw refuse('RATE_LIMITED', `This token sends more than ${perMinute} letters a minute.`, {
    hint: `Say more in fewer letters. The next may go in ${seconds} s.`,
    details: { retry_after_seconds: seconds },
  })
}

/** Only a run proves that it is a repetition: a person, or an agent in a window of its own, may have a reason to write it again. */
export async function requireNew(ctx: RunContext, fingerprint: string, to: () => Promise<string>): Promise<void> {
  const run = await callingRun(ctx)
  if (!run) return
  const first = await mailStore(ctx.tx).alike(fingerprint, Math.max(run.created_at, ctx.now - MINUTE_MS))
  if (!first) return
  throw refuse(
    'ALREADY_EXISTS',
    `You sent the same to ${await to()} ${Math.max(0, Math.round((ctx.now - first.created_at) / 1_000))} s ago.`,
    {
      hint: 'It was stored then: there is nothing to repeat. Answers come to your mail_inbox.',
      details: { mail_id: first.id },
    },
  )
}

/** By its token, which is of this run alone. */
async function callingRun({ tx, principal }: RunContext) {
  const run = principal.kind === 'agent' ? (await presenceOf(tx, principal.id))?.run : undefined
  return run && run.token_id !== null && run.token_id === principal.tokenId ? run : undefined
}
