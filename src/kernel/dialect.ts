import type { Code, ErrorBody } from './error.ts'
import type { Principal, Role, RoleRules } from './policy.ts'

type Args = Record<string, unknown>

/** A seed's tool as data: its own name and shape over one native tool. */
export interface DialectTool {
  name: string
  native: string
  description: string
  /** The documented JSON schema of its arguments; the native tool validates what comes out of `toNative`. */
  inputJson: Record<string, unknown>
  /** May refuse what the document refuses before anything is looked at. */
  toNative(args: Args, principal: Principal): Args
  fromNative(answer: Args, args: Args, principal: Principal): Args
  /** For some arguments it is another native tool, whose own rules then hold. */
  instead?(args: Args, principal: Principal): Pick<DialectTool, 'native' | 'toNative' | 'fromNative'> | undefined
  /** Accepted, but not in tools/list. */
  unlisted?: boolean
  /** Its failures always reach the human, whatever the native tool says. */
  critical?: boolean
}

export interface Dialect {
  name: string
  title: string
  tools: DialectTool[]
  /** Documented globs over the dialect's own names, by role. */
  roles?: Partial<Record<Role, RoleRules>>
  /** The document logs what every call answered, reads and waits too, and the stack of every error. */
  logsInFull?: boolean
  /** An event as whoever reads it with the dialect sees it. */
  event?(view: Args): Args
  /** What each native code is called in the document; exhaustive, so that a new code cannot be forgotten. */
  codes: Record<Code, string>
  /** The document's error object; without a caller where nobody was proven. */
  error(body: ErrorBody, name: string, caller?: Principal): Args
}

/** Lets a dialect keep the native spelling for codes that its document does not name. */
export function codesLike(native: readonly Code[], renamed: Partial<Record<Code, string>>): Record<Code, string> {
  return Object.fromEntries(native.map((code) => [code, renamed[code] ?? code])) as Record<Code, string>
}
