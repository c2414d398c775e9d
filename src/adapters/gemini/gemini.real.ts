import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { Driven, temporaryFolder } from '../../testing/harness.ts'
import { of, RealScenes, said } from '../acp/real-scenes.ts'
import { gemini } from './index.ts'

const scenes = new RealScenes('gemini')

harnessContract({
  harness: gemini,
  scene: () => scenes.scene([{ say: 'hello' }]),
  program: scenes.live(),
  lingers: true,
  hostileLines: ['{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'],
})

describe('gemini, the real program', () => {
  test('[H31] an interrupted one waits, and goes on with the next message to a good end', async () => {
    const life = new Driven(gemini, scenes.scene([{ say: 'READY', tool: 'bash', args: { command: 'sleep 60' } }, { listen: true }]))
    await life.saw('tool_call')
    life.interrupt()
    await life.saw('turn_ended', ({ how }) => how === 'interrupted')
    life.message('as you like')
    const { events } = await life.ended
    expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['interrupted', 'completed'])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
  })

  test('[H32] a session that cannot be loaded begins anew', async () => {
    const { events } = await new Driven(gemini, scenes.scene([{ say: 'anew' }], { session: '00000000-0000-4000-8000-00000000dead' })).ended
    expect(said(events, 'program')).toEqual([expect.stringContaining('begins anew')])
    expect(said(events)).toEqual(['anew'])
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test('[H32] what an earlier life said is not told again, loaded or not', async () => {
    const [home, cwd] = [temporaryFolder(), temporaryFolder()]
    const first = await new Driven(gemini, scenes.scene([{ say: 'the first life' }], { home, cwd })).ended
    const [ready] = of(first.events, 'ready')
    const { events } = await new Driven(gemini, scenes.scene([{ say: 'the second life' }], { home, cwd, session: ready?.session ?? null }))
      .ended
    expect(said(events)).toEqual(['the second life'])
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test('[H33] where it is denied, it edits and runs nothing', async () => {
    const steps = [
      { tool: 'write', args: { path: 'here.txt', content: 'x' } },
      { tool: 'bash', args: { command: 'touch by-command' } },
      { say: 'over' },
    ]
    const { events } = await new Driven(gemini, scenes.scene(steps, { approvals: 'deny' })).ended
    expect(of(events, 'tool_result').map(({ ok }) => ok)).toEqual([true, false])
  })

  test('[H35] a limit of the provider is told as one', async () => {
    const { events } = await new Driven(gemini, scenes.scene([{ error: { status: 429, times: 99 } }])).ended
    expect(of(events, 'limit_reached')).toHaveLength(1)
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H39] the tokens of a turn are all of it', async () => {
    const { events } = await new Driven(gemini, scenes.scene([{ tool: 'bash', args: { command: 'true' } }, { say: 'done' }])).ended
    expect(of(events, 'usage')).toMatchObject([{ input_tokens: 2_400, output_tokens: 84 }])
  })
})

scenes.findsOurTools(gemini)
scenes.recordTapes(gemini)
