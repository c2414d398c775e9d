import { z } from 'zod'
import type { Exit, Frame, RunSpec } from './runner.ts'

/** What a limit can be set on. Wall clock is kept by the runner, so every harness has it. */
export const METERS = ['wall_clock', 'turns', 'tokens', 'cost'] as const
export type Meter = (typeof METERS)[number]

/** No text of an event is longer, whatever the program prints. */
export const MOST_TEXT = 64 * 1024

/** So many questions of a program wait for a person at a time; what it asks beyond is denied at once. */
export const MOST_QUESTIONS = 50

/** What happens to what a program asks permission for: granted without asking, asked of a person, refused. */
export const APPROVALS = ['allow', 'ask', 'deny'] as const
export type Approvals = (typeof APPROVALS)[number]

/** The one vocabulary in which every program's output is told. */
export const HarnessEvent = z.discriminatedUnion('type', [
  /** It takes work; `session` is what the program itself resumes by. */
  z.strictObject({ type: z.literal('ready'), session: z.string().nullable() }),
  z.strictObject({ type: z.literal('turn_started') }),
  z.strictObject({ type: z.literal('turn_ended'), how: z.enum(['completed', 'interrupted', 'failed']) }),
  z.strictObject({ type: z.literal('text'), from: z.enum(['agent', 'thought', 'person', 'program', 'error']), text: z.string() }),
  z.strictObject({ type: z.literal('tool_call'), id: z.string(), name: z.string(), input: z.string() }),
  /** Of a call; or, with the id of what was asked, that it does not wait for an answer to that any more. */
  z.strictObject({ type: z.literal('tool_result'), id: z.string(), ok: z.boolean(), output: z.string() }),
  z.strictObject({ type: z.literal('approval_asked'), id: z.string(), name: z.string(), input: z.string() }),
  /** What was used since the last one of these: a reader adds them up. */
  z.strictObject({
    type: z.literal('usage'),
    input_tokens: z.int().min(0),
    output_tokens: z.int().min(0),
    cached_tokens: z.int().min(0),
    cost_usd: z.number().min(0).nullable(),
    estimated: z.boolean(),
  }),
  /** The provider gives no more until then. */
  z.strictObject({ type: z.literal('limit_reached'), message: z.string(), resets_at: z.int().nullable() }),
  z.strictObject({ type: z.literal('failed'), reason: z.string() }),
  z.strictObject({ type: z.literal('exited'), ok: z.boolean(), reason: z.string() }),
])
export type HarnessEvent = z.output<typeof HarnessEvent>

/** A run about to be started. */
export interface Launch {
  run: string
  folder: string
  cwd: string
  brief: string
  /** The id of the task that it works on. */
  task: string | null
  /** Where the agent finds our tools: the address of /mcp. The token is also in `tokenFile`; it must not reach argv. */
  mcp: { url: string; token: string; tokenFile: string }
  model: string | null
  approvals: Approvals
  /** What the program resumes by, when this is not its first life. */
  session: string | null
  /** Why a script in the description of its task must not be run: somebody wrote it who may not. Null: it may, or there is none. */
  noScript: string | null
  /** What the user gave this harness: the command line of `command`, the script of `scripted`. */
  options: Record<string, unknown>
}

export interface LaunchPlan extends Pick<RunSpec, 'argv' | 'env' | 'inherit' | 'stdin'> {
  /** By plain name; written 0600 into the run's folder before the start. */
  files: Record<string, string>
  /** What the fold begins with when that depends on the launch, as where the program is told its work in a second breath. */
  state?: HarnessState
}

/** What a step leaves. What goes to the program goes once, also over a restart of the daemon: input, then its end, then a signal. */
export interface Step {
  state: HarnessState
  events: HarnessEvent[]
  send?: string[]
  close?: boolean
  signal?: 'SIGINT' | 'SIGTERM'
}

/** Kept with the run between two steps: plain JSON. */
export type HarnessState = Record<string, unknown>

/**
 * How one agent program is driven. A fold over what it prints: state in, state and events out, nothing else, so that a
 * daemon which takes a run over goes on exactly where the other one stopped. Must not throw: what cannot be read is text.
 */
export interface Harness {
  readonly name: string
  readonly title: string
  /** When each of its meters ticks: a limit is overshot by at most one tick. */
  readonly meters: Partial<Record<Meter, 'turn' | 'end' | 'second'>>
  readonly can: { message: boolean; interrupt: boolean; resume: boolean; approve: boolean }
  readonly options: z.ZodObject
  /** `options`: of the job that it is asked for, where there is one; with them it may be about another program. */
  probe(options?: Record<string, unknown>): Promise<{ found: true; version: string } | { found: false; why: string; install: string }>
  /**
   * Whether its program is logged in here, as far as that can be seen without asking its provider, and if not, how a person does it.
   * Undefined: nobody logs in to it, and it is started only by its name.
   */
  account?(): Promise<{ signedIn: true } | { signedIn: false; how: string }>
  /** Throws, in words for a person, where its program must not be started as it is. */
  launch(launch: Launch): LaunchPlan
  begin(): HarnessState
  decode(state: HarnessState, frame: Frame): Step
  /** A letter for the agent at work; undefined when it cannot take one now. It is told here, not when its bytes come by as `in`. */
  message(state: HarnessState, text: string): Step | undefined
  interrupt(state: HarnessState): Step | undefined
  /** The answer to what was told as `approval_asked`; undefined when it is not asked any more. */
  decide(state: HarnessState, id: string, decision: { allow: boolean; message: string }): Step | undefined
  /** The last events: what was still in the state, and how it ended. */
  end(state: HarnessState, exit: Exit): HarnessEvent[]
}

export interface Harnesses {
  names(): string[]
  get(name: string): Harness | undefined
}

declare module '../kernel/tool.ts' {
  interface Ports {
    harnesses: Harnesses
  }
}
