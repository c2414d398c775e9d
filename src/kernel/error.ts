/** How the command line ends: the class of the error or of the outcome, for scripts. */
export const EXITS = {
  0: 'done',
  1: 'it was carried out and did not succeed, a check found something wrong, or you answered no',
  2: 'the command or its arguments are wrong',
  3: 'not allowed',
  4: 'what was named does not exist',
  5: 'its state does not permit that',
  6: 'a limit is reached',
  7: 'the daemon cannot be reached or cannot write right now',
  8: 'it was accepted, and is not over yet',
  70: 'a defect in Signalbox',
} as const

/** What each surface needs to know about a code: its HTTP status, its CLI exit code, and what it tells the reader. */
interface CodeFacts {
  status: number
  exit: keyof typeof EXITS
  meaning: string
}

/** The closed set. A caller branches on these; the message tells a person what to do next. */
export const CODES = {
  INVALID_INPUT: { status: 400, exit: 2, meaning: 'The arguments do not fit the tool.' },
  INVALID_TIMEOUT: { status: 400, exit: 2, meaning: 'A timeout must be a number of seconds above 0.' },
  INVALID_CURSOR: { status: 400, exit: 2, meaning: 'The cursor was not issued by this database, or lies in its future.' },
  PAYLOAD_TOO_LARGE: { status: 413, exit: 2, meaning: 'The request is larger than the limit.' },
  TOOL_NOT_FOUND: { status: 404, exit: 2, meaning: 'No tool has that name.' },
  AMBIGUOUS_TOOL: { status: 409, exit: 2, meaning: 'The name means different tools in different dialects.' },
  STATUS_WAS_TASK_TYPE: { status: 400, exit: 2, meaning: 'A task type was given where a status is required.' },
  IDEMPOTENCY_MISMATCH: { status: 409, exit: 2, meaning: 'The idempotency key was used before with another input.' },
  UNAUTHENTICATED: { status: 401, exit: 3, meaning: 'No token, or one that this daemon never issued.' },
  AUTH_STALE_TOKEN: { status: 401, exit: 3, meaning: 'The token was revoked, rotated or has expired.' },
  PERMISSION_DENIED: { status: 403, exit: 3, meaning: 'This identity may not do that.' },
  APPROVAL_REQUIRED: { status: 403, exit: 3, meaning: 'A person must approve this first.' },
  RESOURCE_NOT_FOUND: { status: 404, exit: 4, meaning: 'The thing named does not exist.' },
  AGENT_NOT_FOUND: { status: 404, exit: 4, meaning: 'No such agent.' },
  TASK_DELETED: { status: 404, exit: 4, meaning: 'The task was deleted.' },
  ALREADY_EXISTS: { status: 409, exit: 5, meaning: 'Something with that name or place is already there.' },
  CONFLICT: { status: 409, exit: 5, meaning: 'The thing changed in the meantime.' },
  INVALID_TRANSITION: { status: 409, exit: 5, meaning: 'The status cannot change in that way.' },
  INVALID_AGENT_STATE: { status: 409, exit: 5, meaning: 'The agent is not in a state for that.' },
  DEPENDENCY_CYCLE: { status: 409, exit: 5, meaning: 'The dependency would close a circle.' },
  TASK_BLOCKED: { status: 409, exit: 5, meaning: 'Another task must land first.' },
  START_PENDING: { status: 202, exit: 5, meaning: 'Accepted, waiting for admission.' },
  REVIEW_LIMIT_EXCEEDED: { status: 409, exit: 6, meaning: 'The review rounds are used up.' },
  BUDGET_EXHAUSTED: { status: 409, exit: 6, meaning: 'The budget is used up.' },
  RATE_LIMITED: { status: 429, exit: 6, meaning: 'Too many calls from this token.' },
  DISCONNECTED: { status: 503, exit: 7, meaning: 'The daemon went away before it answered.' },
  SHUTTING_DOWN: { status: 503, exit: 7, meaning: 'The daemon is stopping.' },
  STORAGE_FULL: { status: 507, exit: 7, meaning: 'The disk is full or read-only; nothing was written.' },
  TRANSIENT_ERROR: { status: 503, exit: 7, meaning: 'Storage did not answer after three retries; nothing was written.' },
  INTERNAL_ERROR: { status: 500, exit: 70, meaning: 'A defect in Signalbox; nothing was written.' },
} as const satisfies Record<string, CodeFacts>

export type Code = keyof typeof CODES

export interface ErrorBody {
  code: Code
  message: string
  hint?: string
  next_tool?: string
  next_arguments?: Record<string, unknown>
  suggestions?: string[]
  details?: Record<string, unknown>
}

/** Thrown, it rolls the call back. Returned by a tool, what the tool wrote stays. Either way the caller gets the body. */
export class Refusal extends Error {
  readonly body: ErrorBody
  constructor(body: ErrorBody) {
    super(`${body.code}: ${body.message}`)
    this.name = 'Refusal'
    this.body = body
  }
}

/** Thrown by an effect: another daemon on the same database has what it needs, and is asked next. */
export class NotHere extends Refusal {
  constructor(what: string, host: string) {
    super({ code: 'CONFLICT', message: `${what} is on ${host}.`, hint: 'Ask the daemon there.', details: { host } })
  }
}

export function refuse(code: Code, message: string, more: Omit<ErrorBody, 'code' | 'message'> = {}): Refusal {
  return new Refusal({ code, message, ...more })
}

export function isCode(text: string): text is Code {
  return Object.hasOwn(CODES, text)
}

/** Storage faults that pass by themselves. Engines translate their own errors into this one; nothing else is retried. */
export class TransientFault extends Error {
  override readonly name: string = 'TransientFault'
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

/** Storage went away in the middle of a commit and did not come back to tell: running the call again might apply it twice. */
export class UncertainFault extends TransientFault {
  override readonly name = 'UncertainFault'
}

/** Two transactions met, and this one must be run again from its beginning; storage does that at once, the caller never sees it. */
export class Collision extends Error {
  override readonly name = 'Collision'
}

/** Something that the person at the terminal can mend: shown as its message alone, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
