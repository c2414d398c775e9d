import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { Driven, temporaryFolder } from '../../testing/harness.ts'
import { of, RealScenes, said } from '../acp/real-scenes.ts'
import { opencode } from './harness.ts'

const scenes = new RealScenes('opencode')

harnessContract({
  harness: opencode,
  scene: () => scenes.scene([{ say: 'hello' }]),
  program: scenes.live(),
  hostileLines: ['{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'],
})

describe('opencode, the real program', () => {
  test('[H32] an earlier session goes on after a kill; what was said before is not told again', async () => {
    const [home, cwd] = [temporaryFolder(), temporaryFolder()]
    const first = new Driven(
      opencode,
      scenes.scene([{ say: 'READY', tool: 'bash', args: { command: 'true' } }, { hang: true }], { home, cwd }),
    )
    await first.saw('tool_result')
    first.kill('SIGKILL')
    await first.ended
    const { session } = await first.saw('ready')
    const { events } = await new Driven(opencode, scenes.scene([{ say: 'the second life' }], { home, cwd, session })).ended
    expect(of(events, 'ready')).toEqual([{ type: 'ready', session }])
    expect(said(events)).toEqual(['the second life'])
    expect(JSON.stringify(scenes.model.requests.at(-1))).toContain('READY')
  })

  test('[H32] a session that it does not know begins anew', async () => {
    const { events } = await new Driven(opencode, scenes.scene([{ say: 'anew' }], { session: 'ses_nobody' })).ended
    expect(said(events, 'program')).toEqual([expect.stringContaining('begins anew')])
    expect(said(events)).toEqual(['anew'])
  })

  test('[H33] where it is denied, it edits and runs nothing', async () => {
    const cwd = temporaryFolder()
    const steps = [
      { tool: 'write', args: { path: 'here.txt', content: 'x' } },
      { tool: 'bash', args: { command: 'touch by-command' } },
      { say: 'over' },
    ]
    const { events } = await new Driven(opencode, scenes.scene(steps, { cwd, approvals: 'deny' })).ended
    expect(of(events, 'tool_result').map(({ ok }) => ok)).toEqual([true, false])
    expect(existsSync(join(cwd, 'by-command'))).toBe(false)
  })

  test('[H36] a model is chosen, or nothing is begun', async () => {
    const { events } = await new Driven(opencode, scenes.scene([{ say: 'x' }], { model: 'nobody/has-it' })).ended
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringContaining('nobody/has-it') }])
    const chosen = await new Driven(opencode, scenes.scene([{ say: 'x' }], { model: 'scripted/scripted' })).ended
    expect(chosen.events.at(-1)).toMatchObject({ ok: true })
  })

  test('[H35] what it tries again without a word is told, and then the limit', async () => {
    const { events } = await new Driven(opencode, scenes.scene([{ error: { status: 429, times: 999, retryAfter: 1 } }])).ended
    expect(said(events, 'error').filter((line) => line.includes('stream error')).length).toBeGreaterThan(1)
    expect(of(events, 'limit_reached')).toMatchObject([{ message: expect.stringContaining('429') }])
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })
})

const plugin = (file: string) =>
  `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify(file)}, '')\nexport const Theirs = async () => ({})\n`
scenes.isNotStartedBeside(opencode, '.opencode/plugin/one.js', (leave) => plugin(leave('theirs')[1]))
scenes.isNotStartedBeside(opencode, 'opencode.json', (leave) =>
  JSON.stringify({ mcp: { theirs: { type: 'local', command: leave('theirs'), enabled: true } } }),
)
scenes.showsAll(opencode, (command) => ({ tool: 'bash', args: { command } }))
scenes.findsOurTools(opencode)
scenes.recordTapes(opencode)
