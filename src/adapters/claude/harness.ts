import { z } from 'zod'
import { type Harness, type HarnessEvent, MOST_TEXT, type Step } from '../../ports/harness.ts'
import { accountOf } from '../harness-shared/account.ts'
import { conclude } from '../harness-shared/ending.ts'
import { clean, clip, type Line, lastLine, printable, takeLines } from '../harness-shared/lines.ts'
import { probeProgram } from '../harness-shared/program.ts'
import { tellAll } from '../harness-shared/story.ts'
import { planOf, uuidOf } from './launch.ts'
import { PROGRAM } from './program.ts'
import { answer, interruption, userMessage } from './protocol.ts'
import { readLine, unasked } from './read.ts'
import { begun, type State } from './state.ts'

const Options = z.strictObject({})

const MOST_WAITING = 50

/**
 * Claude Code, in one long conversation by lines of JSON. The brief is its first message. It may be told more, and be interrupted, for as
 * long as a turn runs; when a turn ends with nothing left to say to it, its input ends and it exits. After an interrupt it waits.
 */
export const claude: Harness = {
  name: PROGRAM.command,
  title: PROGRAM.title,
  meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn', cost: 'turn' },
  can: { message: true, interrupt: true, resume: true, approve: true },
  options: Options,
  probe: () => probeProgram(PROGRAM),
  account: accountOf(PROGRAM.account),
  launch: (launch) => planOf(launch),
  begin: () => begun('', null),
  decode(kept, frame): Step {
    const state = kept as State
    const { stream, bytes, at } = frame
    if (stream === 'in') return { state, events: [] }
    const { lines, open } = takeLines(state[stream], bytes, stream === 'err' ? MOST_TEXT : undefined)
    const step: Required<Pick<Step, 'events' | 'send'>> & Step = { state, events: [], send: [] }
    let now = state
    for (const line of lines) {
      const { state: next, events, send = [], close } = stream === 'err' ? { state: now, events: aside(line) } : readLine(now, line, at)
      const told = tellAll(now.story, events)
      now = { ...next, story: told.story }
      step.events.push(...told.events)
      step.send.push(...send)
      step.close ||= close
    }
    return { ...step, state: { ...now, [stream]: open } }
  },
  message(kept, text) {
    const state = kept as State
    if (state.closed || state.waiting.length >= MOST_WAITING) return undefined
    const messages = state.messages + 1
    const uuid = uuidOf(`${state.run} message ${messages}`)
    return {
      state: { ...state, messages, waiting: [...state.waiting, uuid] },
      events: [{ type: 'text', from: 'person', text: clip(clean(text)) }],
      send: [userMessage(text, uuid)],
    }
  },
  interrupt(kept) {
    const state = kept as State
    if (state.closed || (state.last === 'interrupted' && !state.story.turn && !state.waiting.length)) return undefined
    const interrupts = state.interrupts + 1
    return { state: { ...state, interrupts }, events: [], send: [interruption(`interrupt-${interrupts}`)] }
  },
  decide(kept, id, { allow, message }) {
    const state = kept as State
    const input = Object.hasOwn(state.asked, id) ? state.asked[id] : undefined
    if (input === undefined || state.closed) return undefined
    const granted = { behavior: 'allow', ...(input === null ? {} : { updatedInput: JSON.parse(input) }) }
    const refused = { behavior: 'deny', message: message || 'A person said no.' }
    return { state: unasked(state, id), events: [], send: [answer(id, allow ? granted : refused)] }
  },
  end(kept, exit) {
    const state = kept as State
    let now = state
    const events: HarnessEvent[] = []
    for (const stream of ['out', 'err'] as const)
      for (const line of lastLine(state[stream])) {
        const read = stream === 'err' ? { state: now, events: aside(line) } : readLine(now, line, exit.at)
        const told = tellAll(now.story, read.events)
        now = { ...read.state, story: told.story }
        events.push(...told.events)
      }
    return [...events, ...conclude(now.story, exit, now.last === 'well' && !now.story.turn)]
  },
}

function aside(line: Line): HarnessEvent[] {
  const text = printable(line)
  return text.trim() ? [{ type: 'text', from: 'error', text }] : []
}
