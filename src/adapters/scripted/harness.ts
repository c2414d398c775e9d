import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import type { Harness, HarnessEvent, HarnessState, Launch, LaunchPlan, Step } from '../../ports/harness.ts'
import { conclude } from '../harness-shared/ending.ts'
import { clean, clip, type Line, lastLine, noLine, type OpenLine, printable, takeLines } from '../harness-shared/lines.ts'
import { newStory, type Story, tellAll } from '../harness-shared/story.ts'
import { ENV, type Heard, Printed } from './protocol.ts'

const PROGRAMS = ['./scripted-agent.js', '../../../dist/scripted-agent.js'].map((path) => fileURLToPath(new URL(path, import.meta.url)))

const Options = z
  .strictObject({
    script: z.string().min(1).max(200_000).optional().describe('The script itself; default: the ```signalbox block of the task'),
    file: z.string().min(1).max(1_000).optional().describe('Where the script is, from the top of the worktree'),
  })
  .refine(({ script, file }) => script === undefined || file === undefined, 'give either a script or a file')
  .describe('docs/scripted-agent.md says what a script is')

interface State extends HarnessState {
  story: Story
  out: OpenLine
  err: OpenLine
}

/** Our own agent, which does what a script says: a real client with its own token, deterministic, without a model. */
export const scripted: Harness = {
  name: 'scripted',
  title: 'Scripted agent',
  meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn', cost: 'turn' },
  can: { message: true, interrupt: true, resume: true, approve: false },
  options: Options,
  async probe() {
    if (program()) return { found: true, version: 'built in' }
    return { found: false, why: 'scripted-agent.js is not in dist', install: 'Build Signalbox again: npm run build' }
  },
  launch(launch): LaunchPlan {
    const given = Options.parse(launch.options)
    if (launch.noScript !== null && given.script === undefined && given.file === undefined) throw new Error(launch.noScript)
    return {
      argv: [process.execPath, program() ?? (PROGRAMS[0] as string)],
      env: environment(launch, given),
      inherit: [],
      stdin: 'open',
      files: given.script === undefined ? {} : { [SCRIPT_FILE]: given.script },
    }
  },
  begin: (): State => ({ story: newStory(), out: noLine(), err: noLine() }),
  decode(kept, frame): Step {
    const state = kept as State
    const { stream, bytes, at } = frame
    if (stream === 'in') return { state, events: [] }
    const { lines, open } = takeLines(state[stream], bytes)
    const { story, events } = tellAll(
      state.story,
      lines.map((line) => read(stream, line, at)),
    )
    return { state: { ...state, story, [stream]: open }, events }
  },
  message(state, text) {
    const events: HarnessEvent[] = [{ type: 'text', from: 'person', text: clip(clean(text)) }]
    return { state, events, send: [inputLine({ type: 'message', text })] }
  },
  interrupt: (state) => ({ state, events: [], send: [inputLine({ type: 'interrupt' })] }),
  decide: () => undefined,
  end(kept, exit) {
    const state = kept as State
    const left = (['out', 'err'] as const).flatMap((stream) => lastLine(state[stream]).map((line) => read(stream, line, exit.at)))
    const { story, events } = tellAll(state.story, left)
    return [...events, ...conclude(story, exit)]
  },
}

const SCRIPT_FILE = 'script.txt'

function program(): string | undefined {
  return PROGRAMS.find((file) => existsSync(file))
}

function environment({ mcp, task, session, folder }: Launch, { script, file }: z.output<typeof Options>): Record<string, string> {
  return {
    [ENV.url]: mcp.url,
    [ENV.tokenFile]: mcp.tokenFile,
    ...(task ? { [ENV.task]: task } : {}),
    ...(script === undefined ? {} : { [ENV.script]: `${folder}/${SCRIPT_FILE}` }),
    ...(file === undefined ? {} : { [ENV.file]: file }),
    ...(session ? { [ENV.resumed]: '1' } : {}),
  }
}

const inputLine = (heard: Heard) => `${JSON.stringify(heard)}\n`

/** What the program says; anything else that comes by its output is text. */
function read(stream: 'out' | 'err', line: Line, at: number): HarnessEvent {
  if (stream === 'err') return { type: 'text', from: 'error', text: printable(line) }
  return fromPrinted(line.text, at) ?? { type: 'text', from: 'program', text: printable(line) }
}

function fromPrinted(text: string, at: number): HarnessEvent | undefined {
  const printed = Printed.safeParse(parsed(text)).data
  if (!printed) return undefined
  switch (printed.type) {
    case 'usage':
      return { ...printed, cached_tokens: 0, estimated: false }
    case 'limit': {
      const seconds = printed.resets_in_seconds
      return {
        type: 'limit_reached',
        message: clip(clean(printed.message)),
        resets_at: seconds === null ? null : Math.round(at) + seconds * 1000,
      }
    }
    default:
      return clipped(printed)
  }
}

/** A JSON string may hold what a terminal would act on. */
function clipped<E extends HarnessEvent>(event: E): E {
  const entries = Object.entries(event).map(([key, value]) => [key, typeof value === 'string' ? clip(clean(value)) : value])
  return Object.fromEntries(entries) as E
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
