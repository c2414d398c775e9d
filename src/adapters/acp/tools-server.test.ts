import { afterEach, beforeEach, expect, test } from 'vitest'
import { TestDaemon } from '../../testing/daemon.ts'
import { Driven, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { acp } from './harness.ts'

let daemon: TestDaemon
beforeEach(async () => {
  daemon = await TestDaemon.start()
  process.env.SIGNALBOX_HOME = daemon.home
})
afterEach(async () => {
  delete process.env.SIGNALBOX_HOME
  await daemon.remove()
})

const calling = (tools: object, token: string): Scene => ({
  options: { command: [process.execPath, `${import.meta.dirname}/agent.mjs`] },
  brief: `do tools ${JSON.stringify(tools)}`,
  token,
})
const spoken = (life: Driven) => life.events.flatMap((event) => (event.type === 'text' && event.from === 'agent' ? [event.text] : []))

test('[H37] the agent calls our tools by its own token, also while the daemon is away, which comes back on another port and socket', async () => {
  const life = new Driven(acp, calling({ name: 'agent_me', args: {}, later: {} }, daemon.token))
  await life.saw('tool_call')
  await daemon.end('SIGKILL')
  life.kill('SIGUSR2')
  const before = daemon
  daemon = await TestDaemon.start({ home: before.home, env: { XDG_RUNTIME_DIR: temporaryFolder() } })
  expect(daemon.url).not.toBe(before.url)
  const { events } = await life.ended
  expect(spoken(life)).toEqual([expect.stringContaining('"owner"'), expect.stringContaining('"owner"')])
  expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
})

test('[H37] with a token that holds no more it is nobody, not the owner of the folder', async () => {
  const life = new Driven(acp, calling({ name: 'agent_me', args: {} }, 'sbx_agent_that_has_ended'))
  await life.ended
  expect(spoken(life).join()).not.toContain('"owner"')
  expect(spoken(life).join()).toMatch(/AUTH|token/i)
})
