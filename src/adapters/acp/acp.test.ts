import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type * as official from '@agentclientprotocol/sdk'
import { afterEach, describe, expect, expectTypeOf, test, vi } from 'vitest'
import type { z } from 'zod'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessEvent, HarnessState } from '../../ports/harness.ts'
import { Driven, launchOf, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { acp } from './harness.ts'
import { begin, feed } from './literal.ts'
import type { Asked, Initialized, Opened, Prompted, Update, Updated } from './protocol.ts'
import type { State } from './state.ts'

afterEach(() => vi.unstubAllEnvs())

const AGENT = join(import.meta.dirname, 'agent.mjs')

const example = (brief: string, can: object = {}, more: Partial<Scene> = {}): Scene => ({
  options: { command: [process.execPath, AGENT, JSON.stringify(can)] },
  brief,
  ...more,
})

harnessContract({
  harness: acp,
  scene: () => example('do talk'),
  program: {
    endsWell: () => example('do talk'),
    fails: () => example('do die'),
    stays: () => example('do stay'),
    listens: () => example('do pause'),
    asks: () => example('do permit'),
  },
  goesOn: 'SIGUSR2',
  hostileLines: [
    '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":7,"authMethods":[null,{"name":5}]}}',
    '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"availableModes":[{"id":"default"},4]},"configOptions":"none"}}',
    '{"jsonrpc":"2.0","id":3,"result":null}',
    update({ sessionUpdate: 'tool_call', toolCallId: 'held-%', title: 'x', status: 'pending', rawInput: { a: '%' } }),
    update({ sessionUpdate: 'tool_call', toolCallId: 'open-%', title: '\u001b[31m%', status: 'in_progress' }),
    update({ sessionUpdate: 'tool_call_update', toolCallId: 'open-%', status: 'completed', rawOutput: '\ud800%' }),
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '\u0000% '.repeat(30) } }),
    update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'z'.repeat(90_000) } }),
    update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'image', data: 'AAAA' }, messageId: 7 }),
    update({ sessionUpdate: 'tool_call', toolCallId: 'i'.repeat(5_000), title: 't'.repeat(90_000), content: [null, { type: 'diff' }] }),
    update({ sessionUpdate: 'nobody_knows' }),
    asking(100, 'asked-%', []),
    '{"jsonrpc":"2.0","id":"question-%","method":"session/request_permission","params":{"toolCall":{"toolCallId":"q-%"},"options":[null]}}',
    '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{}}',
    '{"jsonrpc":"2.0","id":5,"method":"fs/write_text_file","params":{"path":"/etc/passwd"}}',
    // Long, so that the turn goes on while the others are told over and over.
    `{"jsonrpc":"2.0","id":4,"error":{"code":1e300,"message":"","data":{"retryAfter":-1,"more":"${'m'.repeat(2_000)}"}}}`,
    '{"jsonrpc":"2.0","method":"session/update"}',
    '{"jsonrpc":"2.0","id":{},"result":1}',
  ],
})

function update(update: object): string {
  return JSON.stringify({ jsonrpc: '2.0', method: 'session/update', params: { sessionId: 's', update } })
}

function asking(id: number, toolCallId: string, options: object[], more: object = {}): string {
  const params = { sessionId: 's', toolCall: { toolCallId, title: 'rm -rf /', ...more }, options }
  return JSON.stringify({ jsonrpc: '2.0', id, method: 'session/request_permission', params })
}

const of = <T extends HarnessEvent['type']>(events: HarnessEvent[], type: T) =>
  events.filter((event): event is Extract<HarnessEvent, { type: T }> => event.type === type)
const said = (events: HarnessEvent[], from = 'agent') => of(events, 'text').flatMap((event) => (event.from === from ? [event.text] : []))

describe('acp with an agent on the official SDK', () => {
  test('[H30] words are told together, thoughts apart, and a plan not at all', async () => {
    const { events } = await new Driven(acp, example('do talk')).ended
    expect(of(events, 'text').map(({ from, text }) => [from, text])).toEqual([
      ['thought', 'Hm, Zürich.'],
      ['agent', 'Zürich → 🚂\nand back'],
      ['agent', 'done'],
    ])
    expect(of(events, 'tool_result').map(({ ok, output }) => [ok, output])).toEqual([
      [true, 'grün'],
      [false, '{"code":2}'],
    ])
    expect(events.map(({ type }) => type).filter((type) => !/text|tool/.test(type))).toEqual([
      'ready',
      'turn_started',
      'turn_ended',
      'exited',
    ])
  })

  test('[H30] a call is told once, when its input is known, and none stays without a result', async () => {
    const { events } = await new Driven(acp, example('do announce')).ended
    expect(events.filter(({ type }) => type.startsWith('tool_'))).toEqual([
      { type: 'tool_call', id: 'announced', name: 'bash', input: '{"command":"ls"}' },
      { type: 'tool_result', id: 'announced', ok: true, output: 'a.txt' },
      { type: 'tool_call', id: 'forgotten', name: 'never told again', input: 'never told again' },
      { type: 'tool_result', id: 'forgotten', ok: false, output: expect.stringContaining('without a result') },
    ])
  })

  test('[H31] what is said in mid-turn is the next turn, all of it together; the program ends after that', async () => {
    const life = new Driven(acp, example('do pause'))
    await life.saw('tool_call')
    life.message('to the left')
    life.message('and slowly')
    life.kill('SIGUSR2')
    const { events } = await life.ended
    expect(said(events)).toEqual(['READY', 'heard: to the left\nand slowly'])
    expect(said(events, 'person')).toEqual(['to the left', 'and slowly'])
    expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['completed', 'completed'])
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test.each([false, true])(
    '[H31] an interrupted one waits for a message, and goes on with it (its answer is wrong: %s)',
    async (forgetsCancel) => {
      const life = new Driven(acp, example('do stay', { forgetsCancel }))
      await life.saw('tool_call')
      life.interrupt()
      await life.saw('turn_ended')
      expect(() => life.interrupt()).toThrow('no interrupt')
      life.message('the other way')
      const { events } = await life.ended
      expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['interrupted', 'completed'])
      expect(said(events).at(-1)).toBe('heard: the other way')
      expect(() => life.message('too late')).toThrow('no message')
    },
  )

  test.each([
    ['resumed', { resume: true }],
    ['loaded, without its history', { load: 'earlier' }],
  ])('[H32] an earlier session is %s', async (_, can) => {
    const { events } = await new Driven(acp, example('go on', can, { session: 'earlier' })).ended
    expect(of(events, 'ready')).toEqual([{ type: 'ready', session: 'earlier' }])
    expect(said(events)).toEqual(['heard: go on'])
    expect(of(events, 'tool_call')).toEqual([])
  })

  test.each([
    ['is gone', { load: 'another' }, 'No previous sessions'],
    ['cannot be taken up by this program', {}, 'cannot take up'],
  ])('[H32] one that %s begins anew with the brief, and that is said', async (_, can, why) => {
    const { events } = await new Driven(acp, example('all of it', can, { session: 'earlier' })).ended
    expect(of(events, 'ready')).toEqual([{ type: 'ready', session: 'session-1' }])
    expect(said(events, 'program')).toEqual([expect.stringContaining(why)])
    expect(said(events)).toEqual(['heard: all of it'])
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test.each([
    ['allow', ['default', 'plan', 'yolo'], 'yolo'],
    ['allow', ['default', 'bypassPermissions'], 'bypassPermissions'],
    ['ask', ['yolo', 'default'], 'default'],
    ['deny', ['default', 'acceptEdits', 'yolo'], 'acceptEdits'],
    ['allow', ['slow', 'quick'], undefined],
  ] as const)('[H33] %s, of the modes %j it takes %s', async (approvals, modes, mode) => {
    const { events } = await new Driven(acp, example('hello', { modes }, { approvals })).ended
    expect(said(events, 'error')).toEqual(mode ? [`mode ${mode}`] : [])
  })

  test('[H33] a mode that is refused is said, and the work is done all the same', async () => {
    const { events } = await new Driven(acp, example('hello', { modes: ['yolo'], refusesModes: true })).ended
    expect(said(events, 'program')).toEqual([expect.stringContaining('not as root')])
    expect(said(events)).toEqual(['heard: hello'])
  })

  test.each([
    ['allow', 'the-allow_once', true],
    ['deny', 'the-reject_once', false],
  ] as const)('[H33] %s: what it asks all the same is answered at once', async (approvals, answer, ok) => {
    const { events } = await new Driven(acp, example('do permit', {}, { approvals })).ended
    expect(of(events, 'approval_asked')).toEqual([])
    expect(of(events, 'tool_result')).toMatchObject([{ ok, output: answer }])
    expect(said(events)).toEqual([`it was ${answer}`])
  })

  test.each([
    ['claude', { name: 'mcp__signalbox__task_note', title: 'x', kind: 'other' }],
    ['codex', { rawInput: { server: 'signalbox', tool: 'task_note' }, _meta: { is_mcp_tool_call: true } }],
  ])('[H33] our own tools need nobody to ask, as %s calls them', async (_, call) => {
    const { events } = await new Driven(acp, example(`do permit ${JSON.stringify(call)}`, {}, { approvals: 'deny' })).ended
    expect(of(events, 'tool_result')).toMatchObject([{ ok: true }])
  })

  test.each([
    { title: 'mcp__signalbox__task_note' },
    { name: 'evil_mcp__signalbox__x' },
    { rawInput: { server: 'signalbox' } },
    { toolCallId: 'mcp_signalbox_x' },
  ])('[H33] what only looks like one of them, %j, is asked for', async (call) => {
    const { events } = await new Driven(acp, example(`do permit ${JSON.stringify(call)}`, {}, { approvals: 'deny' })).ended
    expect(said(events)).toEqual(['it was the-reject_once'])
  })

  test('[H33] a refusal with its reason: the reason is what it hears next', async () => {
    const life = new Driven(acp, example('do permit', {}, { approvals: 'ask' }))
    const { id, name } = await life.saw('approval_asked')
    expect(name).toBe('rm -rf build')
    life.decide(id, { allow: false, message: 'build is needed' })
    expect(() => life.decide(id, { allow: true, message: '' })).toThrow('does not ask')
    const { events } = await life.ended
    expect(said(events)).toEqual(['it was the-reject_once', 'heard: Your rm -rf build was refused: build is needed'])
  })

  test('[H33] an interrupt withdraws what it asked', async () => {
    const life = new Driven(acp, example('do permit', {}, { approvals: 'ask' }))
    const { id } = await life.saw('approval_asked')
    life.interrupt()
    expect(() => life.decide(id, { allow: true, message: '' })).toThrow('does not ask')
    await life.saw('turn_ended', ({ how }) => how === 'interrupted')
    life.closeInput()
    const { events } = await life.ended
    expect(said(events)).toEqual(['it was cancelled'])
  })

  test('[H33] one that stops when it is refused has not done its work; nobody is waited for', async () => {
    const { events } = await new Driven(acp, example('do permit', { stopsWhenRefused: true }, { approvals: 'deny' })).ended
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringContaining('was refused') }])
    expect(events.at(-1)).toMatchObject({ ok: false })
  })

  test('[H34] files and terminals of an editor are refused, and nothing hangs', async () => {
    const { events } = await new Driven(acp, example('do fs')).ended
    expect(said(events)).toEqual(['-32601 -32601'])
  })

  test.each([
    ['a login', { needsLogin: true }, /not logged in.*example login/],
    ['another version', { version: 2 }, /speaks version 2.*version 1/],
  ])('[H35] %s: it says what is missing', async (_, can, reason) => {
    const { events, exit } = await new Driven(acp, example('hello', can)).ended
    expect(exit).toMatchObject({ code: 0 })
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringMatching(reason) }])
    expect(of(events, 'turn_started')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  const error = (code: number, message: string, data?: unknown) => `do err ${JSON.stringify({ code, message, data })}`
  test.each([
    ['gemini', error(429, 'quota will reset after 3h22m10s'), 12_130_000],
    ['claude', error(-32_603, 'Internal error: API Error: Request rejected (429)', { errorKind: 'rate_limit' }), null],
    ['words', error(-32_603, 'Too Many Requests, please retry in 34.5s'), 34_500],
    ['a field', error(-32_603, 'slow down', { status: 429, retryAfter: 60 }), 60_000],
    ['codex', 'do codexLimit', null],
    [
      'a plan of codex',
      error(-32_603, 'Internal error', { message: 'Try again at 12:38 PM.', codexErrorInfo: 'usageLimitExceeded' }),
      null,
    ],
  ])('[H35] a limit as %s tells it, with its end where that is told', async (_, brief, wait) => {
    const { events, frames } = await new Driven(acp, example(brief)).ended
    const [limit, ...more] = of(events, 'limit_reached')
    expect(more).toEqual([])
    // From when it was heard on.
    expect(frames.map(({ at }) => (wait === null ? null : at + wait))).toContain(limit?.resets_at)
    expect(of(events, 'turn_ended')).toEqual([{ type: 'turn_ended', how: 'failed' }])
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test.each([
    ['an error', error(-32_603, 'Internal error', { details: 'the cat ate it' }), 'Internal error: the cat ate it'],
    ["the provider's JSON", error(400, '{"error":{"code":400,"message":"no such model, quota or not"}}'), 'no such model, quota or not'],
    ['a login', error(-32_000, 'Authentication required'), expect.stringMatching(/not logged in.*terminal/)],
    ['a refusal', 'do stop refusal', 'the model refused to go on'],
    ['too long an answer', 'do stop max_tokens', expect.stringContaining('cut off')],
    ['a turn that it gave up by itself', 'do stop cancelled', expect.stringContaining('by itself')],
  ])('[H35] %s is a failure in words, also of a program that exits well', async (_, brief, reason) => {
    const { events, exit } = await new Driven(acp, example(brief)).ended
    expect(exit).toMatchObject({ reason: 'exited', code: 0 })
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason }])
    expect(of(events, 'turn_ended')).toEqual([{ type: 'turn_ended', how: 'failed' }])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H35] one that leaves in the middle of its work has not done it, whatever its exit code', () => {
    const { state } = acp.launch(launchOf(example('hello')))
    const told = acp.end(state as HarnessState, { reason: 'exited', code: 0, signal: null, detail: '', at: 1 })
    expect(told).toMatchObject([
      { type: 'failed', reason: expect.stringContaining('before it had begun') },
      { type: 'exited', ok: false },
    ])
  })

  test('[H36] a model is chosen, or nothing is begun', async () => {
    const chosen = await new Driven(acp, example('hello', { model: 'large' }, { model: 'large' })).ended
    expect(said(chosen.events, 'error')).toEqual(['model large'])
    expect(chosen.events.at(-1)).toMatchObject({ ok: true })
    const { events } = await new Driven(acp, example('hello', { model: 'large' }, { model: 'huge' })).ended
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringMatching(/huge could not be chosen.*it has large/) }])
    expect(of(events, 'turn_started')).toEqual([])
  })
})

describe('what is asked', () => {
  const working = (approvals: 'ask' | 'deny' = 'ask') =>
    feed(acp, begin(acp, { ...example('go'), approvals }), { id: 1, result: { protocolVersion: 1 } }, { id: 2, result: { sessionId: 's' } })
      .state

  test.each([
    ['in front', (params: object) => ({ id: 7, method: 'session/request_permission', params })],
    ['behind', (params: object) => ({ method: 'session/request_permission', id: 7, params })],
  ])('[H33] what is too long to be read is refused with the reason, and does not wait for ever (its number stands %s)', (_, message) => {
    const toolCall = { toolCallId: 'c', rawInput: { content: 'x'.repeat(1_200_000) } }
    const { events, sent, state } = feed(acp, working(), message({ sessionId: 's', toolCall, options: [] }))
    expect(sent).toEqual([{ jsonrpc: '2.0', id: 7, error: { code: -32602, message: expect.stringContaining('too long') } }])
    expect(events).toEqual([{ type: 'text', from: 'program', text: expect.stringMatching(/for something of 12\d{5} bytes/) }])
    // What belongs to nobody's question is told in short, as before.
    const update = { sessionId: 's', update: { sessionUpdate: 'tool_call', ...toolCall } }
    expect(feed(acp, state, { method: 'session/update', params: update })).toMatchObject({ sent: [], events: [{ type: 'text' }] })
  })

  test('[H33] fifty questions wait at a time, and the others are refused', () => {
    const options = [{ optionId: 'no', kind: 'reject_once' }]
    const all = Array.from({ length: 60 }, (_, i) => ({
      id: i,
      method: 'session/request_permission',
      params: { sessionId: 's', toolCall: { toolCallId: `c${i}`, title: 'ls' }, options },
    }))
    const { events, sent } = feed(acp, working(), ...all)
    expect(of(events, 'approval_asked')).toHaveLength(50)
    expect(sent).toHaveLength(10)
  })
})

describe('what is started', () => {
  test.each([
    ['claude-agent-acp', 'npm i -g @agentclientprotocol/claude-agent-acp'],
    ['codex-acp', 'npm i -g @agentclientprotocol/codex-acp'],
    ['/nowhere/my-agent', 'its whole path'],
    ['my-agent', 'its whole path'],
  ])('[H10] that %s is not there is said before the start, with what to do about it', async (program, install) => {
    vi.stubEnv('PATH', temporaryFolder())
    const found = await acp.probe({ command: [program, '--acp'] })
    expect(found).toEqual({ found: false, why: expect.stringContaining(`"${program}"`), install: expect.stringContaining(install) })
    expect(JSON.stringify(found)).not.toContain(process.env.PATH)
    expect(await acp.probe({ command: [process.execPath] })).toMatchObject({ found: true })
    // Below the worktree, which is not there yet; and nobody has said yet which one.
    expect(await acp.probe({ command: ['./tools/agent'] })).toMatchObject({ found: true })
    expect(await acp.probe()).toMatchObject({ found: true })
  })

  test('[H41] with ask and deny, Claude Code is told to leave the settings of the repository alone, in every life', () => {
    const opening = (approvals: 'allow' | 'ask' | 'deny', session: string | null = null) => {
      const agentCapabilities = { loadSession: true }
      const { sent } = feed(acp, begin(acp, { ...example('go'), approvals, session }), {
        id: 1,
        result: { protocolVersion: 1, agentCapabilities },
      })
      const { method, params } = sent[0] as { method: string; params: { _meta?: unknown } }
      return [method, params._meta]
    }
    const meta = { claudeCode: { options: { settingSources: ['user'], strictMcpConfig: true } } }
    expect(opening('allow')).toEqual(['session/new', undefined])
    expect(opening('ask')).toEqual(['session/new', meta])
    expect(opening('deny', 'earlier')).toEqual(['session/load', meta])
  })

  test.each([
    [['codex-acp'], '.codex'],
    [['npx', '@agentclientprotocol/codex-acp@2'], '.codex'],
    [['gemini', '--acp'], '.gemini/settings.json'],
    [['/opt/bin/opencode', 'acp'], 'opencode.json'],
  ])('[H41] %j is not started beside a file that it would obey unasked, which is named', (command, file) => {
    const cwd = temporaryFolder()
    const start = (approvals: 'allow' | 'ask' | 'deny', program = command) =>
      acp.launch(launchOf({ options: { command: program }, cwd, approvals }))
    expect(() => start('deny')).not.toThrow()
    mkdirSync(join(cwd, file), { recursive: true })
    expect(() => start('ask')).toThrow(file)
    expect(() => start('deny')).toThrow(file)
    expect(() => start('allow')).not.toThrow()
    expect(() => start('ask', ['another'])).not.toThrow()
  })

  test('[H37] our tools are a program of ours with the token by file: it is in nothing that is sent', () => {
    const launch = launchOf({ ...example('hello', {}, { approvals: 'ask' }), token: 'sbx_secret' })
    const { stdin, state, env } = acp.launch(launch)
    expect(JSON.stringify([stdin, state, env])).not.toContain('sbx_secret')
    const { servers } = (state as State).wishes
    expect(servers).toMatchObject([
      { name: 'signalbox', command: process.execPath, args: [expect.stringMatching(/bin\/signalbox\.js$/), 'mcp'] },
    ])
    expect(servers[0]?.env).toEqual(
      expect.arrayContaining([
        { name: 'SIGNALBOX_TOKEN_FILE', value: launch.mcp.tokenFile },
        { name: 'SIGNALBOX_RUN', value: 'run_test' },
      ]),
    )
  })

  test.each([
    ['nothing', {}],
    ['no program', { command: [] }],
    ['a line for a shell', { command: 'rm -rf /' }],
    ['a NUL', { command: ['sh', 'a\0b'] }],
  ])('[H10] %s is no command', (_, options) => {
    expect(acp.options.safeParse(options).success).toBe(false)
  })
})

test('[H38] whatever the official types allow is read: the compiler holds them against ours', () => {
  expectTypeOf<official.InitializeResponse>().toExtend<z.input<typeof Initialized>>()
  expectTypeOf<official.NewSessionResponse>().toExtend<z.input<typeof Opened>>()
  expectTypeOf<official.LoadSessionResponse>().toExtend<z.input<typeof Opened>>()
  expectTypeOf<official.PromptResponse>().toExtend<z.input<typeof Prompted>>()
  expectTypeOf<official.SessionNotification>().toExtend<z.input<typeof Updated>>()
  expectTypeOf<Read<official.SessionUpdate>>().toExtend<z.input<typeof Update>>()
  expectTypeOf<official.RequestPermissionRequest>().toExtend<z.input<typeof Asked>>()
})

/** Those of the updates that are told. */
type Read<T> = Extract<T, { sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' | 'tool_call' | 'tool_call_update' }>
