import type { z } from 'zod'
import type { Harness, HarnessEvent, LaunchPlan, Step } from '../../ports/harness.ts'
import type { Exit } from '../../ports/runner.ts'
import { conclude } from '../harness-shared/ending.ts'
import { clean, clip, lastLine, takeLines } from '../harness-shared/lines.ts'
import { cancelTurn, type Dialect, decided, errLine, GREETING, outLine, speak } from './fold.ts'
import { begun, type Doing, newState, type State, stepOf, telling, withState } from './state.ts'
import { settled } from './told.ts'
import { toolsServer } from './tools-server.ts'

/** A program that speaks the Agent Client Protocol, and what is special about it. */
export interface AcpProgram extends Pick<Harness, 'name' | 'title' | 'meters' | 'options' | 'probe' | 'account'>, Partial<Dialect> {
  plan(launch: Parameters<Harness['launch']>[0], options: Record<string, unknown>): Pick<LaunchPlan, 'argv' | 'env' | 'inherit'>
  /** Goes along when a session is opened: what one program understands and the others overlook. */
  meta?(launch: Parameters<Harness['launch']>[0]): Record<string, unknown> | undefined
  /** The model is chosen by its arguments, not in the conversation. */
  modelByArgument?: boolean
  /** Those that live on after the end of their input, by the name they give: a signal ends them, and that they take for a good end. */
  lingers?(program: string): boolean
  options: z.ZodObject
}

/** What people said while it was busy, at the most. */
const MOST_WAITING = 200_000

export function acpHarness(program: AcpProgram): Harness {
  const { name, title, meters, options, probe, account, lingers = () => false } = program
  const dialect: Dialect = {
    nameOf: program.nameOf ?? (() => undefined),
    isOurs: program.isOurs ?? (() => false),
    usage: program.usage ?? (() => undefined),
    retries: program.retries ?? (() => undefined),
    login: program.login ?? '',
  }
  const step = (doing: Doing): Step => stepOf(doing, lingers(doing.state.program) ? 'SIGTERM' : undefined)
  return {
    name,
    title,
    meters,
    can: { message: true, interrupt: true, resume: true, approve: true },
    options,
    probe,
    account,
    launch(launch): LaunchPlan {
      const { cwd, session, approvals, brief } = launch
      const model = program.modelByArgument ? null : launch.model
      return {
        ...program.plan(launch, options.parse(launch.options)),
        stdin: { text: GREETING, open: true },
        files: {},
        state: newState({ cwd, session, model, approvals, servers: [toolsServer(launch)], meta: program.meta?.(launch) ?? null }, [brief]),
      }
    },
    begin: () => newState(),
    decode(kept, { stream, bytes, at }): Step {
      const state = kept as State
      if (stream === 'in') return { state, events: [] }
      const { lines, open } = takeLines(state[stream], bytes)
      const read = stream === 'out' ? outLine : errLine
      return step(
        lines.reduce((doing, line) => read(doing, line, at, dialect), withState(begun(state), { [stream]: open } as Partial<State>)),
      )
    },
    message(kept, text) {
      const state = kept as State
      const waiting = state.words.slice(1).reduce((sum, word) => sum + word.length, text.length)
      if (state.stage === 'over' || waiting > MOST_WAITING) return undefined
      const heard = telling(begun(state), { type: 'text', from: 'person', text: clip(clean(text)) })
      const kept_ = withState(heard, { words: [...state.words, text] })
      return step(state.stage === 'idle' ? speak(kept_) : kept_)
    },
    interrupt(kept) {
      const state = kept as State
      return state.stage === 'working' ? step(cancelTurn(state)) : undefined
    },
    decide(kept, id, decision) {
      const state = kept as State
      const permission = state.permissions.find((one) => one.id === id)
      return permission && step(decided(state, permission, decision))
    },
    end(kept, exit) {
      const state = kept as State
      const left = (['out', 'err'] as const).reduce((doing, stream) => {
        const read = stream === 'out' ? outLine : errLine
        return lastLine(state[stream]).reduce((now, line) => read(now, line, exit.at, dialect), doing)
      }, begun(state))
      return ending(settled(left), exit)
    },
  }
}

/** A program may exit well although its work failed, or leave in the middle of it. */
function ending(doing: Doing, exit: Exit): HarnessEvent[] {
  const { stage, cancelled } = doing.state
  const exitedWell = exit.reason === 'exited' && exit.code === 0
  const wasBusy = stage !== 'over' && stage !== 'idle'
  const left = exitedWell && wasBusy && !cancelled ? leftEarly(doing) : doing
  const told = cancelled ? telling(left, { type: 'turn_ended', how: 'interrupted' }) : left
  return [...told.events, ...conclude(told.state.story, exit, told.state.failure === null)]
}

function leftEarly(doing: Doing): Doing {
  const reason = doing.state.session === null ? 'it ended before it had begun to work' : 'it ended in the middle of its work'
  return withState(telling(doing, { type: 'turn_ended', how: 'failed' }, { type: 'failed', reason }), { failure: reason })
}
