import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Harness } from '../ports/harness.ts'
import type { Interactive } from '../ports/terminal.ts'
import { launchOf, temporaryFolder } from '../testing/harness.ts'
import { harnesses, interactives, PROGRAMS } from './programs.ts'

const LAUNCH = { folder: '/runs/it', cwd: '/work "quoted"', mcp: { url: 'http://127.0.0.1:3001/mcp' } }
const PARTS = ['program.ts', 'harness.ts', 'interactive.ts']

/** Every folder with a part of an agent program in it. */
const FOLDERS = readdirSync(import.meta.dirname)
  .filter((name) => !name.endsWith('-shared') && PARTS.some((part) => existsSync(join(import.meta.dirname, name, part))))
  .toSorted()

const BOTH = PROGRAMS.flatMap(({ harness, interactive }): [string, Harness, Interactive][] =>
  'without' in harness || 'without' in interactive ? [] : [[harness.name, harness, interactive]],
)

beforeEach(() => {
  vi.stubEnv('CODEX_HOME', temporaryFolder())
  // The files that come after this one in the same process need their PATH.
  return () => vi.unstubAllEnvs()
})

describe('the agent programs', () => {
  test.each(FOLDERS)('[H43] %s is in the list, with all that its folder holds; what it lacks, it says why', async (folder) => {
    const index = await import(`./${folder}/index.ts`)
    const program = PROGRAMS.find((one) => Object.values(index).includes(one))
    if (!program) throw new Error(`adapters/${folder} is no line of adapters/programs.ts`)
    for (const [what, part] of Object.entries(program)) {
      const holds = existsSync(join(import.meta.dirname, folder, `${what}.ts`))
      expect('without' in part, `${what} of ${folder}`).toBe(!holds)
      if ('without' in part) expect(part.without, folder).toMatch(/\w+ \w+ \w+/)
      else expect(part.name, what).toBe(folder)
    }
  })

  test('[H43] none is in the list without a folder of its own', () => {
    const names = PROGRAMS.flatMap(({ harness, interactive }) =>
      [harness, interactive].flatMap((part) => ('name' in part ? part.name : [])),
    )
    expect([...new Set(names)].toSorted()).toEqual(FOLDERS)
  })

  test.each(BOTH)('[H43] %s needs the same version in a terminal, and says the same way to get it', async (name, harness, interactive) => {
    const folder = temporaryFolder()
    vi.stubEnv('PATH', folder)
    const none = await harness.probe()
    expect(none).toMatchObject({ found: false, install: expect.stringContaining(name) })
    expect(await interactive.probe()).toEqual(none)
    writeFileSync(join(folder, name), '#!/bin/sh\necho 0.0.9\n', { mode: 0o755 })
    const old = await harness.probe()
    expect(old).toMatchObject({ found: false, why: expect.stringMatching(/too old; at least \d+\.\d+\.\d+ is needed/) })
    expect(await interactive.probe()).toEqual(old)
    expect(interactive.title).toBe(harness.title)
  })

  test.each(BOTH)('[H43] %s is the same file, with the same environment, in a terminal', (name, harness, interactive) => {
    const folder = temporaryFolder()
    vi.stubEnv('PATH', folder)
    writeFileSync(join(folder, name), '', { mode: 0o755 })
    writeFileSync(join(process.env.CODEX_HOME as string, 'config.toml'), '[model_providers.mine]\nenv_key = "MY_KEY"\n')
    const [driven, shared] = [harness.launch(launchOf({ options: {} })), interactive.launch(LAUNCH)]
    expect(shared.argv[0]).toBe(join(folder, name))
    expect(driven.argv[0]).toBe(shared.argv[0])
    expect(shared.inherit.toSorted()).toEqual(driven.inherit.toSorted())
    if (name === 'codex') expect(shared.inherit).toContain('MY_KEY')
  })

  test('[H18] they are found by name', () => {
    expect(harnesses.names()).toContain('scripted')
    expect(interactives.names()).toContain('shell')
    for (const list of [harnesses, interactives]) {
      for (const name of list.names()) expect(list.get(name)?.name).toBe(name)
      for (const name of ['nano', 'toString']) expect(list.get(name)).toBeUndefined()
    }
  })
})

describe('in a terminal', () => {
  test.each(interactives.names())('[TM12] %s gets our tools, with the token in no argument and in no file', (name) => {
    const plan = interactives.get(name)?.launch(LAUNCH)
    const all = JSON.stringify(plan)
    expect(all).not.toContain('sbx_')
    if (name === 'shell') return expect(plan?.signs).toBeUndefined()
    expect(all).toContain(LAUNCH.mcp.url)
    expect(all).toContain('SIGNALBOX_TOKEN')
  })

  test('[TM12] Codex is told to trust the worktree, and takes our server beside one of the same name', () => {
    const argv = () => interactives.get('codex')?.launch(LAUNCH).argv
    expect(argv()).toContain('projects={ "/work \\"quoted\\"" = { trust_level = "trusted" } }')
    expect(argv()).toContain('mcp_servers.signalbox.url="http://127.0.0.1:3001/mcp"')
    writeFileSync(join(process.env.CODEX_HOME as string, 'config.toml'), '[mcp_servers.signalbox]\nurl = "http://127.0.0.1:9/mcp"\n')
    expect(argv()).toContain('mcp_servers.signalbox.enabled=false')
    expect(argv()).toContain('mcp_servers.signalbox_run.url="http://127.0.0.1:3001/mcp"')
  })

  test.each([
    ['claude', '"timeout":600000'],
    ['codex', 'tool_timeout_sec=300'],
  ])('[TM12] %s does not give up on our waits', (name, says) => {
    const { argv, files } = interactives.get(name)?.launch(LAUNCH) ?? {}
    expect(JSON.stringify([argv, Object.values(files ?? {}).map((text) => JSON.parse(text))])).toContain(says)
  })
})
