import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import { Driven, temporaryFolder } from '../../testing/harness.ts'
import type { RealProgram } from '../../testing/real-programs.ts'
import type { Step } from '../../testing/scripted-model/index.ts'
import { acp } from './harness.ts'
import { of, RealScenes, said } from './real-scenes.ts'

/** Codex runs a command without asking, where it cannot write; its model has to want more. */
const escalated = (cmd: string) => ({ cmd, sandbox_permissions: 'require_escalated', justification: 'as the test says' })

const PROGRAMS: [RealProgram, (command: string) => Step][] = [
  ['claude-agent-acp', (command) => ({ tool: 'bash', args: { command } })],
  ['codex-acp', (command) => ({ tool: 'exec_command', args: escalated(command) })],
]

describe.each(PROGRAMS)('acp with %s', (program, asks) => {
  const scenes = new RealScenes(program)

  harnessContract({
    harness: acp,
    scene: () => scenes.scene([{ say: 'hello' }]),
    program: scenes.live(asks('touch asked-for')),
    hostileLines: ['{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'],
  })

  scenes.findsOurTools(acp)

  scenes.keepsItsWord(acp)

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

  test('[H35] a key that is refused says what to do', async () => {
    const { events } = await new Driven(acp, scenes.scene([{ error: { status: 401, times: 999 } }])).ended
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringContaining('not logged in') }])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })
})

describe('acp with claude-agent-acp', () => {
  const scenes = new RealScenes('claude-agent-acp')
  scenes.refusesTooLong(acp)
  scenes.runsNothingOf(acp, (leave) => {
    const hook = (name: string) => [{ hooks: [{ type: 'command', command: leave(name).join(' ') }] }]
    const settings = { hooks: { SessionStart: hook('start'), UserPromptSubmit: hook('prompt'), Stop: hook('stop') } }
    const [command, ...args] = leave('server')
    return {
      '.claude/settings.json': JSON.stringify({ ...settings, enableAllProjectMcpServers: true, apiKeyHelper: leave('helper').join(' ') }),
      '.claude/settings.local.json': JSON.stringify({ hooks: { SessionStart: hook('local') } }),
      '.mcp.json': JSON.stringify({ mcpServers: { theirs: { command, args } } }),
    }
  })
})

describe('acp with codex-acp', () => {
  const scenes = new RealScenes('codex-acp')
  // Claude Code refuses such a command itself.
  scenes.showsAll(acp, (command) => ({ tool: 'exec_command', args: escalated(command) }))
  scenes.isNotStartedBeside(acp, '.codex/config.toml', (leave) => {
    const [command, file] = leave('theirs')
    return `[mcp_servers.theirs]\ncommand = "${command}"\nargs = ["${file}"]\n`
  })
})
