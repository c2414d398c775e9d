import type { Harness, Step } from '../../ports/harness.ts'
import { accountOf } from '../harness-shared/account.ts'
import { conclude } from '../harness-shared/ending.ts'
import { type Line, lastLine, printable, takeLines } from '../harness-shared/lines.ts'
import { probeProgram } from '../harness-shared/program.ts'
import { readMessage } from '../harness-shared/rpc.ts'
import { addLetter, decided, heard, heardInPart, type Next, newState, type State, tell, wantInterrupt } from './conversation.ts'
import { said } from './items.ts'
import { Options, plan } from './launch.ts'
import { PROGRAM } from './program.ts'

/** Codex by its app-server: a conversation in JSON-RPC by lines, which lives for as long as its input is open. */
export const codex: Harness = {
  name: PROGRAM.command,
  title: PROGRAM.title,
  meters: { wall_clock: 'second', turns: 'turn', tokens: 'turn' },
  can: { message: true, interrupt: true, resume: true, approve: true },
  options: Options,
  probe: () => probeProgram(PROGRAM),
  account: accountOf(PROGRAM.account),
  launch: plan,
  begin: () => newState({ opening: {}, session: null, approvals: 'deny', brief: '' }),
  decode(kept, { stream, at, bytes }): Step {
    const state = kept as State
    if (stream === 'in') return { state, events: [] }
    const { lines, open } = takeLines(state[stream], bytes)
    return all({ ...state, at, [stream]: open }, lines, stream)
  },
  message: (kept, text) => addLetter(kept as State, text),
  interrupt: (kept) => wantInterrupt(kept as State),
  decide: (kept, id, decision) => decided(kept as State, id, decision),
  /** Its exit code says little: told to end in the middle of a turn, or after one that failed, it exits with 0 as well. */
  end(kept, exit) {
    const left = (['out', 'err'] as const).reduce(
      (so, stream) => {
        const next = all(so.state, lastLine(so.state[stream]), stream)
        return { state: next.state, events: [...so.events, ...next.events] }
      },
      { state: kept as State, events: [] as Step['events'] },
    )
    const { state, events } = tell({ ...left.state, story: { ...left.state.story, ready: true } }, lastWords(left.state))
    return [...left.events, ...events, ...conclude(state.story, exit, state.last === 'completed')]
  },
}

function all(first: State, lines: Line[], stream: 'out' | 'err'): Next {
  const so: Next = { state: first, events: [], send: [] }
  for (const line of lines) {
    const { state, events, send, close } = stream === 'err' ? tell(so.state, [said('error', printable(line))]) : one(so.state, line)
    so.state = state
    so.events.push(...events)
    so.send.push(...send)
    so.close ||= close
  }
  return so
}

function one(state: State, line: Line): Next {
  const message = line.dropped ? undefined : readMessage(line.text)
  if (message) return heard(state, message)
  return (line.dropped ? heardInPart(state, line.text) : undefined) ?? tell(state, [said('program', printable(line))])
}

const lastWords = ({ trouble }: State): Step['events'] => (trouble ? [trouble] : [])
