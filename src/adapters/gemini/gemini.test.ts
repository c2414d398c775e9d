import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessState } from '../../ports/harness.ts'
import { launchOf, temporaryFolder } from '../../testing/harness.ts'
import { loadTape } from '../../testing/tapes.ts'
import { begin, feed } from '../acp/literal.ts'
import { gemini } from './harness.ts'

const tape = (name: string) => loadTape(gemini, join(import.meta.dirname, `tapes/${name}.json`))
const session = (update: object) => ({ method: 'session/update', params: { sessionId: 's', update } })

harnessContract({
  harness: gemini,
  scene: () => ({ options: {}, model: 'gemini-2.5-flash' }),
  program: { endsWell: tape('ends-well'), fails: tape('fails') },
  hostileLines: [
    '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}',
    `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":-5,"output_tokens":1e400}}},"x":"${'x'.repeat(2_000)}"}}`,
    JSON.stringify({ jsonrpc: '2.0', ...session({ sessionUpdate: 'tool_call', toolCallId: '__%', title: '%', status: 'in_progress' }) }),
  ],
})

describe('gemini', () => {
  test('[H39] a life is told: names of tools, what a shell is given, the tokens of the turn', () => {
    const { events } = tape('ends-well')
    const calls = events.flatMap((event) => (event.type === 'tool_call' ? [[event.name, event.input.split('\n')[0]]] : []))
    expect(calls).toEqual([
      ['run_shell_command', 'echo "grüezi €"; echo aside >&2'],
      ['write_file', 'Writing to note.txt'],
      ['run_shell_command', 'exit 3'],
    ])
    expect(events).toContainEqual({
      type: 'usage',
      input_tokens: 4_800,
      output_tokens: 168,
      cached_tokens: 0,
      cost_usd: null,
      estimated: false,
    })
    expect(events.some((event) => event.type === 'text' && event.text.includes('MODE_UPDATE'))).toBe(false)
  })

  test('[H35] a refused key is a failure that says what to do, although it exits with 0', () => {
    const { events, exit } = tape('fails')
    expect(exit).toMatchObject({ code: 0 })
    expect(events.filter(({ type }) => type === 'failed')).toEqual([
      { type: 'failed', reason: expect.stringMatching(/not logged in.*GEMINI_API_KEY/) },
    ])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H32] the history that it tells after it has loaded a session is not told again', () => {
    const resumed = begin(gemini, { options: {}, session: 'earlier' })
    const loading = feed(gemini, resumed, { id: 1, result: { protocolVersion: 1, agentCapabilities: { loadSession: true } } })
    expect(loading.sent).toMatchObject([{ id: 2, method: 'session/load', params: { sessionId: 'earlier' } }])
    const loaded = feed(gemini, loading.state, { id: 2, result: { modes: { availableModes: [{ id: 'yolo' }] } } })
    expect(loaded.sent).toMatchObject([{ id: 3, method: 'session/set_mode', params: { sessionId: 'earlier', modeId: 'yolo' } }])
    const late = { sessionId: 'earlier', update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'HISTORY' } } }
    const told = feed(gemini, loaded.state, { method: 'session/update', params: late }, { id: 3, result: {} })
    expect(told.sent).toMatchObject([{ id: 4, method: 'session/prompt' }])
    const { events } = feed(gemini, told.state, { id: 4, result: { stopReason: 'end_turn' } })
    expect(events).toEqual([{ type: 'turn_ended', how: 'completed' }])
  })

  test('[H31] it lives on after the end of its input: a signal ends it, after a good turn and after a failure', () => {
    const working = feed(
      gemini,
      begin(gemini, { options: {} }),
      { id: 1, result: { protocolVersion: 1 } },
      { id: 2, result: { sessionId: 's' } },
    ).state
    expect(feed(gemini, working, { id: 3, result: { stopReason: 'end_turn' } }).step).toMatchObject({ close: true, signal: 'SIGTERM' })
    expect(feed(gemini, working, { id: 3, error: { code: 500, message: 'x' } }).step).toMatchObject({ close: true, signal: 'SIGTERM' })
  })

  test('[H33] our own tools need nobody to ask; what a model names like them does', () => {
    const answered = (toolCall: object) => feed(gemini, working('deny'), asking(toolCall)).sent[0]
    const ours = { toolCallId: 'mcp_signalbox_task_note__1', title: 'task_note (signalbox MCP Server)', kind: 'other' }
    expect(answered(ours)).toMatchObject({ result: { outcome: { optionId: 'proceed_once' } } })
    const shell = {
      toolCallId: 'run_shell_command__mcp_signalbox_',
      title: 'mcp_signalbox_task_note (signalbox MCP Server)',
      kind: 'execute',
    }
    expect(answered(shell)).toMatchObject({ result: { outcome: { optionId: 'cancel' } } })
  })

  const working = (approvals: 'ask' | 'deny') =>
    feed(
      gemini,
      begin(gemini, { options: {}, approvals }),
      { id: 1, result: { protocolVersion: 1 } },
      { id: 2, result: { sessionId: 's' } },
    ).state
  const options = [
    { optionId: 'proceed_once', kind: 'allow_once' },
    { optionId: 'cancel', kind: 'reject_once' },
  ]
  const asking = (toolCall: object) => ({ id: 0, method: 'session/request_permission', params: { sessionId: 's', toolCall, options } })
  const asked = (...messages: object[]) =>
    feed(gemini, working('ask'), ...messages).events.flatMap((event) => (event.type === 'approval_asked' ? [event.input] : []))

  test('[H40] an escape in a command hides nothing of it', () => {
    const title = 'git status #\u001b]0;\nmkdir -p /tmp/pwned'
    expect(asked(asking({ toolCallId: 'run_shell_command__1', title, kind: 'execute' }))).toEqual([
      'git status #⟨U+001B⟩]0;\nmkdir -p /tmp/pwned',
    ])
  })

  test('[H40] what would be written is shown, of a long file the lines that change', () => {
    const written = { type: 'diff', path: 'w.txt', oldText: '', newText: '#!/bin/sh\nrm -rf ~\n' }
    const call = { toolCallId: 'write_file__1', title: 'Writing to w.txt', kind: 'edit' }
    const shown = 'Writing to w.txt\nw.txt\n+ #!/bin/sh\n+ rm -rf ~\n+ '
    expect(asked(asking({ ...call, content: [written] }))).toEqual([shown])
    // Announced before, and the question says only what is new.
    const announced = session({ sessionUpdate: 'tool_call', ...call, status: 'pending' })
    expect(asked(announced, asking({ ...call, content: [written] }))).toEqual([shown])
    expect(asked(announced, asking({ toolCallId: call.toolCallId, content: [written] }))).toEqual([shown])
    expect(asked(announced, asking({ toolCallId: call.toolCallId }))).toEqual(['Writing to w.txt'])
    const lines = Array.from({ length: 5_000 }, (_, i) => `line ${i}`)
    const edited = { type: 'diff', path: 'w.txt', oldText: lines.join('\n'), newText: lines.with(4_000, 'rm -rf ~').join('\n') }
    expect(asked(asking({ ...call, content: [edited] }))[0]?.split('\n')).toEqual([
      'Writing to w.txt',
      'w.txt',
      '  (4000 more that stay as they are)',
      '- line 4000',
      '+ rm -rf ~',
      '  (999 more that stay as they are)',
    ])
  })

  test.each(['.env', '.gemini/settings.json', '.gemini/policies', '.gemini/.env'])(
    '[H41] it is not started beside %s, which it would obey unasked',
    (file) => {
      const cwd = temporaryFolder()
      mkdirSync(join(cwd, file), { recursive: true })
      for (const approvals of ['ask', 'deny'] as const) expect(() => gemini.launch(launchOf({ options: {}, cwd, approvals }))).toThrow(file)
      expect(() => gemini.launch(launchOf({ options: {}, cwd, approvals: 'allow' }))).not.toThrow()
    },
  )

  test('[H36] it is started in its ACP mode without a parent of its own, with the model as an argument', () => {
    const { argv, env, inherit, state } = gemini.launch(launchOf({ options: {}, model: 'gemini-2.5-pro' }))
    expect(argv.slice(1)).toEqual(['--acp', '--skip-trust', '-m', 'gemini-2.5-pro'])
    expect(env).toEqual({ GEMINI_CLI_NO_RELAUNCH: 'true' })
    expect(inherit).toContain('GEMINI_API_KEY')
    expect((state as HarnessState).wishes).toMatchObject({ model: null })
    expect(gemini.launch(launchOf({ options: {} })).argv.slice(1)).toEqual(['--acp', '--skip-trust'])
  })
})
