import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { within } from '../../kernel/patience.ts'
import type { Ears } from './ears.ts'
import { runProgram, spawnProgram } from './programs.ts'
import { EXIT_LIMIT, type Printed } from './protocol.ts'
import type { ScriptStep, StepInput, StepName } from './script.ts'
import type { Answer, Fields, Tools } from './tools.ts'
import type { Worktree } from './worktree.ts'

/** What the steps of one life share. */
export interface Life {
  me: { id: string; handle: string; name: string }
  task: { id: string; handle: string; title: string } | undefined
  resumed: boolean
  tools: Tools
  worktree: Worktree
  ears: Ears
  /** What answers were saved under, for `{{name.field}}`. */
  saved: Fields
  print(line: Printed): void
  turn(is: 'started' | 'ended'): void
}

/** The script says that it is over. */
export class Over extends Error {
  override readonly name = 'Over'
  readonly code: number
  constructor(code: number) {
    super(`over with ${code}`)
    this.code = code
  }
}

type Perform<N extends StepName> = (life: Life, input: StepInput[N], at: string, signal: AbortSignal) => Promise<void> | void

const MOST_OUTPUT = 16_000

export async function perform(life: Life, step: ScriptStep, signal: AbortSignal): Promise<void> {
  const act = PERFORM[step.name] as Perform<StepName>
  try {
    await act(life, filled(life, step) as StepInput[StepName], step.at, signal)
  } catch (error) {
    if (error instanceof Over || error instanceof StepFailure || signal.aborted) throw error
    throw new StepFailure(`Step ${step.at} (${step.name}): ${error instanceof Error ? error.message : error}`)
  }
}

/** Names its step already: one inside another is not named twice. */
class StepFailure extends Error {}

const PERFORM: { [N in StepName]: Perform<N> } = {
  say: (life, text) => life.print({ type: 'text', from: 'agent', text }),
  think: (life, text) => life.print({ type: 'text', from: 'thought', text }),
  write: (life, { path, text }, at) => used(life, at, 'write', { path }, () => life.worktree.write(path, text)),
  append: (life, { path, text }, at) => used(life, at, 'append', { path }, () => life.worktree.append(path, text)),
  delete: (life, { path }, at) => used(life, at, 'delete', { path }, () => life.worktree.delete(path)),
  run: (life, input, at, signal) => used(life, at, 'run', { argv: input.argv }, () => runProgram(input, signal)),
  spawn: (life, input, at) => used(life, at, 'spawn', { argv: input.argv }, () => spawnProgram(input)),
  commit: (life, { message }, at) =>
    used(life, at, 'commit', { message }, async () =>
      (await life.worktree.commit(message, author(life))) ? 'committed' : 'nothing to commit',
    ),
  note: (life, { text }, at, signal) => asked(life, at, 'task_note', { task_id: requireTask(life), body: text }, signal),
  // The commit belongs to the key: the same work is asked about once, other work again.
  review: async (life, { summary }, at, signal) =>
    asked(life, at, 'review_request', { task_id: requireTask(life), summary }, signal, await life.worktree.head()),
  async call(life, input, at, signal) {
    const answer = await ask(life, at, input.tool, input.arguments, signal)
    const got = answer.ok ? 'ok' : answer.code
    if (input.expect !== 'any' && got !== input.expect)
      throw new Error(`${input.tool} answered ${got}, not ${input.expect}${because(answer)}`)
    if (input.save) life.saved[input.save] = answer.ok ? answer.value : answer.value.error
  },
  async wait_message(life, { timeout_seconds, save }, _at, signal) {
    life.turn('ended')
    const text = await within(timeout_seconds * 1000, signal, (either) => life.ears.next(either)).catch((error) => {
      if ((error as Error).name === 'AbortError' && !signal.aborted) throw new Error(`no message came in ${timeout_seconds} s`)
      throw error
    })
    if (text === undefined) throw new Error('no message can come: the input is closed')
    life.turn('started')
    if (save) life.saved[save] = { text }
  },
  turn(life) {
    life.turn('ended')
    life.turn('started')
  },
  usage: (life, input) => life.print({ type: 'usage', ...input }),
  limit(life, input) {
    life.print({ type: 'limit', ...input })
    throw new Over(EXIT_LIMIT)
  },
  sleep: (_life, { ms }, _at, signal) => pause(ms, undefined, { signal }),
  async crash(_life, { code, signal }) {
    if (!signal) return process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
    await new Promise(() => {})
  },
  exit(_life, { code }) {
    throw new Over(code)
  },
  async once(life, { key, steps }, _at, signal) {
    if (await life.worktree.first(key)) await performAll(life, steps, signal)
  },
  async each(life, { of, as, steps }, _at, signal) {
    const items = fill(of, { ...life.saved, me: life.me, task: life.task })
    if (!Array.isArray(items)) throw new Error(`${of} is no list`)
    for (const item of items) {
      life.saved[as] = item
      await performAll(life, steps, signal)
    }
  },
  if_resumed: (life, { steps }, _at, signal) => (life.resumed ? performAll(life, steps, signal) : undefined),
}

async function performAll(life: Life, steps: ScriptStep[], signal: AbortSignal): Promise<void> {
  for (const step of steps) {
    signal.throwIfAborted()
    await perform(life, step, signal)
  }
}

/** What an agent does with a tool of its own, as people see it. */
async function used(life: Life, id: string, name: string, input: Fields, act: () => unknown): Promise<void> {
  life.print({ type: 'tool_call', id, name, input: JSON.stringify(input) })
  try {
    life.print({ type: 'tool_result', id, ok: true, output: cut(String((await act()) ?? 'done')) })
  } catch (error) {
    life.print({ type: 'tool_result', id, ok: false, output: cut(error instanceof Error ? error.message : String(error)) })
    throw error
  }
}

/** A call of ours that must be answered well. Its answer has times and ids in it, so it is not shown. */
async function asked(life: Life, at: string, tool: string, input: Fields, signal: AbortSignal, about?: string): Promise<void> {
  await used(life, at, tool, input, async () => {
    const answer = await life.tools.call(tool, input, keyOf(life, at, { tool, input, about }), signal)
    if (!answer.ok) throw new Error(`${tool} answered ${answer.code}${because(answer)}`)
  })
}

async function ask(life: Life, at: string, tool: string, input: Fields, signal: AbortSignal): Promise<Answer> {
  life.print({ type: 'tool_call', id: at, name: tool, input: cut(JSON.stringify(input)) })
  const answer = await life.tools.call(tool, input, keyOf(life, at, { tool, input }), signal)
  life.print({ type: 'tool_result', id: at, ok: answer.ok, output: cut(JSON.stringify(answer.value)) })
  return answer
}

/** The same in every life for the same step of the same script; a script that was changed asks anew. */
function keyOf(life: Life, at: string, what: Fields): string {
  const hash = createHash('sha256').update(JSON.stringify(what)).digest('hex').slice(0, 16)
  return `scripted:${life.task?.id ?? life.me.id}:${at}:${hash}`
}

function because(answer: Answer): string {
  return answer.ok ? '' : `: ${answer.value.error?.message ?? 'no reason given'}`
}

const cut = (text: string) => (text.length > MOST_OUTPUT ? `${text.slice(0, MOST_OUTPUT)}…` : text)

function author({ me }: Life): { name: string; email: string } {
  return { name: me.name, email: `${me.handle}@signalbox.invalid` }
}

function requireTask({ task }: Life): string {
  if (!task) throw new Error('this agent has no task; assign one with task_assign')
  return task.id
}

const REFERENCE = /\{\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)\}\}/gi

/** `{{name.field}}` becomes what was saved. What is written into files stays as it is: templates look the same. */
function filled(life: Life, step: ScriptStep): unknown {
  if (step.name === 'write' || step.name === 'append' || step.name === 'once' || step.name === 'each' || step.name === 'if_resumed')
    return step.input
  return fill(step.input, { ...life.saved, me: life.me, task: life.task })
}

function fill(value: unknown, known: Fields): unknown {
  if (Array.isArray(value)) return value.map((inner) => fill(inner, known))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, fill(inner, known)]))
  if (typeof value !== 'string') return value
  const [whole] = value.matchAll(REFERENCE)
  if (whole?.[0] === value) return lookUp(whole[1] as string, known)
  return value.replace(REFERENCE, (_, path: string) => {
    const found = lookUp(path, known)
    return typeof found === 'string' ? found : JSON.stringify(found)
  })
}

function lookUp(path: string, known: Fields): unknown {
  let found: unknown = known
  for (const part of path.split('.')) {
    found = typeof found === 'object' && found !== null && Object.hasOwn(found, part) ? (found as Fields)[part] : undefined
  }
  if (found === undefined) throw new Error(`nothing is saved as {{${path}}}`)
  return found
}
