import { z } from 'zod'

const Text = z.string().max(100_000)
const Name = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/i, 'a name has letters, digits and _')
const Path = z.string().min(1).max(1_000)
const Argv = z.tuple([z.string().min(1)], z.string()).describe('No shell reads it')
const Seconds = z.number().min(0).max(86_400)
const Count = z.int().min(0).max(1_000_000_000)
const SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGSEGV', 'SIGABRT'] as const

/** Every step by its name. */
export const STEPS = {
  say: Text,
  think: Text,
  write: z.strictObject({ path: Path, text: Text }),
  append: z.strictObject({ path: Path, text: Text }),
  delete: z.strictObject({ path: Path }),
  run: z.strictObject({ argv: Argv, timeout_seconds: Seconds.default(60), expect_code: z.int().min(0).max(255).default(0) }),
  commit: z.strictObject({ message: Text.min(1) }),
  note: z.strictObject({ text: Text.min(1) }),
  call: z.strictObject({
    tool: z.string().min(1).max(100),
    arguments: z.record(z.string(), z.unknown()).default({}),
    expect: z
      .string()
      .regex(/^(ok|any|[A-Z][A-Z_]+)$/, '"ok", "any" or the code of a refusal')
      .default('ok'),
    save: Name.optional(),
  }),
  wait_message: z.strictObject({ timeout_seconds: Seconds.default(600), save: Name.optional() }),
  review: z.strictObject({ summary: Text.min(1) }),
  turn: z.strictObject({}),
  usage: z.strictObject({
    input_tokens: Count.default(0),
    output_tokens: Count.default(0),
    cost_usd: z.number().min(0).max(1_000_000).nullable().default(null),
  }),
  limit: z.strictObject({ message: Text.min(1), resets_in_seconds: Count.nullable().default(null) }),
  sleep: z.strictObject({ ms: z.int().min(0).max(86_400_000) }),
  spawn: z.strictObject({ argv: Argv, detach: z.boolean().default(true) }),
  crash: z
    .strictObject({ code: z.int().min(1).max(255).optional(), signal: z.enum(SIGNALS).optional() })
    .refine((how) => (how.code === undefined) !== (how.signal === undefined), 'name either a code or a signal'),
  exit: z.strictObject({ code: z.int().min(0).max(255).default(0) }),
  once: z.strictObject({ key: Name, steps: z.array(z.unknown()).max(1_000) }),
  each: z.strictObject({ of: Text.min(1), as: Name, steps: z.array(z.unknown()).max(1_000) }),
  if_resumed: z.strictObject({ steps: z.array(z.unknown()).max(1_000) }),
} as const satisfies Record<string, z.ZodType>

export type StepName = keyof typeof STEPS
type Given = { [N in StepName]: z.output<(typeof STEPS)[N]> }
type Nested = {
  once: { key: string; steps: ScriptStep[] }
  each: { of: string; as: string; steps: ScriptStep[] }
  if_resumed: { steps: ScriptStep[] }
}
export type StepInput = Omit<Given, keyof Nested> & Nested

/** `at` is its place in the script, `3` or `3.1`: the same in every life. */
export type ScriptStep = { [N in StepName]: { at: string; name: N; input: StepInput[N] } }[StepName]

/** What is wrong with the script, for the person who wrote it. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'
}

const MOST_STEPS = 1_000
const MOST_DEPTH = 8

/** A script is JSON objects, one step each: a list of them, or one after the other. */
export function parseScript(text: string): ScriptStep[] {
  const pieces = split(text)
  if (!pieces.length) throw new ScriptError('The script has no step.')
  if (pieces.length > MOST_STEPS) throw new ScriptError(`The script has ${pieces.length} steps; at most ${MOST_STEPS} are allowed.`)
  return pieces.map(({ json, line }, index) => {
    try {
      return parseStep(JSON.parse(json), String(index + 1))
    } catch (error) {
      throw new ScriptError(`Line ${line} of the script: ${error instanceof Error ? error.message : error}`)
    }
  })
}

/** The block in a task's description; undefined when there is none. */
export function scriptIn(description: string): string | undefined {
  return /^```signalbox[ \t]*\r?\n([\s\S]*?)^```/m.exec(description)?.[1]
}

function parseStep(value: unknown, at: string, depth = 1): ScriptStep {
  if (depth > MOST_DEPTH) throw new Error(`step ${at} is nested deeper than ${MOST_DEPTH} levels`)
  const names = typeof value === 'object' && value !== null ? Object.keys(value) : []
  const [name = ''] = names
  if (names.length !== 1) throw new Error(`step ${at} must be an object with one key, the name of the step`)
  if (!Object.hasOwn(STEPS, name)) throw new Error(`"${name}" is no step. Known: ${Object.keys(STEPS).join(', ')}.`)
  const parsed = (STEPS[name as StepName] as z.ZodType).safeParse((value as Record<string, unknown>)[name])
  if (!parsed.success) throw new Error(`${name}: ${problems(parsed.error)}`)
  return { at, name, input: withSteps(parsed.data, at, depth) } as ScriptStep
}

function withSteps(input: unknown, at: string, depth: number): unknown {
  if (typeof input !== 'object' || input === null || !('steps' in input)) return input
  const steps = (input.steps as unknown[]).map((step, index) => parseStep(step, `${at}.${index + 1}`, depth + 1))
  return { ...input, steps }
}

function problems(error: z.ZodError): string {
  return error.issues.map(({ path, message }) => (path.length ? `${path.join('.')}: ${message}` : message)).join('; ')
}

/** The objects that stand in the text, each with the line on which it begins. */
function split(text: string): { json: string; line: number }[] {
  const pieces: { json: string; line: number }[] = []
  let [depth, start, startLine, line, quoted] = [0, 0, 1, 1, false]
  for (let i = 0; i < text.length; i++) {
    const char = text[i] as string
    if (char === '\n') line++
    if (quoted) {
      if (char === '\\') i++
      else if (char === '"') quoted = false
    } else if (depth === 0 && char !== '{') {
      if (!/[\s,[\]]/.test(char)) throw new ScriptError(`Line ${line} of the script: a step begins with {, not with ${char}`)
    } else if (char === '"') quoted = true
    else if (char === '{') {
      if (depth++ === 0) [start, startLine] = [i, line]
    } else if (char === '}' && --depth === 0) pieces.push({ json: text.slice(start, i + 1), line: startLine })
  }
  if (depth > 0) throw new ScriptError(`Line ${startLine} of the script: the step that begins here does not end`)
  return pieces
}

/** What it does when nobody wrote a script: a little of everything that a worker does. */
export function defaultScript(task: { handle: string; title: string }): ScriptStep[] {
  const steps = [
    { say: `I work on ${task.handle}.` },
    { note: { text: `Started on ${task.handle}.` } },
    { write: { path: `${task.handle}.md`, text: `# ${task.title}\n` } },
    { commit: { message: `${task.handle}: ${task.title}` } },
    { review: { summary: `${task.handle}.md says what the task is about.` } },
  ]
  return steps.map((step, index) => parseStep(step, String(index + 1)))
}

/** The same for one who reviews: what was handed in has been committed, and that is all that it can tell. */
export function defaultReview(): ScriptStep[] {
  const steps = [{ say: 'I have read it.' }, { call: { tool: 'review_decide', arguments: { decision: 'approve' } } }]
  return steps.map((step, index) => parseStep(step, String(index + 1)))
}
