import { CODES, type Code, type ErrorBody } from './error.ts'
import type { Lane, Principal, Role, RoleRules } from './policy.ts'
import type { Impact } from './tool.ts'

type Args = Record<string, unknown>

/** How a call in a dialect becomes one of a native tool, and the native answer the documented one. */
export interface Translation {
  native: string
  /** May refuse what the document refuses before anything is looked at. */
  toNative(args: Args, principal: Principal): Args
  fromNative(answer: Args, args: Args, principal: Principal): Args
}

/** A seed's tool as data: its own name and shape over one native tool. */
export interface DialectTool extends Translation {
  name: string
  description: string
  /** Each documented argument with the native one; null where it is not passed on. */
  fields: Record<string, string | null>
  /** The documented JSON schema of its arguments; the native tool validates what comes out of `toNative`. */
  inputJson: Record<string, unknown>
  /** For some arguments it is another native tool, whose own rules then hold. The first that fits. */
  instead?: (Translation & { when(args: Args, principal: Principal): boolean })[]
  /** What the document says that it does to things, where that is not what the native tool says. */
  impact?: Impact
  /** Accepted, but not in tools/list. */
  unlisted?: boolean
  /** Its failures always reach the human, whatever the native tool says. */
  critical?: boolean
}

/** An HTTP address of the document's own, where every tool is called and answered in the document's envelope. */
export interface DialectRoute {
  path: string
  /** Its name in the OpenAPI description, and the JSON Schemas of its bodies there. */
  operation: string
  schemas: Record<'request' | 'done' | 'refused', Args>
  /** Throws a refusal where the body is not as documented. */
  opened(body: unknown): { tool: string; input: Args; agent?: string }
  done(answer: Args, at: string): Args
  refused(error: Args, at: string): Args
}

export interface Dialect {
  name: string
  title: string
  tools: DialectTool[]
  /** Documented globs over the dialect's own names, by role. */
  roles?: Partial<Record<Role, RoleRules>>
  /** Further names of the dialect, each with the lane that a connection asks for by it. */
  lanes?: Record<string, Lane>
  route?: DialectRoute
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
export function codesLike(renamed: Partial<Record<Code, string>>): Record<Code, string> {
  return Object.fromEntries(Object.keys(CODES).map((code) => [code, renamed[code as Code] ?? code])) as Record<Code, string>
}
