import { type Approvals, type HarnessEvent, MOST_QUESTIONS } from '../../ports/harness.ts'
import { clean, clip, type Line, printable } from '../harness-shared/lines.ts'
import { answer, failure, type Message, notification, readMessage, request } from '../harness-shared/rpc.ts'
import { type Complaint, failureOf, reasonOf } from './failure.ts'
import { Asked, type Call, Initialized, Opened, PROTOCOL_VERSION, Prompted, Update, Updated } from './protocol.ts'
import { begun, type Doing, type Permission, type State, sending, telling, withState } from './state.ts'
import { askedInput, called, calledNow, callId, heard, type NameOf, settled, toolName } from './told.ts'
import { OURS } from './tools-server.ts'

/** What differs from program to program. */
export interface Dialect {
  nameOf: NameOf
  /** Whether a call, of which permission is asked, is one of our own tools. Only by what the program says, not the model. */
  isOurs(call: Call): boolean
  /** What a turn used, where that is told of every turn. */
  usage(result: Prompted): HarnessEvent | undefined
  /** A line on its error output which says that the model could not be reached and is tried again: why. */
  retries(line: string): string | undefined
  /** What a person does to log in. */
  login: string
}

const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602
const MOST_LOGINS = 500
/** A program that tries again for ever would say nothing. opencode gives up by itself at the sixth. */
const MOST_ATTEMPTS = 8

/** The first line that it gets; all others are answers to what it says. */
export const GREETING = request(1, 'initialize', {
  protocolVersion: PROTOCOL_VERSION,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
  clientInfo: { name: 'signalbox', title: 'Signalbox', version: '1' },
})

export function outLine(doing: Doing, line: Line, at: number, dialect: Dialect): Doing {
  if (line.dropped) return tooLong(doing, line)
  const message = readMessage(line.text)
  if (!message) return line.text.trim() ? telling(doing, { type: 'text', from: 'program', text: printable(line) }) : doing
  if (message.kind === 'request') return asked(doing, message, dialect)
  if (message.kind === 'notification') return message.method === 'session/update' ? updated(doing, message.params, dialect) : doing
  if (message.id !== doing.state.request) return doing
  return answered(doing, message, at, dialect)
}

const BEGINNING =
  /^\s*\{\s*(?:"jsonrpc":\s*"2\.0",\s*)?(?:"id":\s*(\d{1,15}|"[^"\\]{1,200}"),\s*)?"method":\s*"([^"\\]{1,200})"(?:,\s*"id":\s*(\d{1,15}|"[^"\\]{1,200}"))?/

/** Only its beginning is here. A question among these must not wait for an answer that cannot come; how it says no stands in what is missing. */
function tooLong(doing: Doing, line: Line): Doing {
  const [, first, method, second] = BEGINNING.exec(line.text) ?? []
  const id = first ?? second
  if (id === undefined || method === undefined) return telling(doing, { type: 'text', from: 'program', text: printable(line) })
  const bytes = line.text.length + line.dropped
  const text = `It asked (${clean(method)}) for something of ${bytes} bytes, which nobody could read: refused.`
  const refused = failure(
    JSON.parse(id),
    INVALID_PARAMS,
    'It was refused: it is too long to be shown to anybody. Ask for it in smaller parts.',
  )
  return sending(telling(withState(doing, { refused: true }), { type: 'text', from: 'program', text }), refused)
}

export function errLine(doing: Doing, line: Line, at: number, dialect: Dialect): Doing {
  const told = telling(doing, { type: 'text', from: 'error', text: printable(line) })
  const why = doing.state.stage === 'working' ? dialect.retries(line.text) : undefined
  if (!why) return told
  const attempts = told.state.attempts + 1
  if (attempts < MOST_ATTEMPTS) return withState(told, { attempts })
  const cancel = notification('session/cancel', { sessionId: doing.state.session })
  return failedTurn(sending(told, cancel), { code: 0, message: `${why} (given up after ${attempts} attempts)`, data: null }, at, dialect)
}

type Reply = Extract<Message, { kind: 'answer' | 'failure' }>

function answered(doing: Doing, reply: Reply, at: number, dialect: Dialect): Doing {
  switch (doing.state.stage) {
    case 'greeting':
      return reply.kind === 'answer' ? greeted(doing, reply.result) : refusedToStart(doing, reply, at, dialect)
    case 'opening':
      if (reply.kind === 'answer') return opened(doing, reply.result)
      return doing.state.wishes.session === null ? refusedToStart(doing, reply, at, dialect) : anew(doing, reasonOf(reply))
    case 'setting':
      return set(doing, reply)
    case 'working':
      return reply.kind === 'answer' ? prompted(doing, reply.result, at, dialect) : failedTurn(doing, reply, at, dialect)
    default:
      return doing
  }
}

function ask(doing: Doing, stage: State['stage'], method: string, params: object): Doing {
  const number = doing.state.request + 1
  return sending(withState(doing, { stage, request: number }), request(number, method, params))
}

function greeted(doing: Doing, result: unknown): Doing {
  const hello = Initialized.safeParse(result).data
  if (hello?.protocolVersion !== PROTOCOL_VERSION) {
    const version = hello ? `version ${hello.protocolVersion}` : 'no version that can be read'
    return givenUp(doing, {
      type: 'failed',
      reason: `It speaks ${version} of the Agent Client Protocol; Signalbox speaks version ${PROTOCOL_VERSION}.`,
    })
  }
  const logins = (hello.authMethods ?? []).flatMap((method) => method?.description ?? method?.name ?? [])
  const known = withState(doing, {
    program: clean(hello.agentInfo?.name ?? '').slice(0, 100),
    logins: clean(logins.join('; ')).slice(0, MOST_LOGINS).toWellFormed(),
  })
  const { session } = doing.state.wishes
  if (session === null) return openNew(known)
  const { loadSession, sessionCapabilities } = hello.agentCapabilities ?? {}
  // Taken up without its history where that is possible: the history is in our transcript already.
  if (sessionCapabilities?.resume) return ask(known, 'opening', 'session/resume', { sessionId: session, ...place(doing.state) })
  if (loadSession) return ask(known, 'opening', 'session/load', { sessionId: session, ...place(doing.state) })
  return anew(known, 'it cannot take up sessions')
}

const place = ({ wishes }: State) => ({ cwd: wishes.cwd, mcpServers: wishes.servers, ...(wishes.meta ? { _meta: wishes.meta } : {}) })
const openNew = (doing: Doing) => ask(doing, 'opening', 'session/new', place(doing.state))

function anew(doing: Doing, why: string): Doing {
  const text = clip(`Its earlier session could not be taken up (${why}); it begins anew with the brief.`)
  const told = telling(doing, { type: 'text', from: 'program', text })
  return openNew(withState(told, { wishes: { ...told.state.wishes, session: null } }))
}

function opened(doing: Doing, result: unknown): Doing {
  const found = Opened.safeParse(result ?? {}).data
  const session = found?.sessionId ?? doing.state.wishes.session
  if (!found || !session) return givenUp(doing, { type: 'failed', reason: 'It opened a session without an id.' })
  const ready = telling(withState(doing, { session }), { type: 'ready', session: clip(clean(session)) })
  return nextSetting(withState(ready, { settings: settingsFor(ready.state, found) }))
}

/** Modes that programs are known to have, the best first. Denied, an agent still edits below its folder; all else that it asks is refused. */
const MODES: Record<Approvals, string[]> = {
  allow: ['yolo', 'bypassPermissions', 'agent-full-access', 'full-access'],
  ask: ['default', 'read-only'],
  deny: ['autoEdit', 'acceptEdits', 'workspace-write', 'default', 'read-only'],
}

function settingsFor({ wishes }: State, { modes, configOptions, models }: Opened): State['settings'] {
  const offered = (modes?.availableModes ?? []).flatMap((mode) => mode?.id ?? [])
  const mode = MODES[wishes.approvals].find((id) => offered.includes(id))
  const settings: State['settings'] = mode ? [{ method: 'session/set_mode', params: { modeId: mode }, must: null }] : []
  if (wishes.model === null) return settings
  const must = `The model ${wishes.model} could not be chosen`
  const option = configOptions?.find((one) => one?.category === 'model' || one?.id === 'model')
  if (option) settings.push({ method: 'session/set_config_option', params: { configId: option.id, value: wishes.model }, must })
  else if (models) settings.push({ method: 'session/set_model', params: { modelId: wishes.model }, must })
  else settings.push({ method: 'session/set_config_option', params: { configId: 'model', value: wishes.model }, must })
  return settings
}

function nextSetting(doing: Doing): Doing {
  const [next] = doing.state.settings
  if (!next) return speak(doing)
  return ask(doing, 'setting', next.method, { sessionId: doing.state.session, ...next.params })
}

function set(doing: Doing, reply: Reply): Doing {
  const [done, ...settings] = doing.state.settings
  const rest = withState(doing, { settings })
  if (reply.kind === 'answer' || !done) return nextSetting(rest)
  if (done.must) return givenUp(rest, { type: 'failed', reason: clip(clean(`${done.must}: ${reasonOf(reply)}`)) })
  const text = clip(`Its mode could not be set (${reasonOf(reply)}); what it asks permission for is answered by Signalbox.`)
  return nextSetting(telling(rest, { type: 'text', from: 'program', text }))
}

/** Everything that waits to be said is the next turn. */
export function speak(doing: Doing): Doing {
  const prompt = doing.state.words.map((text) => ({ type: 'text', text }))
  const turn = withState(doing, { words: [], cancelled: false, refused: false, attempts: 0 })
  return ask(telling(turn, { type: 'turn_started' }), 'working', 'session/prompt', { sessionId: turn.state.session, prompt })
}

function prompted(doing: Doing, result: unknown, at: number, dialect: Dialect): Doing {
  const found = Prompted.safeParse(result).data
  if (!found) return failedTurn(doing, { code: 0, message: 'it ended its turn without saying why', data: null }, at, dialect)
  const used = dialect.usage(found)
  const counted = used ? telling(doing, used) : doing
  if (doing.state.cancelled) return interrupted(counted)
  const failed = whyNot(counted.state, found)
  if (failed) return failedTurn(counted, { code: 0, message: failed, data: null }, at, dialect)
  const done = telling(settled(counted), { type: 'turn_ended', how: 'completed' })
  return done.state.words.length ? speak(done) : over(done)
}

const BAD_STOPS: Record<string, string> = {
  max_tokens: 'its answer was cut off at the most tokens that the model gives',
  max_turn_requests: 'it asked the model as often as it may in one turn',
  refusal: 'the model refused to go on',
  cancelled: 'it cancelled its turn by itself',
}

function whyNot({ refused, speech }: State, { stopReason, usage, _meta }: Prompted): string | undefined {
  if (stopReason === 'cancelled' && refused) return 'it stopped because something that it asked permission for was refused'
  if (stopReason !== 'end_turn') return BAD_STOPS[stopReason] ?? `it stopped: ${stopReason}`
  // codex-acp ends a turn well in which the model never answered; it counts no token then, and the last words are the error.
  const { token_count } = (_meta?.quota ?? {}) as { token_count?: unknown }
  return usage === null && token_count === null ? speech?.text.trim() || 'the model did not answer' : undefined
}

function interrupted(doing: Doing): Doing {
  const done = telling(settled(doing), { type: 'turn_ended', how: 'interrupted' })
  return done.state.words.length ? speak(done) : withState(done, { stage: 'idle' })
}

function failedTurn(doing: Doing, complaint: Complaint, at: number, dialect: Dialect): Doing {
  if (doing.state.cancelled) return interrupted(doing)
  const event = failureOf(complaint, loginFor(doing.state, dialect), at)
  return givenUp(telling(settled(doing), { type: 'turn_ended', how: 'failed' }), event)
}

function refusedToStart(doing: Doing, complaint: Complaint, at: number, dialect: Dialect): Doing {
  return givenUp(doing, failureOf(complaint, loginFor(doing.state, dialect), at))
}

const loginFor = ({ logins }: State, { login }: Dialect) =>
  login || (logins ? `It says how: ${logins}` : 'Log in to it in a terminal first.')

function givenUp(doing: Doing, event: HarnessEvent): Doing {
  const failure = event.type === 'failed' ? event.reason : event.type === 'limit_reached' ? event.message : 'it failed'
  return over(withState(telling(doing, event), { failure }))
}

const over = (doing: Doing): Doing => ({ ...withState(doing, { stage: 'over', words: [] }), close: true })

function updated(doing: Doing, params: unknown, { nameOf }: Dialect): Doing {
  const { stage, session } = doing.state
  // Before the first words it is history that it tells: all of that was told in an earlier life.
  if (stage === 'greeting' || stage === 'opening' || stage === 'setting') return doing
  const told = Updated.safeParse(params).data
  const update = told?.sessionId === session ? Update.safeParse(told.update).data : undefined
  if (!update) return doing
  const alive = doing.state.attempts ? withState(doing, { attempts: 0 }) : doing
  return 'toolCallId' in update ? called(alive, update, nameOf) : heard(alive, update)
}

function asked(doing: Doing, { id, method, params }: Extract<Message, { kind: 'request' }>, dialect: Dialect): Doing {
  const question = method === 'session/request_permission' ? Asked.safeParse(params).data : undefined
  // Whatever else it wants of an editor: a question without an answer would hang it.
  if (!question) return sending(doing, failure(id, METHOD_NOT_FOUND, `Signalbox does not do ${clean(method).slice(0, 100)}.`))
  const permission = permissionOf(id, question, dialect)
  // Some said before what it would be given, and name only the call here.
  const announced = doing.state.held.find(({ id }) => id === callId(question.toolCall))
  const told = calledNow(doing, question.toolCall, dialect.nameOf)
  const { approvals } = doing.state.wishes
  if (isOurs(question.toolCall, dialect) || approvals === 'allow') return sending(told, choose(permission, true))
  const waiting = told.state.permissions
  if (approvals === 'deny' || doing.state.stage !== 'working' || waiting.length >= MOST_QUESTIONS)
    return sending(withState(told, { refused: true }), choose(permission, false))
  if (waiting.some((one) => one.id === permission.id)) return told
  const event: HarnessEvent = {
    type: 'approval_asked',
    id: permission.id,
    name: permission.name,
    input: clip(askedInput(question.toolCall, announced)),
  }
  return withState(telling(told, event), { permissions: [...waiting, permission] })
}

function permissionOf(asked: string | number, { toolCall, options }: Asked, { nameOf }: Dialect): Permission {
  const option = (...kinds: string[]) => {
    const found = kinds.flatMap((kind) => options.find((one) => one?.kind === kind) ?? [])
    return found[0]?.optionId.slice(0, 200) ?? null
  }
  return {
    id: clean(`permission-${asked}`),
    asked,
    name: toolName(toolCall, nameOf),
    allow: option('allow_once', 'allow_always'),
    reject: option('reject_once', 'reject_always'),
  }
}

/** Without such a choice it is told that the question was withdrawn. */
function choose({ asked, allow, reject }: Permission, allowed: boolean): string {
  const optionId = allowed ? allow : reject
  return answer(asked, { outcome: optionId === null ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } })
}

function isOurs(call: Call, dialect: Dialect): boolean {
  const { is_mcp_tool_call } = (call._meta ?? {}) as { is_mcp_tool_call?: unknown }
  const { server } = (call.rawInput ?? {}) as { server?: unknown }
  // claude-agent-acp gives the tool's name; codex-acp says that it is a server's, and of which.
  return call.name?.startsWith(`mcp__${OURS}__`) || (is_mcp_tool_call === true && server === OURS) || dialect.isOurs(call)
}

export function decided(state: State, permission: Permission, { allow, message }: { allow: boolean; message: string }): Doing {
  const permissions = state.permissions.filter((one) => one !== permission)
  const doing = sending(withState(begun(state), { permissions }), choose(permission, allow))
  if (allow) return doing
  // The protocol has no place for the reason: it is the next that the agent hears.
  const reason = message.trim() ? [`Your ${permission.name} was refused: ${message.trim()}`] : []
  return withState(doing, { refused: true, words: [...state.words, ...reason] })
}

/** Its questions are withdrawn with the turn. */
export function cancelTurn(state: State): Doing {
  const withdrawn = state.permissions.map(({ asked }) => answer(asked, { outcome: { outcome: 'cancelled' } }))
  const cancel = notification('session/cancel', { sessionId: state.session })
  return sending(withState(begun(state), { cancelled: true, permissions: [] }), cancel, ...withdrawn)
}
