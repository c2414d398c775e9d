import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { Approvals, HarnessEvent, HarnessState, Step } from '../../ports/harness.ts'
import type { Exit } from '../../ports/runner.ts'
import { launchOf, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { loadTape } from '../../testing/tapes.ts'
import { claude } from './harness.ts'
import { planOf } from './launch.ts'

const tape = (name: string) => loadTape(claude, join(import.meta.dirname, `tapes/${name}.json`))
const big = 'x'.repeat(1_500_000)

harnessContract({
  harness: claude,
  scene: () => ({ options: {}, brief: 'Mend the log-in.' }),
  program: { endsWell: tape('ends-well'), fails: tape('fails') },
  hostileLines: [
    '{"type":"system","subtype":"init","session_id":7,"mcp_servers":[null]}',
    '{"type":"system","subtype":"init","session_id":"\\u001b[31m%","mcp_servers":[{"name":"signalbox","status":"failed"}]}',
    '{"type":"system","subtype":"api_retry","error_status":429,"retry_delay_ms":1e300,"error":"\\u0000"}',
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"%","name":"\\ud800","input":{"a":"\\u0007"}},{"type":"text","text":"\\u001b]0;%\\u0007"},null,7]}}',
    '{"type":"assistant","message":{"content":"text"}}',
    '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%","content":[{"type":"image"},{"text":"\\u0000"},null]}]}}',
    '{"type":"user","isReplay":true,"uuid":"%"}',
    '{"type":"control_request","request_id":"%","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"\\u001b[2J"}}}',
    '{"type":"control_request","request_id":"%","request":{"subtype":"anything"}}',
    '{"type":"control_request","request_id":"__proto__","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}',
    '{"type":"control_response","response":{"request_id":"usage","response":{"session":{"model_usage":{"m":{"inputTokens":%,"outputTokens":9007199254740991,"costUSD":-1}}}}}}',
    '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"\\u001b%"}',
    '{"type":"result","subtype":"success","modelUsage":{"m":{"inputTokens":1e12,"outputTokens":%,"costUSD":1e9}},"permission_denials":[{"tool_name":"\\u0000"}]}',
    '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1e99}}',
    `{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_%","type":"tool_result","content":"${big}"}]}}`,
    `{"type":"assistant","message":{"content":[{"type":"text","text":"${'€'.repeat(100_000)}"}]}}`,
    `${big}%`,
  ],
})

const INIT = { type: 'system', subtype: 'init', session_id: 'S', mcp_servers: [{ name: 'signalbox', status: 'connected' }] }
const RESULT = { type: 'result', subtype: 'success', is_error: false, result: 'done', terminal_reason: 'completed', queued_turn_count: 0 }
const models = (input: number, output: number, cached: number, cost: number) => ({
  m: { inputTokens: input, outputTokens: output, cacheReadInputTokens: cached, cacheCreationInputTokens: 0, costUSD: cost },
})
const exited = (code: number): Exit => ({ reason: 'exited', code, signal: null, detail: '', at: 1 })

/** A life that is told line by line, without a program. */
class Life {
  readonly events: HarnessEvent[] = []
  readonly sent: Record<string, unknown>[] = []
  closed = false
  at = 1_000_000
  #state: HarnessState

  constructor(scene: Partial<Scene> = {}) {
    this.#state = planOf(launchOf({ options: {}, ...scene })).state as HarnessState
  }

  says(...lines: object[]): this {
    const bytes = Buffer.from(lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return this.#follow(claude.decode(this.#state, { stream: 'out', at: this.at, bytes }))
  }

  message = (text: string) => this.#try(claude.message(this.#state, text))
  interrupt = () => this.#try(claude.interrupt(this.#state))
  decide = (id: string, allow: boolean, message = '') => this.#try(claude.decide(this.#state, id, { allow, message }))

  ends(code = 0): HarnessEvent[] {
    return claude.end(this.#state, exited(code))
  }

  told<T extends HarnessEvent['type']>(type: T) {
    return this.events.filter((event): event is Extract<HarnessEvent, { type: T }> => event.type === type)
  }

  #try(step: Step | undefined): boolean {
    if (step) this.#follow(step)
    return step !== undefined
  }

  #follow({ state, events, send = [], close }: Step): this {
    this.#state = JSON.parse(JSON.stringify(state))
    this.events.push(...events)
    this.sent.push(...send.map((line) => JSON.parse(line)))
    this.closed ||= close === true
    return this
  }
}

const uuidOfLast = (life: Life) => life.sent.at(-1)?.uuid as string

describe('claude: turns', () => {
  test('[H19] when a turn ends and nothing is on its way, the input ends; then nothing is taken any more', () => {
    const life = new Life().says(INIT, RESULT)
    expect(life.closed).toBe(true)
    expect([life.message('more'), life.interrupt(), life.decide('x', true)]).toEqual([false, false, false])
    expect(life.ends().at(-1)).toMatchObject({ type: 'exited', ok: true })
  })

  test.each([
    ['it comes by again', (uuid: string) => ({ type: 'user', uuid, isReplay: true, message: { content: 'x' } })],
    ['its turn has begun', (uuid: string) => ({ type: 'command_lifecycle', command_uuid: uuid, state: 'started' })],
    ['a result names it', undefined],
  ])('[H19] a message in the middle of a turn was taken when %s: one result ends both', (_, taken) => {
    const life = new Life().says(INIT)
    expect(life.message('use tabs')).toBe(true)
    const uuid = uuidOfLast(life)
    if (taken) life.says(taken(uuid), RESULT)
    else life.says({ ...RESULT, user_message_uuids: [uuid] })
    expect(life.closed).toBe(true)
    expect(life.told('turn_started')).toHaveLength(1)
    expect(life.told('text')).toEqual([{ type: 'text', from: 'person', text: 'use tabs' }])
  })

  test('[H19] a message that the result did not know yet keeps the input open until its own', () => {
    const life = new Life().says(INIT)
    life.message('one')
    life.says({ type: 'command_lifecycle', command_uuid: uuidOfLast(life), state: 'queued' }, RESULT)
    expect(life.closed).toBe(false)
    life.says(INIT, { type: 'user', uuid: uuidOfLast(life), isReplay: true, message: { content: 'one' } }, RESULT)
    expect(life.closed).toBe(true)
    expect(life.told('turn_ended')).toHaveLength(2)
  })

  test('[H19] what the program itself has in line keeps it open', () => {
    const life = new Life().says(INIT, { ...RESULT, queued_turn_count: 1 })
    expect(life.closed).toBe(false)
    expect(life.says(INIT, RESULT).closed).toBe(true)
  })

  test('[H19] interrupted, it waits; a second interrupt has nothing to end; with a message it goes on', () => {
    const life = new Life().says(INIT)
    expect(life.interrupt()).toBe(true)
    expect(life.sent.at(-1)).toMatchObject({ type: 'control_request', request: { subtype: 'interrupt' } })
    life.says({ ...RESULT, subtype: 'error_during_execution', is_error: true, terminal_reason: 'aborted_tools', errors: ['[ede] x'] })
    expect([life.closed, life.told('turn_ended'), life.told('failed')]).toEqual([false, [{ type: 'turn_ended', how: 'interrupted' }], []])
    expect(life.ends()).toEqual([{ type: 'exited', ok: false, reason: expect.any(String) }])
    expect(life.interrupt()).toBe(false)
    life.message('go on')
    life.says(INIT, { ...RESULT, user_message_uuids: [uuidOfLast(life)] })
    expect(life.closed).toBe(true)
    expect(life.ends().at(-1)).toMatchObject({ ok: true })
  })

  test('[H19] each message has a uuid of its own, in every life, and none is taken for a command of the program', () => {
    const lives = ['run_1', 'run_2'].map((run) => {
      const life = new Life({ run }).says(INIT)
      for (const text of ['/clear', '  /clear', 'all/of it']) life.message(text)
      return life
    })
    const sent = lives.flatMap((life) => life.sent as { uuid: string; message: { content: { text: string }[] } }[])
    expect(new Set(sent.map(({ uuid }) => uuid)).size).toBe(6)
    expect(sent.slice(0, 3).map(({ message }) => message.content[0]?.text)).toEqual(['Message: /clear', 'Message:   /clear', 'all/of it'])
    expect(lives[0]?.told('text').map(({ text }) => text)).toEqual(['/clear', '  /clear', 'all/of it'])
  })

  test('[H19] of messages that it does not take there is an end', () => {
    const life = new Life().says(INIT)
    const sent = Array.from({ length: 100 }, (_, i) => life.message(`${i}`)).filter(Boolean).length
    expect(sent).toBeLessThan(100)
    life.says({ ...RESULT, user_message_uuids: life.sent.map(({ uuid }) => uuid as string) })
    expect(life.closed).toBe(true)
  })

  test('[H19] a turn that begins by itself, after work in the background, is told too', () => {
    const life = new Life().says(INIT, RESULT, INIT, RESULT)
    expect(life.told('turn_started')).toHaveLength(2)
    expect(life.ends().map(({ type }) => type)).toEqual(['exited'])
  })
})

describe('claude: usage', () => {
  const answered = (model_usage: object) => ({
    type: 'control_response',
    response: { request_id: 'usage', response: { session: { model_usage } } },
  })
  const toolResult = { type: 'user', message: { content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] } }
  const toolCall = { type: 'assistant', message: { content: [{ type: 'tool_use', id: 't', name: 'Bash', input: {} }] } }
  const sums = (life: Life) =>
    life
      .told('usage')
      .map(({ input_tokens, output_tokens, cached_tokens, cost_usd }) => [input_tokens, output_tokens, cached_tokens, cost_usd])

  test('[H20] a result tells what came on top of the last one, over all models, and nothing when nothing did', () => {
    const life = new Life().says(INIT, {
      ...RESULT,
      queued_turn_count: 1,
      modelUsage: { ...models(100, 10, 1_000, 0.5), n: models(1, 2, 3, 0.25).m },
    })
    life.says(INIT, { ...RESULT, queued_turn_count: 1, modelUsage: models(101, 12, 1_003, 0.75) }, RESULT)
    life.says({ ...RESULT, modelUsage: models(201, 22, 2_003, 1) })
    expect(sums(life)).toEqual([
      [101, 12, 1_003, 0.75],
      [100, 10, 1_000, 0.25],
    ])
  })

  test('[H20] in the middle of a turn it is asked, not after every call', () => {
    const life = new Life().says(INIT, toolCall, toolResult, toolCall, toolResult)
    expect(life.sent).toEqual([{ type: 'control_request', request_id: 'usage', request: { subtype: 'get_usage', skip_behaviors: true } }])
    life.says(answered(models(100, 10, 0, 0.5)))
    life.at += 60_000
    life.says(toolCall, toolResult, answered(models(150, 20, 0, 0.75)), { ...RESULT, modelUsage: models(150, 20, 0, 0.75) })
    expect(life.sent).toHaveLength(2)
    expect(sums(life)).toEqual([
      [100, 10, 0, 0.5],
      [50, 10, 0, 0.25],
    ])
  })

  test.each([
    ['counts on', models(500, 50, 0, 2), models(600, 60, 0, 2.5)],
    ['begins anew', {}, models(100, 10, 0, 0.5)],
  ])('[H20] a resumed session that %s tells only what is new', (_, before, after) => {
    const life = new Life({ session: 'S' }).says(answered(before), INIT, { ...RESULT, modelUsage: after })
    expect(sums(life)).toEqual([[100, 10, 0, 0.5]])
  })

  test('[H20] where the beginning is not known, only what the result itself calls new is told', () => {
    const known = new Life({ session: 'S' })
    known.says(INIT, { ...RESULT, modelUsage: models(600, 60, 0, 2.5), model_usage_since_last_result: models(100, 10, 0, 0.5) })
    expect(sums(known)).toEqual([[100, 10, 0, 0.5]])
    const unknown = new Life({ session: 'S' }).says(INIT, { ...RESULT, modelUsage: models(600, 60, 0, 2.5) })
    expect(sums(unknown)).toEqual([])
  })

  test('[H20] a count that goes back is a new beginning', () => {
    const life = new Life().says(INIT, { ...RESULT, queued_turn_count: 1, modelUsage: models(100, 10, 0, 0.5) })
    life.says(answered(models(20, 2, 0, 0.125)), { ...RESULT, modelUsage: models(30, 3, 0, 0.25) })
    expect(sums(life).at(-1)).toEqual([10, 1, 0, 0.125])
  })
})

describe('claude: how it ends', () => {
  const failed = { ...RESULT, is_error: true, terminal_reason: 'api_error', result: 'API Error' }

  test('[H22] a success that is an error is a failure, even with exit code 0', () => {
    const life = new Life().says(INIT, { ...failed, api_error_status: 529 })
    expect(life.told('turn_ended')).toEqual([{ type: 'turn_ended', how: 'failed' }])
    expect(life.told('failed')).toEqual([{ type: 'failed', reason: 'API Error. The model is overloaded; later it may answer.' }])
    expect(life.closed).toBe(true)
    expect(life.ends()).toEqual([{ type: 'exited', ok: false, reason: 'exited with code 0, without having done its work' }])
  })

  test('[H22] a refused key says what to do about it', () => {
    const life = new Life().says(INIT, { ...failed, api_error_status: 401 })
    expect(life.told('failed')).toMatchObject([{ reason: expect.stringMatching(/claude.*ANTHROPIC_API_KEY/) }])
  })

  test('[H22] the end of a limit is what the provider said, or when it is asked again, or not known', () => {
    const limited = { ...failed, api_error_status: 429, result: "You've hit your limit" }
    const plan = { type: 'rate_limit_event', rate_limit_info: { status: 'rejected', resetsAt: 1_794_834_929 } }
    const retry = { type: 'system', subtype: 'api_retry', error_status: 429, retry_delay_ms: 2_000, attempt: 1, max_retries: 3 }
    const lives = [[plan], [retry], [], [plan, INIT], [{ ...plan, rate_limit_info: { status: 'allowed', resetsAt: 5 } }]]
    const told = lives.map((before) => new Life().says(INIT, ...before, limited).told('limit_reached')[0]?.resets_at)
    expect(told).toEqual([1_794_834_929_000, 1_002_000, null, null, null])
  })

  test('[H22] a limit is no failure besides', () => {
    const life = new Life().says(INIT, { ...failed, api_error_status: 429 })
    expect(life.told('failed')).toEqual([])
    expect(life.ends(1)).toEqual([{ type: 'exited', ok: false, reason: 'exited with code 1' }])
  })

  test('[H22] without a result nothing was done well, whatever the exit code', () => {
    expect(new Life().ends()).toMatchObject([{ type: 'failed' }, { type: 'exited', ok: false }])
    expect(new Life().says(INIT).ends()).toMatchObject([{ type: 'turn_ended', how: 'failed' }, { type: 'failed' }, { ok: false }])
  })

  test('[H21] [H22] a start that failed says why, and keeps its session', () => {
    const life = new Life({ session: 'S' })
    life.says({
      ...failed,
      subtype: 'error_during_execution',
      result: undefined,
      errors: ['The proxy is not valid'],
      startup_failure_reason: 'x',
    })
    expect(life.events).toEqual([{ type: 'failed', reason: 'The proxy is not valid.' }])
  })

  test('[H21] a session that it does not know is given up', () => {
    const life = new Life({ session: 'S-77' })
    life.says({ ...failed, subtype: 'error_during_execution', result: undefined, errors: ['No conversation found with session ID: S-77'] })
    expect(life.events).toEqual([
      { type: 'ready', session: null },
      { type: 'failed', reason: 'No conversation found with session ID: S-77. It goes on in a new session.' },
    ])
  })

  test('[H22] a result too long to be read still ends its call', () => {
    const life = new Life().says(INIT, {
      type: 'assistant',
      message: { content: [{ type: 'tool_use', id: 'toolu_7', name: 'Read', input: {} }] },
    })
    life.says({ type: 'user', message: { role: 'user', content: [{ tool_use_id: 'toolu_7', type: 'tool_result', content: big }] } })
    expect(life.told('tool_result')).toEqual([{ type: 'tool_result', id: 'toolu_7', ok: true, output: '(too long to be shown)' }])
  })
})

describe('claude: permission', () => {
  const ask = (id: string, input: object = { command: 'ls' }) => ({
    type: 'control_request',
    request_id: id,
    request: { subtype: 'can_use_tool', tool_name: 'Bash', input, tool_use_id: 't' },
  })

  test('[H24] what it asks for is told once, and answered once with its input as it was', () => {
    const input = { command: 'echo "\u001b[31m"', nested: [{ a: null }] }
    const life = new Life({ approvals: 'ask' }).says(INIT, ask('r1', input), ask('r1', input))
    expect(life.told('approval_asked')).toEqual([{ type: 'approval_asked', id: 'r1', name: 'Bash', input: JSON.stringify(input) }])
    expect(['r1', 'r1', 'r2', 'toString'].map((id) => life.decide(id, true))).toEqual([true, false, false, false])
    expect(life.sent).toEqual([
      {
        type: 'control_response',
        response: { subtype: 'success', request_id: 'r1', response: { behavior: 'allow', updatedInput: input } },
      },
    ])
  })

  test('[H40] what it asks for is told whole, also what a terminal would not show', () => {
    const life = new Life({ approvals: 'ask' }).says(INIT, ask('r1', { command: 'ls #\u009d0;\u202e\nrm x' }))
    expect(life.told('approval_asked')[0]?.input).toBe('{"command":"ls #⟨U+009D⟩0;⟨U+202E⟩\\nrm x"}')
  })

  test('[H24] a refusal has its reason', () => {
    const life = new Life().says(INIT, ask('r1'), ask('r2'))
    life.decide('r2', false, 'not today')
    life.decide('r1', false)
    const answers = life.sent.map((line) => (line.response as { response: object }).response)
    expect(answers).toEqual([
      { behavior: 'deny', message: 'not today' },
      { behavior: 'deny', message: expect.stringMatching(/\S/) },
    ])
  })

  test('[H24] what is withdrawn, or was asked in a turn that is over, cannot be answered', () => {
    const life = new Life().says(INIT, ask('r1'), ask('r2'), { type: 'control_cancel_request', request_id: 'r1' })
    expect(life.decide('r1', true)).toBe(false)
    // Whoever was asked hears of it now, not at the end of the turn.
    expect(life.told('tool_result')).toMatchObject([{ id: 'r1', ok: false }])
    life.says({ type: 'control_cancel_request', request_id: 'r1' }, { type: 'control_cancel_request', request_id: 'nobody' })
    expect(life.told('tool_result')).toHaveLength(1)
    life.says({ ...RESULT, terminal_reason: 'aborted_tools' })
    expect(life.decide('r2', true)).toBe(false)
  })

  test('[H24] an input that is too long to keep is granted without being repeated', () => {
    const life = new Life().says(INIT, ask('r1', { content: 'x'.repeat(100_000) }))
    life.decide('r1', true)
    expect(life.sent.at(-1)).toMatchObject({ response: { response: { behavior: 'allow' } } })
    expect(JSON.stringify(life.sent)).not.toContain('xxx')
  })

  test('[H24] what is too long to be read is refused with the reason, and does not wait for ever', () => {
    const life = new Life({ approvals: 'ask' }).says(INIT, ask('r1', { content: big }))
    expect(life.sent).toEqual([
      {
        type: 'control_response',
        response: { subtype: 'success', request_id: 'r1', response: { behavior: 'deny', message: expect.stringContaining('too long') } },
      },
    ])
    expect(life.told('text')).toMatchObject([{ from: 'program', text: expect.stringMatching(/asked permission .* 15\d{5} bytes/) }])
  })

  test('[H24] a result that repeats what was refused, at any length, still ends the turn', () => {
    const { type, ...rest } = RESULT
    const denied = { permission_denials: [{ tool_name: 'Write', tool_input: { content: big } }] }
    const life = new Life({ approvals: 'ask' }).says(INIT, {
      stop_reason: 'end_turn',
      modelUsage: models(7, 1, 0, 0),
      ...denied,
      ...rest,
      type,
    })
    expect(life.closed).toBe(true)
    expect(life.told('usage')).toMatchObject([{ input_tokens: 7 }])
    expect(life.told('turn_ended')).toEqual([{ type: 'turn_ended', how: 'completed' }])
    const other = new Life().says(INIT, { type: 'assistant', message: { permission_denials: [big] } })
    expect(other.told('turn_ended')).toEqual([])
    const failed = new Life().says(INIT, { stop_reason: null, ...denied, ...rest, type })
    expect(failed.told('turn_ended')).toEqual([{ type: 'turn_ended', how: 'failed' }])
  })

  test('[H24] of very many questions at once the rest is refused: none waits for an answer that cannot come', () => {
    const life = new Life().says(INIT, ...Array.from({ length: 100 }, (_, i) => ask(`r${i}`)))
    const asked = life.told('approval_asked').length
    expect(asked).toBe(50)
    expect(life.sent).toHaveLength(100 - asked)
    expect(life.sent[0]).toMatchObject({ response: { request_id: `r${asked}`, response: { behavior: 'deny' } } })
    expect(life.decide('r0', true)).toBe(true)
  })

  test('[H24] a question that nobody here can answer is refused, so that it does not wait for ever', () => {
    const life = new Life().says(INIT, { type: 'control_request', request_id: 'd1', request: { subtype: 'request_user_dialog' } })
    expect(life.sent).toEqual([{ type: 'control_response', response: { subtype: 'error', request_id: 'd1', error: expect.any(String) } }])
    expect(life.events.slice(2)).toEqual([])
  })

  test('[H24] nothing is sent after the end of the input', () => {
    const life = new Life().says(INIT, RESULT)
    life.says(INIT, { type: 'control_request', request_id: 'd1', request: { subtype: 'elicitation' } })
    life.says(...Array.from({ length: 100 }, (_, i) => ask(`r${i}`)))
    expect([life.sent, life.decide('r0', true)]).toEqual([[], false])
  })

  test('[H23] what it was not allowed to use is told', () => {
    const life = new Life().says(INIT, {
      ...RESULT,
      permission_denials: [{ tool_name: 'Bash' }, { tool_name: 'Write' }, { tool_name: 'Bash' }],
    })
    expect(life.told('text')).toEqual([{ type: 'text', from: 'program', text: 'It was not allowed to use: Bash, Write.' }])
  })
})

describe('claude: the launch', () => {
  const own = { ...process.env }
  afterEach(() => {
    process.env.PATH = own.PATH
  })
  const flag = (argv: string[], name: string) => (argv.includes(name) ? argv[argv.indexOf(name) + 1] : undefined)
  const plan = (scene: Partial<Scene>, uid = 1_000) => planOf(launchOf({ options: {}, ...scene }), uid)

  test('[H23] the policy is in its arguments', () => {
    const facts = (approvals: Approvals) => {
      const { argv } = plan({ approvals })
      return [
        argv.includes('--dangerously-skip-permissions'),
        ...['--permission-mode', '--permission-prompt-tool', '--allowedTools', '--setting-sources'].map((name) => flag(argv, name)),
      ]
    }
    expect(facts('allow')).toEqual([true, undefined, undefined, undefined, undefined])
    expect(facts('ask')).toEqual([false, 'default', 'stdio', 'mcp__signalbox', 'user'])
    expect(facts('deny')).toEqual([false, 'dontAsk', undefined, 'mcp__signalbox,Edit(./**)', 'user'])
  })

  test('[H23] only root says that it is in a sandbox, and only where it has to', () => {
    expect(plan({ approvals: 'allow' }, 0).env.IS_SANDBOX).toBe('1')
    for (const [approvals, uid] of [
      ['allow', 1_000],
      ['ask', 0],
      ['deny', 0],
    ] as const)
      expect(plan({ approvals }, uid).env).not.toHaveProperty('IS_SANDBOX')
  })

  test('[H23] the token is in its environment alone: the file names the variable', () => {
    const { argv, env, files, stdin } = plan({ token: 'sbx_secret', url: 'http://127.0.0.1:7/mcp' })
    expect(env.SIGNALBOX_TOKEN).toBe('sbx_secret')
    expect(JSON.stringify([argv, files, stdin])).not.toContain('sbx_secret')
    const [[name, text]] = Object.entries(files) as [[string, string]]
    expect(flag(argv, '--mcp-config')?.endsWith(`/${name}`)).toBe(true)
    expect(argv).toContain('--strict-mcp-config')
    expect(JSON.parse(text).mcpServers.signalbox).toMatchObject({
      type: 'http',
      url: 'http://127.0.0.1:7/mcp',
      headers: { Authorization: ['Bearer $', '{SIGNALBOX_TOKEN}'].join('') },
    })
  })

  test('[H21] a first life names its session, by its run; a later one resumes', () => {
    const id = flag(plan({ run: 'run_1' }).argv, '--session-id')
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(flag(plan({ run: 'run_1' }).argv, '--session-id')).toBe(id)
    expect(flag(plan({ run: 'run_2' }).argv, '--session-id')).not.toBe(id)
    const later = plan({ run: 'run_2', session: 'S-77' })
    expect([flag(later.argv, '--resume'), flag(later.argv, '--session-id')]).toEqual(['S-77', undefined])
  })

  test('[H19] the brief is its first message, and its input stays open', () => {
    const { stdin, argv } = plan({ brief: '/mend\nthe log-in', model: 'opus' })
    expect(stdin).toMatchObject({ open: true })
    const [line, rest] = (stdin as { text: string }).text.split('\n')
    expect(JSON.parse(line as string)).toMatchObject({ type: 'user', message: { content: [{ text: 'Message: /mend\nthe log-in' }] } })
    expect(rest).toBe('')
    expect(argv).toContain('--model=opus')
  })

  test('[H20] a later life asks first what was counted before', () => {
    const lines = (plan({ session: 'S', brief: 'go on' }).stdin as { text: string }).text.trim().split('\n')
    expect(lines.map((line) => JSON.parse(line).type)).toEqual(['control_request', 'user'])
  })

  test('[H10] the program itself is started, not what npm puts around it; one that is too old is not taken', async () => {
    const folder = temporaryFolder()
    const modules = join(folder, 'node_modules')
    const packaged = join(modules, '@anthropic-ai/claude-code')
    const native = join(modules, `@anthropic-ai/claude-code-${process.platform}-${process.arch}`)
    for (const place of [join(packaged, 'bin'), native, join(modules, '.bin')]) mkdirSync(place, { recursive: true })
    const version = (is: string) =>
      writeFileSync(join(packaged, 'package.json'), JSON.stringify({ name: '@anthropic-ai/claude-code', version: is }))
    version('2.1.325')
    for (const file of [join(packaged, 'bin/claude.exe'), join(native, 'claude')]) {
      writeFileSync(file, '#!/bin/sh\n')
      chmodSync(file, 0o755)
    }
    symlinkSync(join(packaged, 'bin/claude.exe'), join(modules, '.bin/claude'))
    process.env.PATH = join(modules, '.bin')
    expect(plan({}).argv[0]).toBe(join(native, 'claude'))
    expect(await claude.probe()).toEqual({ found: true, version: '2.1.325' })
    version('2.0.9')
    expect(await claude.probe()).toMatchObject({
      found: false,
      why: expect.stringContaining('too old'),
      install: expect.stringContaining('npm i -g'),
    })
    process.env.PATH = join(folder, 'nothing')
    expect(await claude.probe()).toMatchObject({ found: false, why: expect.stringContaining('PATH') })
    expect(plan({}).argv[0]).toBe('claude')
  })

  test('[H1] that our tools are missing is told once', () => {
    const without = { ...INIT, mcp_servers: [{ name: 'signalbox', status: 'failed' }] }
    const life = new Life().says(without, { ...RESULT, queued_turn_count: 1 }, without, RESULT)
    expect(life.told('text')).toEqual([{ type: 'text', from: 'error', text: expect.stringContaining('without the tools of Signalbox') }])
  })
})
