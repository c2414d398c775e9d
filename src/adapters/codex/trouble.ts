import type { HarnessEvent } from '../../ports/harness.ts'
import { parsed } from '../harness-shared/rpc.ts'
import { fieldOf, plain, textOf } from './items.ts'

/** Why a turn failed, for a person; a limit of the provider is told as one. `resetsAt` is what was heard of the limits before. */
export function troubleOf(error: unknown, resetsAt: number | null): HarnessEvent {
  const { kind, status } = kindOf(error)
  const message = messageOf(error)
  if (LIMITS.has(kind) || status === 429)
    return { type: 'limit_reached', message: plain(status === 429 ? TOO_MANY : message), resets_at: resetsAt }
  return { type: 'failed', reason: plain(reasonOf(kind, status, message)) }
}

/** When it is asked to wait: it will be tried again in a minute, as it does not say for how long. */
export function waitOf(error: unknown, at: number): HarnessEvent | undefined {
  if (kindOf(error).status !== 429) return undefined
  return { type: 'limit_reached', message: TOO_MANY, resets_at: Math.round(at) + 60_000 }
}

function kindOf(error: unknown): { kind: string; status: number } {
  const info = fieldOf(error, 'codexErrorInfo')
  const kind = typeof info === 'string' ? info : textOf(Object.keys(Object(info ?? {}))[0])
  return { kind, status: Number(fieldOf(fieldOf(info, kind), 'httpStatusCode') ?? 0) }
}

/** What it says while it tries again. */
export function retryOf(error: unknown): string {
  const details = textOf(fieldOf(error, 'additionalDetails'))
  return details ? `${messageOf(error)} (${details})` : messageOf(error)
}

/** What Codex says of it is how often it tried. */
const TOO_MANY = 'The provider takes no more requests for now (429 Too Many Requests).'

const LIMITS = new Set(['usageLimitExceeded', 'rateLimitExceeded', 'sessionBudgetExceeded'])

function reasonOf(kind: string, status: number, message: string): string {
  if (kind === 'unauthorized' || status === 401 || status === 403)
    return `The provider does not accept Codex's login: run "codex login", or mend the key. (${message})`
  if (message.startsWith('Missing environment variable'))
    return `${message} Set it in the environment of the daemon; other names than those of env_key in your Codex configuration go into the option "env".`
  if (kind === 'serverOverloaded' || kind === 'internalServerError' || status >= 500)
    return `The provider is overloaded or out of order, also after several attempts: ${message}`
  if (kind === 'httpConnectionFailed' || kind.startsWith('responseStream'))
    return `The provider could not be reached, also after several attempts: ${message}`
  if (kind === 'contextWindowExceeded') return `The conversation no longer fits into the model: ${message}`
  return message
}

/** Some are what the provider answered, as it came. */
function messageOf(error: unknown): string {
  const message = textOf(fieldOf(error, 'message')) || 'Codex does not say why.'
  const inner = fieldOf(fieldOf(parsed(message), 'error'), 'message')
  return typeof inner === 'string' && inner ? inner : message
}

/** When the last of the windows that are used up begins anew, in milliseconds; null when none is. What says nothing of them changes nothing. */
export function resetOf(rateLimits: unknown, before: number | null): number | null {
  const windows = ['primary', 'secondary']
    .map((name) => fieldOf(rateLimits, name))
    .filter((window) => window !== undefined && window !== null)
  if (windows.length === 0) return before
  const times = windows.filter((window) => Number(fieldOf(window, 'usedPercent')) >= 100).map((window) => fieldOf(window, 'resetsAt'))
  const known = times.filter((time): time is number => typeof time === 'number' && Number.isSafeInteger(time * 1_000) && time >= 0)
  return known.length ? Math.max(...known) * 1_000 : null
}
