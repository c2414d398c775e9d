import type { HarnessEvent } from '../../ports/harness.ts'
import { clean, clip } from '../harness-shared/lines.ts'
import type { Of } from './protocol.ts'

/** What a person can do about it. */
const ADVICE: Partial<Record<number, string>> = {
  401: 'Claude Code is not logged in: run "claude" once as the user of the daemon, or set ANTHROPIC_API_KEY for the daemon.',
  403: 'Its account may not do this.',
  404: 'Is there a model of that name?',
  529: 'The model is overloaded; later it may answer.',
}

/** The provider gives no more for now. */
export function limitOf({ api_error_status, ...line }: Of<'result'>, resets_at: number | null): HarnessEvent | undefined {
  return api_error_status === 429 ? { type: 'limit_reached', message: saidIn(line), resets_at } : undefined
}

export function failureOf({ api_error_status, ...line }: Of<'result'>, forgotten: boolean): string {
  const advice = forgotten ? 'It goes on in a new session.' : api_error_status === null ? undefined : ADVICE[api_error_status]
  return clip([saidIn(line), advice].filter(Boolean).join(' '))
}

type Said = Pick<Of<'result'>, 'result' | 'errors' | 'subtype' | 'terminal_reason'>

/** `[ede_diagnostic] …` is for its makers. */
function saidIn({ result, errors, subtype, terminal_reason }: Said): string {
  const told = [result, ...errors.filter((error) => !error.startsWith('['))].filter((text) => text.trim())
  const text = told.join(' ') || terminal_reason || subtype
  const cleaned = clip(clean(text)).trim()
  return /[.!?]$/.test(cleaned) ? cleaned : `${cleaned}.`
}
