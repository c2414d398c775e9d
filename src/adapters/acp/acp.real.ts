import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { Driven, temporaryFolder } from '../../testing/harness.ts'
import type { RealProgram } from '../../testing/real-programs.ts'
import type { Step } from '../../testing/scripted-model/index.ts'
import { acp } from './index.ts'
import { of, RealScenes, said } from './real-scenes.ts'

const touch = 'touch asked-for'
/** Codex runs a command without asking, where it cannot write; its model has to want more. */
const escalated = { cmd: touch, sandbox_permissions: 'require_escalated', justification: 'as the test says' }

const PROGRAMS: [RealProgram, Step][] = [
  ['claude-agent-acp', { tool: 'bash', args: { command: touch } }],
  ['codex-acp', { tool: 'exec_command', args: escalated }],
]

describe.each(PROGRAMS)('acp with %s', (program, asking) => {
  const scenes = new RealScenes(program)

  harnessContract({
    harness: acp,
    scene: () => scenes.scene([{ say: 'hello' }]),
    program: scenes.live(asking),
    hostileLines: ['{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'],
  })

  scenes.findsOurTools(acp)

  test('[H31] an interrupted one waits, and goes on with the next message to a good end', async () => {
    const sleeps = { say: 'READY', tool: 'bash', args: { command: `python3 -c 'import time; time.sleep(60)'` } }
    const life = new Driven(acp, scenes.scene([sleeps, { listen: true }]))
    await life.saw('tool_call')
    life.interrupt()
    await life.saw('turn_ended', ({ how }) => how === 'interrupted')
    life.message('as you like')
    const { events } = await life.ended
    expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['interrupted', 'completed'])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
  })

  test('[H32] an earlier session goes on after a kill; what was said before is not told again', async () => {
    const [home, cwd] = [temporaryFolder(), temporaryFolder()]
    const first = new Driven(acp, scenes.scene([{ say: 'READY', tool: 'bash', args: { command: 'true' } }, { hang: true }], { home, cwd }))
    await first.saw('tool_result')
    first.kill('SIGKILL')
    await first.ended
    const { session } = await first.saw('ready')
    const { events } = await new Driven(acp, scenes.scene([{ say: 'the second life' }], { home, cwd, session })).ended
    expect(of(events, 'ready')).toEqual([{ type: 'ready', session }])
    expect(said(events)).toEqual(['the second life'])
    expect(JSON.stringify(scenes.model.requests.at(-1))).toContain('READY')
  })

  test('[H35] a limit of the provider is told as one', async () => {
    const { events } = await new Driven(acp, scenes.scene([{ error: { status: 429, times: 999 } }])).ended
    expect(of(events, 'limit_reached')).toHaveLength(1)
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H35] a key that is refused says what to do', async () => {
    const { events } = await new Driven(acp, scenes.scene([{ error: { status: 401, times: 999 } }])).ended
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringContaining('not logged in') }])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })
})
