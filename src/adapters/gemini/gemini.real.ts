import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { Driven, temporaryFolder } from '../../testing/harness.ts'
import { of, RealScenes, said } from '../acp/real-scenes.ts'
import { gemini } from './harness.ts'

const scenes = new RealScenes('gemini')

harnessContract({
  harness: gemini,
  scene: () => scenes.scene([{ say: 'hello' }]),
  program: scenes.live(),
  lingers: true,
  hostileLines: ['{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'],
})

describe('gemini, the real program', () => {
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

  test('[H39] the tokens of a turn are all of it', async () => {
    const { events } = await new Driven(gemini, scenes.scene([{ tool: 'bash', args: { command: 'true' } }, { say: 'done' }])).ended
    expect(of(events, 'usage')).toMatchObject([{ input_tokens: 2_400, output_tokens: 84 }])
  })
})

test('[H40] what it would write is shown', async () => {
  const steps = [{ tool: 'write', args: { path: 'w.txt', content: '#!/bin/sh\nrm -rf ~\n' } }, { say: 'over' }]
  const life = new Driven(gemini, scenes.scene(steps, { approvals: 'ask' }))
  const { id, input } = await life.saw('approval_asked')
  expect(input).toContain('w.txt')
  expect(input).toContain('rm -rf ~')
  life.decide(id, { allow: false, message: '' })
  await life.ended
})

test.each([['.gemini/settings.json', (command: string, args: string[]) => JSON.stringify({ mcpServers: { theirs: { command, args } } })]])(
  '[H41] what it would run of %s keeps it from being started where somebody is asked',
  async (file, text) => {
    const [cwd, left] = [temporaryFolder(), temporaryFolder()]
    mkdirSync(join(cwd, '.gemini'))
    writeFileSync(join(cwd, file), text('/usr/bin/touch', [join(left, 'server')]))
    for (const approvals of ['ask', 'deny'] as const)
      expect(() => new Driven(gemini, scenes.scene([{ say: 'hello' }], { cwd, approvals }))).toThrow(file)
    await new Driven(gemini, scenes.scene([{ say: 'hello' }], { cwd, approvals: 'allow' })).ended
    expect(readdirSync(left)).toEqual(['server'])
  },
)

scenes.keepsItsWord(gemini)
scenes.refusesTooLong(gemini)
scenes.showsAll(gemini, (command) => ({ tool: 'bash', args: { command } }))
scenes.findsOurTools(gemini)
scenes.recordTapes(gemini)
