import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { launchOf, temporaryFolder } from '../../testing/harness.ts'
import { loadTape } from '../../testing/tapes.ts'
import { begin, complain, feed } from '../acp/literal.ts'
import { opencode } from './harness.ts'

const tape = (name: string) => loadTape(opencode, join(import.meta.dirname, `tapes/${name}.json`))

const STREAM_ERROR =
  'timestamp=2026-11-16T11:16:14.244Z level=ERROR run=e5507bc5 message="stream error" providerID=lab modelID=lab-model session.id=ses_1 small=false agent=build mode=primary error.error="AI_APICallError: Rate limit reached"'

harnessContract({
  harness: opencode,
  scene: () => ({ options: {} }),
  program: { endsWell: tape('ends-well'), fails: tape('fails') },
  hostileLines: [
    '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}',
    '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}',
    STREAM_ERROR,
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"usage_update","used":"%"}}}',
  ],
})

describe('opencode', () => {
  test('[H30] a life is told: tools under their names, with all of their input', () => {
    const { events } = tape('ends-well')
    const calls = events.flatMap((event) => (event.type === 'tool_call' ? [[event.name, JSON.parse(event.input)]] : []))
    expect(calls).toMatchObject([
      ['bash', { command: 'echo "grüezi €"; echo aside >&2' }],
      ['write', { content: 'čtyři\n' }],
      ['bash', { command: 'exit 3' }],
    ])
  })

  test('[H35] a failure is one, although it exits with 0', () => {
    const { events, exit } = tape('fails')
    expect(exit).toMatchObject({ code: 0 })
    expect(events.filter(({ type }) => type === 'failed')).toHaveLength(1)
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  const working = () =>
    feed(opencode, begin(opencode, { options: {} }), { id: 1, result: { protocolVersion: 1 } }, { id: 2, result: { sessionId: 's' } }).state
  const lines = (count: number) => Array.from({ length: count }, () => STREAM_ERROR)

  test('[H35] that the model is tried again and again stands in its log alone: at the eighth time it is given up', () => {
    const seven = complain(opencode, working(), ...lines(7))
    expect(seven.step.close).toBeUndefined()
    const { events, sent, step } = complain(opencode, seven.state, STREAM_ERROR)
    expect(sent).toMatchObject([{ method: 'session/cancel', params: { sessionId: 's' } }])
    expect(step.close).toBe(true)
    expect(events.slice(1)).toEqual([
      { type: 'turn_ended', how: 'failed' },
      { type: 'limit_reached', message: 'Rate limit reached (given up after 8 attempts)', resets_at: null },
    ])
  })

  test('[H35] what comes from the model in between begins the count anew; titles do not count', () => {
    const chunk = { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: 'hm' } }
    const talking = feed(opencode, complain(opencode, working(), ...lines(7)).state, {
      method: 'session/update',
      params: { sessionId: 's', update: chunk },
    })
    expect(complain(opencode, talking.state, ...lines(7)).step.close).toBeUndefined()
    const titles = lines(20).map((line) => line.replace('small=false', 'small=true'))
    expect(complain(opencode, working(), ...titles).step.close).toBeUndefined()
  })

  test.each(['opencode.json', 'opencode.jsonc', '.opencode'])('[H41] it is not started beside %s, which it would obey unasked', (file) => {
    const cwd = temporaryFolder()
    mkdirSync(join(cwd, file))
    for (const approvals of ['ask', 'deny'] as const) expect(() => opencode.launch(launchOf({ options: {}, cwd, approvals }))).toThrow(file)
    expect(() => opencode.launch(launchOf({ options: {}, cwd, approvals: 'allow' }))).not.toThrow()
  })

  test.each([
    ['allow', { '*': 'allow' }],
    ['ask', { bash: 'ask', edit: 'ask', 'signalbox_*': 'allow' }],
    ['deny', { bash: 'ask', edit: 'allow', external_directory: 'ask', 'signalbox_*': 'allow' }],
  ] as const)('[H33] %s is said by its environment', (approvals, permissions) => {
    const { argv, env } = opencode.launch(launchOf({ options: {}, approvals }))
    expect(argv.slice(1)).toEqual(['acp', '--print-logs', '--log-level', 'ERROR'])
    expect(JSON.parse(env.OPENCODE_PERMISSION as string)).toMatchObject(permissions)
  })
})
