import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { Approvals, HarnessEvent, HarnessState, Step } from '../../ports/harness.ts'
import type { Exit } from '../../ports/runner.ts'
import { launchOf, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { loadTape } from '../../testing/tapes.ts'
import { codex } from './harness.ts'

const tape = (name: string) => loadTape(codex, join(import.meta.dirname, 'tapes', `${name}.json`))
const line = (message: object) => JSON.stringify(message)
const notice = (method: string, params: object) => line({ method, params })
const item = (when: 'started' | 'completed', fields: object) => notice(`item/${when}`, { threadId: 'T', turnId: 'turn', item: fields })

beforeEach(() => {
  vi.stubEnv('CODEX_HOME', temporaryFolder())
  return () => vi.unstubAllEnvs()
})

const OPENED = [line({ id: 1, result: {} }), line({ id: 2, result: { thread: { id: 'T' } } })]
const STARTED = notice('turn/started', { threadId: 'T', turn: { id: 'turn' } })
const ended = (status: string, error: object | null = null) =>
  notice('turn/completed', { threadId: 'T', turn: { id: 'turn', status, error } })
const asksFor = (method: string, params: object, id: string | number = 0) => line({ method, id, params: { threadId: 'T', ...params } })

harnessContract({
  harness: codex,
  scene: () => ({ options: {} }),
  program: { endsWell: tape('endsWell'), fails: tape('fails') },
  hostileLines: [
    ...OPENED,
    STARTED,
    line({ id: 3, result: null }),
    line({ id: '3', error: { code: 1, message: '\u001b[31m\u0000' } }),
    ended('completed'),
    ended('interrupted'),
    ended('failed', { message: { not: 'a text' }, codexErrorInfo: { __proto__: 1, httpConnectionFailed: 7 } }),
    ended('failed', { message: '{"error":{"message":"\\u0007"}}', codexErrorInfo: 'usageLimitExceeded' }),
    notice('turn/completed', {}),
    notice('turn/started', { turn: { id: 'x'.repeat(300) } }),
    item('started', { type: 'commandExecution', id: 'call-%', command: 7 }),
    item('completed', { type: 'commandExecution', id: 'call-%', aggregatedOutput: '\u001b]52;c;%\u0007', exitCode: 'x', status: null }),
    item('started', { type: 'fileChange', id: 'edit-%', changes: [null, 1, { path: [], kind: 'x', diff: {} }] }),
    item('completed', { type: 'mcpToolCall', id: 'call-%', result: { content: 'x' }, error: [] }),
    item('started', { type: 'constructor', id: '__proto__' }),
    item('completed', { type: 'toString', id: 'call-%' }),
    item('completed', { type: 'agentMessage', id: 'm', text: 'x'.repeat(70_000) }),
    item('completed', { type: 'reasoning', id: 'm', summary: 'none', content: [null, '\u2028'] }),
    item('completed', { type: 'userMessage', id: 'm', clientId: 'signalbox-%' }),
    notice('item/started', { threadId: 'T', item: { type: 'x' } }),
    notice('thread/tokenUsage/updated', { threadId: 'thread-%', tokenUsage: usage(-1, 1e300) }),
    notice('thread/tokenUsage/updated', { threadId: 'thread-%', tokenUsage: usage(7, 8) }),
    notice('account/rateLimits/updated', { rateLimits: { primary: { usedPercent: 100, resetsAt: 1e300 }, secondary: 'x' } }),
    notice('error', { threadId: 'T', willRetry: true, error: null }),
    notice('warning', { message: { deep: ['%'] } }),
    notice('__proto__', {}),
    asksFor('item/commandExecution/requestApproval', { command: 'rm %' }, 'ask-%'),
    asksFor('item/fileChange/requestApproval', { itemId: '__proto__' }, 'ask-%'),
    asksFor('toString', {}, 'ask-%'),
    line({ id: null, method: 'x' }),
    line({ jsonrpc: '2.0', id: 5 }),
    `{"method":"item/commandExecution/requestApproval","id":7,"params":{"command":"${'x'.repeat(1_100_000)}"}}`,
    `{"method":"item/completed","params":{"item":{"type":"agentMessage","id":"a","text":"${'ü'.repeat(1_100_000)}"}}}`,
  ],
})

function usage(input: number, output: number, cached = 0, last = { input, output, cached }) {
  const tokens = (of: typeof last) => ({ inputTokens: of.input, outputTokens: of.output, cachedInputTokens: of.cached })
  return { total: tokens({ input, output, cached }), last: tokens(last) }
}

/** The harness at one end, the test at the other. Between any two steps the state goes through JSON, and nobody may change it. */
class Talk {
  readonly events: HarnessEvent[] = []
  /** Since they were last looked at. */
  #sent: Record<string, unknown>[] = []
  closed = false
  #state: HarnessState

  constructor(scene: Partial<Scene> = {}) {
    this.#state = codex.launch(launchOf({ options: {}, brief: 'Do it.', ...scene })).state as HarnessState
  }

  /** As far as the turn with the brief. */
  static atWork(scene: Partial<Scene> = {}): Talk {
    const talk = new Talk(scene).hears(...OPENED, line({ id: 3, result: { turn: { id: 'turn' } } }), STARTED)
    talk.sent()
    return talk
  }

  hears(...lines: string[]): this {
    return this.#step(codex.decode(this.#state, { stream: 'out', at: 1, bytes: Buffer.from(lines.map((one) => `${one}\n`).join('')) }))
  }

  prints(text: string): this {
    return this.#step(codex.decode(this.#state, { stream: 'err', at: 1, bytes: Buffer.from(text) }))
  }

  message = (text: string) => this.#maybe(codex.message(this.#state, text))
  interrupt = () => this.#maybe(codex.interrupt(this.#state))
  decide = (id: string, allow: boolean, message = '') => this.#maybe(codex.decide(this.#state, id, { allow, message }))

  sent(): Record<string, unknown>[] {
    const sent = this.#sent
    this.#sent = []
    return sent
  }

  /** The requests, by their methods. */
  asked(): [unknown, unknown][] {
    return this.sent().map(({ method, params }) => [method, params])
  }

  exit(more: Partial<Exit> = {}): HarnessEvent[] {
    return codex.end(this.#state, { reason: 'exited', code: 0, signal: null, detail: '', at: 1, ...more })
  }

  #maybe(step: Step | undefined): boolean {
    if (step) this.#step(step)
    return step !== undefined
  }

  #step({ state, events, send = [], close }: Step): this {
    this.#state = deepFrozen(JSON.parse(JSON.stringify(state)))
    this.events.push(...events)
    this.#sent.push(...send.map((text) => JSON.parse(text)))
    this.closed ||= close === true
    return this
  }
}

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(Object.freeze(value))) deepFrozen(inner)
  return value
}

const input = (text: string) => ({ input: [{ type: 'text', text }] })
const steered = (text: string) => ['turn/steer', expect.objectContaining({ threadId: 'T', expectedTurnId: 'turn', ...input(text) })]
const begins = (text: string) => ['turn/start', expect.objectContaining({ threadId: 'T', ...input(text) })]
const idOf = (sent: Record<string, unknown> | undefined) => sent?.id as number

describe('codex, how it is started', () => {
  const argsOf = (scene: Partial<Scene> = {}) => codex.launch(launchOf({ options: {}, ...scene })).argv.filter((one) => one !== '-c')
  const withConfig = (text: string) => writeFileSync(join(process.env.CODEX_HOME as string, 'config.toml'), text)

  test('[H10] without the program it says how to get it', async () => {
    vi.stubEnv('PATH', '/nobody/is/here')
    expect(await codex.probe()).toMatchObject({ found: false, install: expect.stringContaining('npm i -g @openai/codex') })
    expect(codex.launch(launchOf({ options: {} })).argv[0]).toBe('codex')
  })

  test.each([
    ['allow', 'never', 'danger-full-access'],
    ['ask', 'on-request', 'workspace-write'],
    ['deny', 'never', 'workspace-write'],
  ] as [Approvals, string, string][])('[H27] "%s" is %s in %s', (approvals, approvalPolicy, sandbox) => {
    const talk = new Talk({ approvals, model: 'gpt-5.5', cwd: '/work/tree' }).hears(OPENED[0] as string)
    expect(talk.asked()).toEqual([
      ['initialized', undefined],
      ['thread/start', { cwd: '/work/tree', model: 'gpt-5.5', approvalPolicy, sandbox, approvalsReviewer: 'user' }],
    ])
    expect(argsOf({ approvals }).some((one) => one.startsWith('sandbox_workspace_write'))).toBe(sandbox === 'workspace-write')
  })

  test('[H28] our tools, with the token in the environment; nothing of it asks, phones home or waits for ever', () => {
    const plan = codex.launch(launchOf({ options: {}, token: 'sbx_secret', url: 'http://127.0.0.1:1/mcp' }))
    expect(plan.argv).toEqual(
      expect.arrayContaining([
        'app-server',
        'mcp_servers.signalbox.url="http://127.0.0.1:1/mcp"',
        'mcp_servers.signalbox.bearer_token_env_var="SIGNALBOX_TOKEN"',
        'mcp_servers.signalbox.default_tools_approval_mode="approve"',
        'mcp_servers.signalbox.tool_timeout_sec=300',
        'check_for_update_on_startup=false',
        'features.unbounded_connection_retries=false',
      ]),
    )
    expect(plan.env).toEqual({ SIGNALBOX_TOKEN: 'sbx_secret' })
    expect(plan.files).toEqual({})
    expect(JSON.stringify([plan.argv, plan.stdin, plan.state])).not.toContain('sbx_secret')
  })

  test("[H28] it gets the keys that the person's providers look for, and what the options name", () => {
    withConfig('[model_providers.a]\nenv_key = "MY_KEY"\n  env_key=\'OTHER_KEY\'\n# env_key = "NOT_THIS"\nenv_key = "no name"\n')
    const { inherit } = codex.launch(launchOf({ options: { env: ['FOR_MY_SERVER'] } }))
    expect(inherit).toEqual(expect.arrayContaining(['CODEX_HOME', 'OPENAI_API_KEY', 'HTTPS_PROXY', 'MY_KEY', 'OTHER_KEY', 'FOR_MY_SERVER']))
    expect(inherit).not.toContain('NOT_THIS')
    expect(inherit).not.toContain('no name')
  })

  test.each([[['A=B']], [['']], ['A'], [['A\nB']]])('[H10] %j is no list of names', (env) => {
    expect(codex.options.safeParse({ env }).success).toBe(false)
  })

  test.each([
    ['[mcp_servers.signalbox]\ncommand = "x"', true],
    ['[ mcp_servers . "signalbox" ]\nurl = "x"', true],
    ['[mcp_servers.signalbox.env]\nA = "x"', true],
    ['[mcp_servers]\nother = { command = "x" }\nsignalbox = { command = "x" }', true],
    ['mcp_servers.signalbox.command = "x"', true],
    ['# [mcp_servers.signalbox]', false],
    ['[mcp_servers.signalboxes]\ncommand = "x"', false],
    ['[mcp_servers]\n[other]\nsignalbox = 1', false],
  ])('[H28] with %j in the configuration there is one server of ours: %s', (text, taken) => {
    withConfig(text)
    const args = argsOf()
    expect(args.includes('mcp_servers.signalbox.enabled=false')).toBe(taken)
    expect(args.filter((one) => /^mcp_servers\..*url=/.test(one))).toEqual([
      `mcp_servers.${taken ? 'signalbox_run' : 'signalbox'}.url="http://127.0.0.1:9/mcp"`,
    ])
  })

  describe('in a worktree', () => {
    const place = (back?: string) => {
      const folder = temporaryFolder()
      const [cwd, own] = [join(folder, 'tree'), join(folder, 'repo/.git/worktrees/tree')]
      for (const one of [cwd, own, join(folder, 'repo/.git/objects'), join(folder, 'repo/.git/refs')]) mkdirSync(one, { recursive: true })
      writeFileSync(join(cwd, '.git'), `gitdir: ${own}\n`)
      writeFileSync(join(own, 'gitdir'), `${back ?? join(cwd, '.git')}\n`)
      return { folder, cwd, own }
    }

    test('[H27] a commit can write, but nothing of git that is run', () => {
      const { folder, cwd, own } = place()
      const roots = argsOf({ cwd, approvals: 'ask' }).find((one) => one.startsWith('sandbox_workspace_write'))
      expect(JSON.parse(roots?.split('=')[1] as string)).toEqual([own, join(folder, 'repo/.git/objects'), join(folder, 'repo/.git/refs')])
    })

    test('[H27] a .git that names a folder which does not know of it opens nothing', () => {
      const { cwd } = place('/somewhere/else/.git')
      expect(argsOf({ cwd, approvals: 'deny' })).toContain('sandbox_workspace_write.writable_roots=[]')
    })

    test('[H28] neither it nor its repository is trusted', () => {
      const { folder, cwd } = place()
      const projects = argsOf({ cwd }).find((one) => one.startsWith('projects='))
      for (const path of [cwd, join(folder, 'repo')]) expect(projects).toContain(`${JSON.stringify(path)} = { trust_level = "untrusted" }`)
    })
  })
})

describe('codex, what is said to it', () => {
  test('[H25] it gets its brief when its thread is there, and its input ends when the turn has', () => {
    const talk = new Talk().hears(...OPENED)
    expect(talk.asked().slice(2)).toEqual([begins('Do it.')])
    talk.hears(line({ id: 3, result: {} }), STARTED, ended('completed'))
    expect(talk.closed).toBe(true)
    expect(talk.sent()).toEqual([])
    expect(talk.events).toEqual([{ type: 'ready', session: 'T' }, { type: 'turn_started' }, { type: 'turn_ended', how: 'completed' }])
    expect(talk.exit()).toEqual([{ type: 'exited', ok: true, reason: 'exited with code 0' }])
  })

  test('[H25] what is said before the turn waits for it, in order', () => {
    const talk = new Talk()
    expect(talk.message('one')).toBe(true)
    talk.hears(...OPENED).message('two')
    expect(talk.asked().slice(2)).toEqual([begins('Do it.')])
    talk.hears(line({ id: 3, result: {} }), STARTED)
    expect(talk.asked()).toEqual([steered('one'), steered('two')])
    expect(talk.events.filter(({ type }) => type === 'text')).toHaveLength(2)
  })

  const taken = (message: Record<string, unknown> = {}) =>
    item('started', { type: 'userMessage', id: 'u', clientId: (message.params as Record<string, unknown>).clientUserMessageId })

  test('[H25] what the turn has taken up is not said again', () => {
    const talk = Talk.atWork()
    talk.message('more')
    const [steer] = talk.sent()
    talk.hears(line({ id: idOf(steer), result: {} }), taken(steer), ended('completed'))
    expect(talk.sent()).toEqual([])
    expect(talk.closed).toBe(true)
  })

  test.each([
    [
      'refused after the end',
      (id: number) => [ended('completed'), line({ id, error: { code: -32600, message: 'no active turn to steer' } })],
    ],
    ['refused before the end', (id: number) => [line({ id, error: { code: -32600, message: 'not steerable' } }), ended('completed')]],
    ['accepted and not taken up', (id: number) => [line({ id, result: {} }), ended('completed')]],
    ['not answered', () => [ended('completed')]],
  ])('[H25] what the turn has not taken up begins another: %s', (_, lines) => {
    const talk = Talk.atWork()
    talk.message('more')
    talk.hears(...lines(idOf(talk.sent()[0])))
    expect(talk.closed).toBe(false)
    const [start, ...others] = talk.sent()
    expect([start?.method, start?.params]).toEqual(begins('more'))
    expect(others).toEqual([])
    talk.hears(line({ id: idOf(start), result: {} }), STARTED, ended('completed'))
    expect(talk.sent()).toEqual([])
    expect(talk.closed).toBe(true)
  })

  test('[H25] a steer that is refused is not tried again in the same turn', () => {
    const talk = Talk.atWork()
    talk.message('more')
    talk.hears(line({ id: idOf(talk.sent()[0]), error: { code: -32600, message: 'not steerable' } }))
    expect(talk.sent()).toEqual([])
  })

  test('[H25] nobody hears what is said after the end, or too much at once', () => {
    const talk = Talk.atWork()
    for (let i = 0; i < 20; i++) expect(talk.message(`${i}`)).toBe(true)
    expect(talk.message('too much')).toBe(false)
    const over = Talk.atWork().hears(ended('completed'))
    expect([over.message('late'), over.interrupt(), over.decide('0', true)]).toEqual([false, false, false])
  })

  test('[H25] an interrupt goes into the turn; it then waits, and goes on with what is said', () => {
    const talk = Talk.atWork()
    expect(talk.interrupt()).toBe(true)
    expect(talk.interrupt()).toBe(false)
    expect(talk.asked()).toEqual([['turn/interrupt', { threadId: 'T', turnId: 'turn' }]])
    talk.message('after it')
    expect(talk.sent()).toEqual([])
    talk.hears(ended('interrupted'))
    expect(talk.asked()).toEqual([begins('after it')])
    expect(talk.closed).toBe(false)
  })

  test('[H25] interrupted, with nothing said, it waits', () => {
    const talk = Talk.atWork()
    talk.interrupt()
    talk.sent()
    talk.hears(ended('interrupted'))
    expect([talk.closed, talk.sent()]).toEqual([false, []])
    expect(talk.message('go on')).toBe(true)
    expect(talk.asked()).toEqual([begins('go on')])
  })

  test('[H25] what was said before an interrupt goes along with what is said after it', () => {
    const talk = Talk.atWork()
    talk.message('before')
    talk.sent()
    talk.interrupt()
    talk.hears(ended('interrupted'))
    expect(talk.asked()).toEqual([['turn/interrupt', expect.anything()]])
    expect(talk.interrupt()).toBe(false)
    talk.message('after')
    const [start] = talk.sent()
    expect([start?.method, start?.params]).toEqual(begins('before'))
    talk.hears(line({ id: idOf(start), result: {} }), STARTED)
    expect(talk.asked()).toEqual([steered('after')])
  })

  test('[H25] an interrupt that comes before the turn goes into it as soon as it is there', () => {
    const talk = new Talk()
    expect(talk.interrupt()).toBe(true)
    talk.hears(...OPENED, line({ id: 3, result: {} }))
    talk.sent()
    talk.hears(STARTED)
    expect(talk.asked()).toEqual([['turn/interrupt', { threadId: 'T', turnId: 'turn' }]])
    expect(talk.exit().slice(0, 1)).toEqual([{ type: 'turn_ended', how: 'interrupted' }])
  })

  test('[H25] an interrupt that is refused is forgotten', () => {
    const talk = Talk.atWork()
    talk.interrupt()
    const [interrupt] = talk.sent()
    talk.message('more')
    talk.hears(line({ id: idOf(interrupt), error: { code: -32600, message: 'no active turn to interrupt' } }))
    expect(talk.asked()).toEqual([steered('more')])
  })

  test('[H29] a thread is resumed without its history, in the same place and under the same policy', () => {
    const talk = new Talk({ session: 'T', approvals: 'deny', cwd: '/work/tree' }).hears(OPENED[0] as string)
    const params = { cwd: '/work/tree', model: null, approvalPolicy: 'never', sandbox: 'workspace-write', approvalsReviewer: 'user' }
    expect(talk.asked()[1]).toEqual(['thread/resume', { ...params, threadId: 'T', excludeTurns: true }])
    talk.hears(line({ id: 2, result: { thread: { id: 'T' } } }))
    expect(talk.asked()).toEqual([begins('Do it.')])
  })

  test('[H29] one that is not there any more begins anew with the brief', () => {
    const talk = new Talk({ session: 'gone' }).hears(OPENED[0] as string)
    talk.sent()
    talk.hears(line({ id: 2, error: { code: -32600, message: 'no rollout found' } }))
    expect(talk.asked()).toEqual([['thread/start', expect.objectContaining({ approvalPolicy: 'never' })]])
    talk.hears(line({ id: 3, result: { thread: { id: 'T' } } }))
    expect(talk.asked()).toEqual([begins('Do it.')])
    expect(talk.events).toEqual([
      { type: 'ready', session: 'T' },
      { type: 'text', from: 'program', text: expect.stringContaining('a new one begins: no rollout found') },
    ])
  })

  test.each([
    ['initialize', [line({ id: 1, error: { code: 1, message: 'too old' } })]],
    ['a thread', [OPENED[0] as string, line({ id: 2, error: { code: 1, message: 'too old' } })]],
    ['a thread without an id', [OPENED[0] as string, line({ id: 2, result: {} })]],
    ['a turn', [...OPENED, line({ id: 3, error: { code: 1, message: 'too old' } })]],
  ])('[H26] when %s is refused, that is the reason, and it ends', (_, lines) => {
    const talk = new Talk().hears(...lines)
    expect(talk.closed).toBe(true)
    expect(talk.events.at(-1)).toMatchObject({ type: 'failed', reason: expect.stringMatching(/too old|which thread/) })
    expect(talk.exit()).toMatchObject([{ type: 'exited', ok: false }])
  })
})

describe('codex, what it asks', () => {
  const COMMAND = asksFor('item/commandExecution/requestApproval', { itemId: 'i', command: 'rm -rf /', reason: 'I must' })
  const QUESTIONS: [string, string, object, object, object][] = [
    ['a command', COMMAND, { name: 'command', input: 'rm -rf /\n(I must)' }, { decision: 'accept' }, { decision: 'decline' }],
    [
      'an edit',
      asksFor('item/fileChange/requestApproval', { itemId: 'edit' }),
      { name: 'edit', input: 'add /a.txt\n+x' },
      { decision: 'accept' },
      { decision: 'decline' },
    ],
    [
      'permissions',
      asksFor('item/permissions/requestApproval', { permissions: { network: { enabled: true }, fileSystem: null } }),
      { name: 'permissions' },
      { permissions: { network: { enabled: true } }, scope: 'turn' },
      { permissions: {}, scope: 'turn' },
    ],
    [
      'a tool of a server',
      asksFor('mcpServer/elicitation/request', {
        serverName: 'mine',
        message: 'Allow echo?',
        _meta: { codex_approval_kind: 'mcp_tool_call', tool_params: { text: 'hi' } },
      }),
      { name: 'mine', input: '{"text":"hi"}\n(Allow echo?)' },
      { action: 'accept', content: {}, _meta: null },
      { action: 'decline', content: null, _meta: null },
    ],
  ]
  const EDIT = item('started', { type: 'fileChange', id: 'edit', changes: [{ path: '/a.txt', kind: { type: 'add' }, diff: '+x' }] })

  test.each(QUESTIONS)('[H27] %s is asked of a person, and answered in its own shape', (_, question, told, yes, no) => {
    for (const allow of [true, false]) {
      const talk = Talk.atWork({ approvals: 'ask' }).hears(EDIT, question)
      expect(talk.sent()).toEqual([])
      expect(talk.events.at(-1)).toMatchObject({ type: 'approval_asked', id: '0', ...told })
      expect(talk.decide('0', allow)).toBe(true)
      expect(talk.sent()).toEqual([{ jsonrpc: '2.0', id: 0, result: allow ? yes : no }])
      expect(talk.decide('0', allow)).toBe(false)
    }
  })

  test.each(QUESTIONS)('[H27] %s is granted or refused at once where nobody is asked', (_, question, _told, yes, no) => {
    for (const approvals of ['allow', 'deny'] as const) {
      const talk = Talk.atWork({ approvals }).hears(question)
      expect(talk.sent()).toEqual([{ jsonrpc: '2.0', id: 0, result: approvals === 'allow' ? yes : no }])
      expect(talk.events.some(({ type }) => type === 'approval_asked')).toBe(false)
    }
  })

  test('[H27] why something was refused is told to the agent in its turn', () => {
    const talk = Talk.atWork({ approvals: 'ask' }).hears(COMMAND)
    talk.decide('0', false, 'Use the other one.')
    expect(talk.sent()).toMatchObject([
      { id: 0, result: { decision: 'decline' } },
      { method: 'turn/steer', params: input('Use the other one.') },
    ])
    expect(talk.events.at(-1)).toEqual({ type: 'text', from: 'person', text: 'Use the other one.' })
  })

  const asked = (...lines: string[]) => {
    const { events } = Talk.atWork({ approvals: 'ask' }).hears(...lines)
    return events.flatMap((event) => (event.type === 'approval_asked' ? [event.input] : []))
  }

  test('[H40] an escape in a command hides nothing of it', () => {
    const command = 'git status #\u001b]0;\nmkdir -p /tmp/pwned'
    const line = asksFor('item/commandExecution/requestApproval', { itemId: 'i', command })
    expect(asked(line)).toEqual(['git status #⟨U+001B⟩]0;\nmkdir -p /tmp/pwned'])
  })

  test('[H40] all that a yes would grant is told: a long edit to its end, or that it is not known, and what comes with it', () => {
    const diff = `+${'x'.repeat(9_400)}\n+the end`
    const edit = item('started', { type: 'fileChange', id: 'edit', changes: [{ path: '/a', kind: { type: 'add' }, diff }] })
    const question = asksFor('item/fileChange/requestApproval', { itemId: 'edit' })
    expect(asked(edit, question)).toEqual([`add /a\n${diff}`])
    expect(asked(edit.replace('the end', 'z'.repeat(70_000)), question)[0]).toMatch(/… \([\d,]+ more characters\)$/)
    expect(asked(question)).toEqual([expect.stringContaining('not known')])
    const more = { itemId: 'i', command: 'ls', networkApprovalContext: { host: 'x.org' }, additionalPermissions: { network: true } }
    expect(asked(asksFor('item/commandExecution/requestApproval', more))[0]).toMatch(/^ls\nnetwork: .*x\.org.*\npermissions: .*true/)
    expect(asked(asksFor('item/fileChange/requestApproval', { itemId: 'x', grantRoot: '/home' }))[0]).toContain('/home')
  })

  test('[H27] what is asked no more cannot be answered', () => {
    const talk = Talk.atWork({ approvals: 'ask' }).hears(COMMAND, notice('serverRequest/resolved', { threadId: 'sub-agent', requestId: 0 }))
    expect(talk.decide('0', true)).toBe(false)
    expect(talk.events.at(-1)).toMatchObject({ type: 'tool_result', id: '0', ok: false })
    // Of what was answered it says the same: that is nothing new.
    const answered = Talk.atWork({ approvals: 'ask' }).hears(COMMAND)
    answered.decide('0', true)
    expect(answered.hears(notice('serverRequest/resolved', { requestId: 0 })).events.at(-1)).toMatchObject({ type: 'approval_asked' })
  })

  test.each([
    ['something new', asksFor('item/tool/requestUserInput', { questions: [] })],
    ['a form of a server', asksFor('mcpServer/elicitation/request', { mode: 'form', message: 'Your name?', requestedSchema: {} })],
    ['what is too long', asksFor('item/commandExecution/requestApproval', { command: 'x'.repeat(1_100_000) })],
  ])('[H27] %s gets an error at once, so that nothing waits for it', (_, question) => {
    const talk = Talk.atWork({ approvals: 'ask' }).hears(question)
    expect(talk.sent()).toMatchObject([{ id: 0, error: { code: -32601 } }])
  })
})

describe('codex, what it tells', () => {
  const toldBy = (...lines: string[]) => {
    const talk = Talk.atWork()
    const before = talk.events.length
    return talk.hears(...lines).events.slice(before)
  }

  test('[H1] commands, edits, tools and searches', () => {
    const tool = (fields: object, more: object) => toldBy(item('started', fields), item('completed', { ...fields, ...more }))
    const command = { type: 'commandExecution', id: 'c', command: 'ls' }
    expect(tool(command, { status: 'failed', exitCode: 3, aggregatedOutput: 'no such file\n' })).toEqual([
      { type: 'tool_call', id: 'c', name: 'command', input: 'ls' },
      { type: 'tool_result', id: 'c', ok: false, output: 'no such file\n\n(exit code 3)' },
    ])
    expect(tool(command, { status: 'completed', exitCode: 0, aggregatedOutput: 'a' })[1]).toMatchObject({ ok: true, output: 'a' })
    expect(tool(command, { status: 'declined', exitCode: null })[1]).toMatchObject({ ok: false, output: 'It was not allowed.' })
    const edit = { type: 'fileChange', id: 'e', changes: [{ path: '/a', kind: { type: 'update' }, diff: '-x\n+y' }] }
    expect(tool(edit, { status: 'completed' })).toMatchObject([{ name: 'edit', input: 'update /a\n-x\n+y' }, { ok: true }])
    const call = { type: 'mcpToolCall', id: 'm', server: 'signalbox', tool: 'task_note', arguments: { body: 'hi' } }
    expect(tool(call, { status: 'completed', result: { content: [{ type: 'text', text: 'noted' }] } })).toMatchObject([
      { name: 'signalbox.task_note', input: '{"body":"hi"}' },
      { ok: true, output: 'noted' },
    ])
    expect(tool(call, { status: 'failed', error: { message: 'refused' } })[1]).toMatchObject({ ok: false, output: 'refused' })
    expect(tool({ type: 'webSearch', id: 'w', query: 'trains' }, {})).toMatchObject([{ name: 'web_search', input: 'trains' }, { ok: true }])
    expect(tool({ type: 'dynamicToolCall', id: 'd', tool: 'new' }, { success: false })).toMatchObject([{ name: 'new' }, { ok: false }])
  })

  test('[H1] what it says and thinks; an empty thought is none', () => {
    const told = toldBy(
      item('completed', { type: 'reasoning', id: 'r', summary: ['Look first.'], content: ['Then act.'] }),
      item('completed', { type: 'reasoning', id: 'r', summary: [], content: [] }),
      item('started', { type: 'agentMessage', id: 'a', text: '' }),
      item('completed', { type: 'agentMessage', id: 'a', text: 'Done \u001b[31m🚂' }),
      item('completed', { type: 'userMessage', id: 'u', clientId: null, content: [] }),
    )
    expect(told).toEqual([
      { type: 'text', from: 'thought', text: 'Look first.\n\nThen act.' },
      { type: 'text', from: 'agent', text: 'Done 🚂' },
    ])
  })

  test('[H5] a call that is open when the turn ends has a result', () => {
    const told = toldBy(item('started', { type: 'commandExecution', id: 'c', command: 'sleep 100' }), ended('interrupted'))
    expect(told.slice(1)).toEqual([
      { type: 'tool_result', id: 'c', ok: false, output: 'It had not ended when the turn did.' },
      { type: 'turn_ended', how: 'interrupted' },
    ])
  })

  test('[H4] a line that is too long to be read is still the end of what it ends', () => {
    const long = 'x\u001b'.repeat(200_000)
    const told = toldBy(
      item('started', { type: 'commandExecution', id: 'c', command: 'cat' }),
      item('completed', { type: 'commandExecution', id: 'c', status: 'completed', aggregatedOutput: long }).replace(
        '"threadId":"T","turnId":"turn",',
        '',
      ),
      item('started', { type: 'mcpToolCall', id: 'm', arguments: long }).replace('"threadId":"T","turnId":"turn",', ''),
      item('completed', { type: 'agentMessage', id: 'a', text: long }).replace('"threadId":"T","turnId":"turn",', ''),
      notice('turn/completed', { threadId: 'T', turn: { id: 'turn', items: [long], status: 'completed' } }),
    )
    expect(told).toMatchObject([
      { type: 'tool_call' },
      { type: 'tool_result', id: 'c', ok: true, output: expect.stringMatching(/^It is too long to be shown. It begins: x\\u001b/) },
      { type: 'tool_call', id: 'm', name: 'mcpToolCall' },
      { type: 'text', from: 'agent' },
      { type: 'tool_result', id: 'm', ok: false },
      { type: 'turn_ended', how: 'completed' },
    ])
  })

  test('[H1] what it prints before it is ready comes after that, and also when it never is', () => {
    const talk = new Talk().prints('a warning\n').hears('not JSON', notice('configWarning', { summary: 'odd', details: 'very' }))
    expect(talk.events).toEqual([])
    const early = [
      { type: 'text', from: 'error', text: 'a warning' },
      { type: 'text', from: 'program', text: 'not JSON' },
      { type: 'text', from: 'program', text: 'odd\nvery' },
    ]
    expect(talk.exit({ code: 1 })).toEqual([
      ...early,
      { type: 'failed', reason: 'exited with code 1' },
      { type: 'exited', ok: false, reason: 'exited with code 1' },
    ])
    expect(talk.hears(...OPENED).events).toEqual([{ type: 'ready', session: 'T' }, ...early])
  })

  test('[H29] tokens are told as differences; those of an earlier life and of a cache are not input', () => {
    const used = (threadId: string, tokens: object) => notice('thread/tokenUsage/updated', { threadId, tokenUsage: tokens })
    const talk = new Talk({ session: 'T' }).hears(...OPENED, used('T', usage(5_000, 100)), line({ id: 3, result: {} }), STARTED)
    talk.hears(used('T', usage(6_200, 142, 200)), used('T', usage(6_200, 142, 200)), used('T', usage(7_000, 150, 300)))
    talk.hears(used('sub-agent', usage(9_000, 90, 0, { input: 10, output: 1, cached: 0 })), used('sub-agent', usage(9_005, 92)))
    const told = talk.events.filter((event) => event.type === 'usage')
    expect(told.map((event) => [event.input_tokens, event.output_tokens, event.cached_tokens, event.cost_usd])).toEqual([
      [1_000, 42, 200, null],
      [700, 8, 100, null],
      [10, 1, 0, null],
      [5, 2, 0, null],
    ])
  })

  test('[H26] what a sub-agent does in a thread of its own is not the end of the work', () => {
    const talk = Talk.atWork().hears(
      notice('turn/started', { threadId: 'S', turn: { id: 'other' } }),
      notice('item/completed', { threadId: 'S', item: { type: 'agentMessage', id: 'a', text: 'me too' } }),
      notice('turn/completed', { threadId: 'S', turn: { id: 'other', status: 'completed' } }),
    )
    expect(talk.closed).toBe(false)
    talk.message('more')
    expect(talk.asked()).toEqual([steered('more')])
    expect(talk.events.filter(({ type }) => type === 'text')).toHaveLength(1)
  })
})

describe('codex, how it fails', () => {
  const failure = (codexErrorInfo: unknown, message = 'it said so') => ended('failed', { message, codexErrorInfo })
  const lastOf = (talk: Talk) => talk.events.at(-1)

  test.each([
    [{ httpConnectionFailed: { httpStatusCode: 401 } }, /login.*it said so/],
    ['unauthorized', /login/],
    [{ httpConnectionFailed: { httpStatusCode: 529 } }, /overloaded or out of order.*it said so/],
    ['serverOverloaded', /overloaded/],
    [{ httpConnectionFailed: { httpStatusCode: null } }, /could not be reached.*it said so/],
    [{ responseStreamDisconnected: { httpStatusCode: null } }, /could not be reached/],
    ['contextWindowExceeded', /no longer fits/],
    ['other', /^it said so$/],
    [null, /^it said so$/],
  ])('[H26] %j is told in words, and exit 0 is no good end', (info, reason) => {
    const talk = Talk.atWork().hears(failure(info))
    expect(talk.closed).toBe(true)
    expect(lastOf(talk)).toEqual({ type: 'failed', reason: expect.stringMatching(reason) })
    expect(talk.exit()).toEqual([{ type: 'exited', ok: false, reason: expect.stringContaining('exited with code 0') }])
  })

  test('[H26] what the provider answered is told without its wrapping, and a missing key with where it goes', () => {
    expect(lastOf(Talk.atWork().hears(failure('other', '{"error":{"message":"bad thing"}}')))).toMatchObject({ reason: 'bad thing' })
    const missing = lastOf(Talk.atWork().hears(failure('other', 'Missing environment variable: `MY_KEY`.')))
    expect(missing).toMatchObject({ reason: expect.stringMatching(/MY_KEY.*environment of the daemon/) })
  })

  const limits = (primary: object | null, secondary: object | null) =>
    notice('account/rateLimits/updated', { rateLimits: { limitId: 'codex', primary, secondary } })
  const window = (usedPercent: number, resetsAt: number) => ({ usedPercent, resetsAt, windowDurationMins: 300 })

  test.each([
    ['when its window begins anew', [limits(window(100, 2_000), window(20, 9_000))], 2_000_000],
    ['when the later of two does', [limits(window(100, 2_000), window(100, 9_000))], 9_000_000],
    ['although a later word says nothing', [limits(window(100, 2_000), null), limits(null, null)], 2_000_000],
    ['unknown when none is used up', [limits(window(100, 2_000), null), limits(window(1, 3_000), null)], null],
    ['unknown when nobody says', [], null],
  ])('[H26] a limit is told with its end: %s', (_, before, resets_at) => {
    const talk = Talk.atWork().hears(...before, failure('usageLimitExceeded', 'You’ve hit your usage limit.'))
    expect(lastOf(talk)).toEqual({ type: 'limit_reached', message: 'You’ve hit your usage limit.', resets_at })
    expect(talk.exit()).toMatchObject([{ type: 'exited', ok: false }])
  })

  test('[H26] too many requests is a limit too', () => {
    expect(lastOf(Talk.atWork().hears(failure({ responseTooManyFailedAttempts: { httpStatusCode: 429 } })))).toMatchObject({
      type: 'limit_reached',
    })
  })

  test('[H26] asked to wait it would be silent for as long as it takes: it is parked instead', () => {
    const error = { message: 'Reconnecting... 1/5', codexErrorInfo: { responseStreamDisconnected: { httpStatusCode: 429 } } }
    const talk = Talk.atWork().hears(notice('error', { threadId: 'T', willRetry: true, error }))
    expect(talk.asked()).toEqual([['turn/interrupt', { threadId: 'T', turnId: 'turn' }]])
    talk.hears(ended('interrupted'))
    expect(talk.closed).toBe(true)
    expect(talk.events.slice(-2)).toMatchObject([
      { type: 'turn_ended', how: 'failed' },
      { type: 'limit_reached', resets_at: 60_001 },
    ])
    expect(talk.exit()).toMatchObject([{ ok: false }])
  })

  test('[H26] that it tries again is no failure', () => {
    const error = { message: 'Reconnecting... 1/5', additionalDetails: 'unexpected status 529' }
    const talk = Talk.atWork().hears(notice('error', { threadId: 'T', willRetry: true, error }), ended('completed'))
    expect(talk.events.slice(2, 3)).toEqual([{ type: 'text', from: 'program', text: 'Reconnecting... 1/5 (unexpected status 529)' }])
    expect(talk.exit()).toMatchObject([{ ok: true }])
  })

  test('[H26] a failure is told once, when it is the last word: another turn may mend it', () => {
    const error = notice('error', { threadId: 'T', willRetry: false, error: { message: 'it said so' } })
    const talk = Talk.atWork()
    talk.message('more')
    talk.sent()
    talk.hears(error, failure('other'))
    expect(talk.closed).toBe(false)
    const [start] = talk.sent()
    talk.hears(line({ id: idOf(start), result: {} }), STARTED, ended('completed'))
    expect(talk.events.filter(({ type }) => type === 'failed')).toEqual([])
    expect(talk.exit()).toMatchObject([{ ok: true }])
  })

  test('[H26] killed before that, the failure is told at the end', () => {
    const talk = Talk.atWork()
    talk.message('more')
    talk.hears(failure('other'))
    expect(talk.exit({ code: null, signal: 'SIGKILL' })).toEqual([
      { type: 'failed', reason: 'it said so' },
      { type: 'exited', ok: false, reason: 'ended by SIGKILL' },
    ])
  })

  test.each([
    ['before it began', () => new Talk()],
    ['in the middle of a turn', () => Talk.atWork()],
  ])('[H26] an exit with 0 %s is no good end', (_, begun) => {
    expect(begun().exit().slice(-2)).toMatchObject([{ type: 'failed' }, { type: 'exited', ok: false }])
  })

  test('[H26] that our tools could not be attached is told', () => {
    const talk = Talk.atWork().hears(
      notice('mcpServer/startupStatus/updated', { threadId: 'T', name: 'signalbox', status: 'failed', error: 'refused' }),
    )
    expect(lastOf(talk)).toEqual({ type: 'text', from: 'error', text: 'The MCP server "signalbox" did not start: refused' })
  })
})
