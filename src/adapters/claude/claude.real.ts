import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessEvent } from '../../ports/harness.ts'
import { Driven, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { realPath, realVersion } from '../../testing/real-programs.ts'
import { type Model, type Step, script, startModel } from '../../testing/scripted-model/index.ts'
import { saveTape } from '../../testing/tapes.ts'
import { claude } from './harness.ts'

let model: Model

// The programs are started with the environment of this process.
beforeEach(async () => {
  model = await startModel()
  Object.assign(process.env, { PATH: realPath(), ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-not-a-key' })
  return () => model.close()
})

/** In a home of its own unless it is to find what another life left. */
function scene(steps: Step[], { home = temporaryFolder(), ...more }: Partial<Scene> & { home?: string } = {}): Scene {
  process.env.HOME = home
  return { options: {}, brief: `Do this. ${script(steps)}`, ...more }
}

const ENDS_WELL: Step[] = [
  { think: 'A look first.', say: 'I look around: Zürich → 🚂', tool: 'bash', args: { command: 'echo "grüezi €"; echo aside >&2' } },
  { tool: 'write', args: { path: 'note.txt', content: 'čtyři\n' }, usage: { input: 700, output: 30, cached: 5_000 } },
  { tool: 'bash', args: { command: 'exit 3' } },
  { say: 'Done: {{last}} ✓' },
]
const FAILS: Step[] = [
  { say: 'One step, then the model is overloaded.', tool: 'bash', args: { command: 'true' } },
  { error: { status: 529, times: 99 }, say: 'never' },
]
const STAYS: Step[] = [{ say: 'READY', tool: 'bash', args: { command: 'true' } }, { hang: true }, { say: 'never' }]
const WORKS_A_WHILE = { say: 'READY', tool: 'bash', args: { command: `python3 -c 'import time; time.sleep(3)'` } }

harnessContract({
  harness: claude,
  scene: () => scene([{ say: 'hello' }]),
  program: {
    endsWell: () => scene(ENDS_WELL),
    fails: () => scene(FAILS),
    stays: () => scene(STAYS),
    listens: () => scene([WORKS_A_WHILE, { listen: true }, { say: 'That is all.' }]),
    asks: () => scene([{ tool: 'bash', args: { command: 'touch asked-for' } }, { say: 'over' }]),
  },
  // Those of the suite without the program are enough.
  hostileLines: ['{"type":"result"}'],
})

const of = <T extends HarnessEvent['type']>(events: HarnessEvent[], type: T) =>
  events.filter((event): event is Extract<HarnessEvent, { type: T }> => event.type === type)
const sum = (events: HarnessEvent[], field: 'input_tokens' | 'output_tokens' | 'cached_tokens') =>
  of(events, 'usage').reduce((all, event) => all + event[field], 0)
const cost = (events: HarnessEvent[]) => of(events, 'usage').reduce((all, event) => all + (event.cost_usd ?? 0), 0)

describe('claude, the real program', () => {
  test('[H19] two messages in one turn have one result, after which the program ends', async () => {
    const life = new Driven(claude, scene([WORKS_A_WHILE, { listen: true }, { say: 'both answered' }]))
    await life.saw('text', ({ text }) => text.includes('READY'))
    life.message('/context is no command of yours')
    const { events, exit } = await life.ended
    expect(exit).toMatchObject({ code: 0 })
    expect(of(events, 'turn_started')).toHaveLength(1)
    expect(of(events, 'text').map(({ text }) => text)).toContainEqual(expect.stringContaining('heard: Message: /context is no command'))
  })

  test('[H24] a file that is too long to be shown is refused, and it goes on', async () => {
    const steps = [{ tool: 'write', args: { path: 'big.txt', content: 'x'.repeat(1_100_000) } }, { say: 'over' }]
    const { events } = await new Driven(claude, scene(steps, { approvals: 'ask' })).ended
    expect(of(events, 'approval_asked')).toEqual([])
    const said = of(events, 'text').map(({ text }) => text)
    expect(said).toContainEqual(expect.stringContaining('which nobody could read: refused'))
    expect(said).toContain('over')
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
  })

  test('[H19] an interrupted one waits, and goes on with the next message to a good end', async () => {
    const life = new Driven(claude, scene([{ say: 'READY', tool: 'bash', args: { command: `python3 -c 'import time; time.sleep(60)'` } }]))
    await life.saw('tool_call')
    life.interrupt()
    await life.saw('turn_ended', ({ how }) => how === 'interrupted')
    life.message(script([{ say: 'as you like' }]))
    const { events } = await life.ended
    expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['interrupted', 'completed'])
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
  })

  test('[H20] what is used is told once, also by a life that goes on after an orderly end and after a kill', async () => {
    const [home, cwd] = [temporaryFolder(), temporaryFolder()]
    const first = new Driven(claude, scene([{ tool: 'bash', args: { command: 'true' } }, { say: 'one' }], { home, cwd }))
    const { events: before } = await first.ended
    expect([sum(before, 'input_tokens'), sum(before, 'output_tokens')]).toEqual([2_400, 84])
    const { session } = await first.saw('ready')
    const again = { home, cwd, session }
    const second = new Driven(claude, scene([{ tool: 'bash', args: { command: 'true' } }, { hang: true }], { ...again, run: 'run_2' }))
    await second.saw('tool_result')
    // What it answers to the question that follows every call.
    const counted = await second.saw('usage')
    expect(counted).toMatchObject({ input_tokens: 1_200, output_tokens: 42 })
    expect(counted.cost_usd).toBeCloseTo(cost(before) / 2)
    second.kill('SIGKILL')
    await second.ended
    const third = new Driven(claude, scene([{ say: 'three' }], { ...again, run: 'run_3' }))
    const { events: after } = await third.ended
    expect([sum(after, 'input_tokens'), sum(after, 'output_tokens')]).toEqual([1_200, 42])
    expect(await third.saw('ready')).toEqual({ type: 'ready', session })
    expect(JSON.stringify(model.requests.at(-1))).toContain('"true"')
  })

  test('[H21] a session that the program does not know is given up', async () => {
    const { events } = await new Driven(claude, scene([{ say: 'x' }], { session: '00000000-0000-4000-8000-00000000dead' })).ended
    expect(of(events, 'ready')).toEqual([{ type: 'ready', session: null }])
    expect(of(events, 'failed')).toEqual([{ type: 'failed', reason: expect.stringMatching(/00dead.*new session/) }])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H22] a limit of the provider is told with the time of its end', async () => {
    const resets = Math.floor(Date.now() / 1_000) + 7_200
    const headers = { 'anthropic-ratelimit-unified-status': 'rejected', 'anthropic-ratelimit-unified-reset': String(resets) }
    delete process.env.ANTHROPIC_API_KEY
    process.env.CLAUDE_CODE_OAUTH_TOKEN = 'sk-ant-oat01-not-a-token'
    const { events } = await new Driven(claude, scene([{ error: { status: 429, times: 99, headers } }])).ended.finally(() => {
      delete process.env.CLAUDE_CODE_OAUTH_TOKEN
    })
    expect(of(events, 'limit_reached')).toEqual([{ type: 'limit_reached', message: expect.any(String), resets_at: resets * 1_000 }])
    expect(of(events, 'failed')).toEqual([])
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H22] without such a time it is not known; a refused key and a dead server are failures that say what to do', async () => {
    const limited = await new Driven(claude, scene([{ error: { status: 429, times: 99, retryAfter: 3_600 } }])).ended
    expect(of(limited.events, 'limit_reached')).toMatchObject([{ resets_at: null }])
    const refused = await new Driven(claude, scene([{ error: { status: 401, times: 99 } }])).ended
    expect(of(refused.events, 'failed')).toMatchObject([{ reason: expect.stringContaining('ANTHROPIC_API_KEY') }])
    process.env.ANTHROPIC_BASE_URL = 'http://127.0.0.1:9'
    const dead = await new Driven(claude, scene([{ say: 'x' }])).ended
    expect(of(dead.events, 'failed')).toMatchObject([{ reason: expect.stringMatching(/refused/i) }])
    for (const { events } of [limited, refused, dead]) expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })

  test('[H23] where it is denied, it edits below its folder and nothing else, whatever the repository grants', async () => {
    const cwd = temporaryFolder()
    const elsewhere = temporaryFolder()
    // As an agent could commit it, below a folder that its user trusts.
    const home = temporaryFolder()
    writeFileSync(join(home, '.claude.json'), JSON.stringify({ projects: { [cwd]: { hasTrustDialogAccepted: true } } }))
    mkdirSync(join(cwd, '.claude'))
    writeFileSync(join(cwd, '.claude/settings.json'), JSON.stringify({ permissions: { allow: ['Bash', 'Write'] } }))
    const steps: Step[] = [
      { tool: 'write', args: { path: join(cwd, 'here.txt'), content: 'x' } },
      { tool: 'write', args: { path: join(elsewhere, 'there.txt'), content: 'x' } },
      { tool: 'bash', args: { command: 'touch by-command' } },
      { say: 'over' },
    ]
    const { events } = await new Driven(claude, scene(steps, { home, cwd, approvals: 'deny' })).ended
    expect([readdirSync(cwd), readdirSync(elsewhere)]).toEqual([['.claude', 'here.txt'], []])
    expect(of(events, 'tool_result').map(({ ok }) => ok)).toEqual([true, false, false])
    expect(of(events, 'text')).toContainEqual({ type: 'text', from: 'program', text: 'It was not allowed to use: Write, Bash.' })
    expect(events.at(-1)).toMatchObject({ ok: true })
  })

  test('[H22] ended by TERM, it was not done', async () => {
    const life = new Driven(claude, scene(STAYS))
    await life.saw('tool_result')
    life.kill('SIGTERM')
    const { events, exit } = await life.ended
    expect(exit.code).toBe(143)
    expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
  })
})

if (process.env.SIGNALBOX_TAPES)
  test.each([
    ['ends-well', ENDS_WELL],
    ['fails', FAILS],
  ])('the tape %s is recorded anew', async (name, steps) => {
    const [home, cwd] = [temporaryFolder(), temporaryFolder()]
    const recording = await new Driven(claude, scene(steps, { home, cwd })).ended
    const program = `claude ${realVersion('claude')}`
    saveTape(join(import.meta.dirname, `tapes/${name}.json`), program, recording, {
      [cwd]: '/work',
      [home]: '/home',
      [model.url]: 'http://model',
    })
  })
