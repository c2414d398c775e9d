import { z } from 'zod'
import { type Harness, type HarnessEvent, type HarnessState, type LaunchPlan, MOST_TEXT, type Step } from '../../ports/harness.ts'
import { conclude } from '../harness-shared/ending.ts'
import { type Line, lastLine, noLine, type OpenLine, printable, takeLines } from '../harness-shared/lines.ts'
import { newStory, type Story, tellAll } from '../harness-shared/story.ts'

const Argument = z
  .string()
  .max(10_000)
  .refine((text) => !text.includes('\0'), 'holds a NUL')

const Options = z.strictObject({
  command: z.tuple([Argument.min(1)], Argument).describe('The program and its arguments, as they are: no shell reads them'),
})

interface State extends HarnessState {
  story: Story
  out: OpenLine
  err: OpenLine
}

/**
 * Any executable. It gets the brief on its input and our tools by its environment; what it prints is text, whatever the text says, and its
 * exit code is the outcome. Its whole life is one turn, so it has no turns to count, nor can it tell what it used: its one meter is the
 * wall clock.
 */
export const command: Harness = {
  name: 'command',
  title: 'Any command',
  meters: { wall_clock: 'second' },
  can: { message: false, interrupt: true, resume: false, approve: false },
  options: Options,
  async probe() {
    return { found: true, version: 'any' }
  },
  launch({ brief, mcp, task, options }): LaunchPlan {
    const { command } = Options.parse(options)
    return {
      argv: command as [string, ...string[]],
      env: {
        SIGNALBOX_URL: mcp.url,
        SIGNALBOX_TOKEN: mcp.token,
        SIGNALBOX_TOKEN_FILE: mcp.tokenFile,
        ...(task ? { SIGNALBOX_TASK: task } : {}),
      },
      inherit: [],
      stdin: { text: brief },
      files: {},
    }
  },
  begin: (): State => ({ story: newStory(), out: noLine(), err: noLine() }),
  decode(kept, frame): Step {
    const state = kept as State
    if (frame.stream === 'in') return { state, events: [] }
    const { lines, open } = takeLines(state[frame.stream], frame.bytes, MOST_TEXT)
    const { story, events } = tellAll(state.story, [...BEGUN, ...lines.map((line) => text(frame.stream, line))])
    return { state: { ...state, story, [frame.stream]: open }, events }
  },
  message: () => undefined,
  interrupt(kept) {
    const state = kept as State
    return { state: { ...state, story: { ...state.story, interrupted: true } }, events: [], signal: 'SIGINT' }
  },
  decide: () => undefined,
  end(kept, exit) {
    const state = kept as State
    const begun = exit.reason === 'spawn_failed' ? [] : BEGUN
    const left = (['out', 'err'] as const).flatMap((stream) => lastLine(state[stream]).map((line) => text(stream, line)))
    const { story, events } = tellAll(state.story, [...begun, ...left])
    return [...events, ...conclude(story, exit)]
  },
}

const BEGUN: HarnessEvent[] = [{ type: 'ready', session: null }, { type: 'turn_started' }]

function text(stream: string, line: Line): HarnessEvent {
  return { type: 'text', from: stream === 'err' ? 'error' : 'program', text: printable(line) }
}
