import { appendFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { realVersion } from '../../src/testing/real-programs.ts'
import { script } from '../../src/testing/scripted-model/index.ts'
import { until } from '../../src/testing/signals.ts'
import { survivors } from '../../src/testing/survivors.ts'
import { type Played, wanted } from './programs.ts'
import type { Finding } from './scenarios.ts'
import { Site } from './site.ts'

const PROMPT_BYTES = 130 * 1_024
const INTERACTIVE = ['claude', 'codex']

declare module 'vitest' {
  interface TaskMeta {
    /** Read by scripts/test-real.mjs, which makes the table of it. */
    real?: { program: string; version: string; scenario: string } & Finding
  }
}

/** What a person has answered once, when they first used the program in their own checkout. */
const USED_BEFORE: Record<string, (home: string, repo: string) => void> = {
  claude(home, repo) {
    const trusted = { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true }
    const customApiKeyResponses = { approved: ['sk-not-a-key'.slice(-20)], rejected: [] }
    const settings = { hasCompletedOnboarding: true, theme: 'dark', customApiKeyResponses, projects: { [realpathSync(repo)]: trusted } }
    writeFileSync(join(home, '.claude.json'), JSON.stringify(settings))
  },
  codex: (home) => appendFileSync(join(home, '.codex/config.toml'), '[notice.model_migrations]\n"gpt-5.5" = "gpt-6-sol"\n'),
}

async function open(program: Played): Promise<Site> {
  let home = ''
  const configure: Played['configure'] = (at, model) => {
    home = at
    return program.configure(at, model)
  }
  const site = await Site.open({ ...program, configure })
  const { repos } = await site.daemon.call('repo_list')
  USED_BEFORE[program.name]?.(home, repos[0].path)
  return site
}

for (const program of wanted().filter(({ name }) => INTERACTIVE.includes(name)))
  describe(`${program.name} in a terminal`, () => inTerminal(program))

function inTerminal(program: Played): void {
  test('a prompt of 130 KB arrives whole and is answered; then nothing of it is left', async ({ task: { meta } }) => {
    const site = await open(program)
    onTestFinished(() => site.close())
    const { daemon, model } = site
    const task = await site.task(() => [])
    await daemon.call('task_update', { task_id: task, task_type: 'PAIR', description: 'Answer.' })
    const lines = Array.from({ length: 4_000 }, (_, i) => `Line ${i}: the quick brown fox, "quoted" and $(not run).`)
    const message = `${lines.join('\n').slice(0, PROMPT_BYTES)}\n${script([{ say: 'It is ANSWERED.' }])}`
    const began = performance.now()
    const { session } = await daemon.call('session_open', { task_id: task, program: program.name, message })
    expect(session).toMatchObject({ state: 'open' })
    const now = async () => (await daemon.call('session_exists', { task_id: task })).session
    const shows = async (history = 0) => (await daemon.call('session_read', { task_id: task, history })).screen as string
    const settled = async () => !['waiting', 'needs_input'].includes((await now()).prompt)
    await until(settled, 45_000).catch(async (error) => {
      throw new Error(`${error.message}\n${JSON.stringify(await now())}\n${await shows()}`)
    })
    const sentMs = performance.now() - began
    expect((await now()).prompt, await shows()).toBe('sent')
    const whole = JSON.stringify(message.slice(0, PROMPT_BYTES)).slice(1, -1)
    await until(() => model.requests.some(({ body }) => JSON.stringify(body).includes(whole)), 30_000)
    // Not what stands in the prompt itself.
    const answered = async () => /^[●•⏺] It is ANSWERED[.]/m.test(await shows())
    await until(answered, 30_000).catch(async (error) => {
      throw new Error(`${error.message}\n${await shows(200)}`)
    })
    const offered = () => model.requests.some(({ body }) => /mcp__signalbox|signalbox_task_get/.test(JSON.stringify(body)))
    await until(async () => offered() || (await daemon.call('system_health')).mcp_sessions > 0, 30_000)
    expect(await daemon.call('session_close', { task_id: task })).toMatchObject({ closed: true })
    expect(survivors(daemon.home)).toEqual([])
    const seconds = sentMs / 1_000
    meta.real = { program: program.name, version: realVersion(program.name), scenario: 'a prompt of 130 KB in a terminal', seconds }
  })
}
