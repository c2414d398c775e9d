import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PROGRAMS } from '../../../test/real-agents/programs.ts'
import type { Live } from '../../ports/harness.contract.ts'
import type { Harness, HarnessEvent } from '../../ports/harness.ts'
import { TestDaemon } from '../../testing/daemon.ts'
import { Driven, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { type RealProgram, realPath, realVersion } from '../../testing/real-programs.ts'
import { type Model, type Step, script, startModel } from '../../testing/scripted-model/index.ts'
import { saveTape } from '../../testing/tapes.ts'

const ENDS_WELL: Step[] = [
  { say: 'I look around: Zürich → 🚂', tool: 'bash', args: { command: 'echo "grüezi €"; echo aside >&2' } },
  { tool: 'write', args: { path: 'note.txt', content: 'čtyři\n' } },
  { tool: 'bash', args: { command: 'exit 3' } },
  { say: 'Done: {{last}} ✓' },
]
const FAILS: Step[] = [
  { say: 'One step, then the key is not good any more.', tool: 'bash', args: { command: 'true' } },
  { error: { status: 401, times: 99 }, say: 'never' },
]
const STAYS: Step[] = [{ say: 'READY', tool: 'bash', args: { command: 'true' } }, { hang: true }, { say: 'never' }]
const SLEEPS: Step = { say: 'READY', tool: 'bash', args: { command: `python3 -c 'import time; time.sleep(60)'` } }
const WORKS_A_WHILE: Step = { say: 'READY', tool: 'bash', args: { command: `python3 -c 'import time; time.sleep(3)'` } }

/** The real program with a scripted model, and a daemon for the pipe to our tools to find. */
export class RealScenes {
  readonly program: RealProgram
  model!: Model
  daemon!: TestDaemon

  constructor(program: RealProgram) {
    this.program = program
    beforeAll(async () => {
      this.model = await startModel()
      this.daemon = await TestDaemon.start()
      process.env.SIGNALBOX_HOME = this.daemon.home
    })
    afterAll(async () => {
      await this.daemon.remove()
      await this.model.close()
    })
  }

  /** In a home of its own unless it is to find what another life left. The programs are started with the environment of this process. */
  scene(steps: Step[], { home = temporaryFolder(), ...more }: Partial<Scene> & { home?: string } = {}): Scene {
    const played = PROGRAMS.find(({ name }) => name === this.program)
    if (!played) throw new Error(`nothing says how ${this.program} is played`)
    Object.assign(process.env, played.configure(home, this.model.url), { HOME: home, PATH: realPath() })
    // It tries a refused key for three minutes.
    process.env.CLAUDE_CODE_MAX_RETRIES = '1'
    const brief = `Do this. ${script(steps)}`
    const model = played.model ? { model: played.model } : {}
    return { options: played.options?.() ?? {}, brief, token: this.daemon.token, ...model, ...more }
  }

  live(asking: Step = { tool: 'bash', args: { command: 'touch asked-for' } }): Live {
    return {
      endsWell: () => this.scene(ENDS_WELL),
      fails: () => this.scene(FAILS),
      stays: () => this.scene(STAYS),
      listens: () => this.scene([WORKS_A_WHILE, { say: 'first' }, { listen: true }, { say: 'That is all.' }]),
      asks: () => this.scene([asking, { say: 'over' }]),
    }
  }

  /** Denied whatever asks, and yet they are called. */
  findsOurTools(harness: Harness): void {
    test('[H37] our tools are there, and nobody is asked for them', async () => {
      const steps: Step[] = [{ tool: 'mcp:signalbox.agent_me', args: {} }, { say: 'It says {{last}}' }]
      for (const approvals of ['allow', 'ask', 'deny'] as const) {
        const { events } = await new Driven(harness, this.scene(steps, { approvals })).ended
        expect(of(events, 'approval_asked')).toEqual([])
        expect(of(events, 'tool_result')).toMatchObject([{ ok: true, output: expect.stringContaining('owner') }])
        expect(said(events).at(-1)).toContain('owner')
      }
    })
  }

  /** What an ACP agent keeps in any of its programs. */
  keepsItsWord(harness: Harness): void {
    test('[H31] an interrupted one waits, and goes on with the next message to a good end', async () => {
      const life = new Driven(harness, this.scene([SLEEPS, { listen: true }]))
      await life.saw('tool_call')
      life.interrupt()
      await life.saw('turn_ended', ({ how }) => how === 'interrupted')
      life.message('as you like')
      const { events } = await life.ended
      expect(of(events, 'turn_ended').map(({ how }) => how)).toEqual(['interrupted', 'completed'])
      expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
    })

    test('[H35] a limit of the provider is told as one', async () => {
      const { events } = await new Driven(harness, this.scene([{ error: { status: 429, times: 999 } }])).ended
      expect(of(events, 'limit_reached')).toHaveLength(1)
      expect(of(events, 'failed')).toEqual([])
      expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
    })
  }

  /** `asks`: how its model wants a command of which the program asks. */
  showsAll(harness: Harness, asks: (command: string) => Step): void {
    test('[H40] an escape in a command hides nothing of it', async () => {
      const life = new Driven(harness, this.scene([asks('git status #\u001b]0;\nmkdir -p pwned'), { say: 'over' }], { approvals: 'ask' }))
      const { id, input } = await life.saw('approval_asked')
      expect(input).toContain('mkdir -p pwned')
      expect(input).toMatch(/⟨U\+001B⟩|\\u001b/)
      life.decide(id, { allow: false, message: '' })
      await life.ended
    })
  }

  refusesTooLong(harness: Harness): void {
    test('[H33] a file that is too long to be shown is refused, and it goes on', async () => {
      const steps: Step[] = [{ tool: 'write', args: { path: 'big.txt', content: 'x'.repeat(1_100_000) } }, { say: 'over' }]
      const { events } = await new Driven(harness, this.scene(steps, { approvals: 'ask' })).ended
      expect(of(events, 'approval_asked')).toEqual([])
      expect(said(events, 'program')).toContainEqual(expect.stringContaining('which nobody could read: refused'))
      expect(said(events)).toContain('over')
    })
  }

  /** `files`: each says that a program is to be run, which leaves a file behind. */
  runsNothingOf(harness: Harness, files: (leave: Leave) => Record<string, string>): void {
    test.each(['ask', 'deny'] as const)('[H41] with %s, nothing that the repository names is run', async (approvals) => {
      const { cwd, left } = repositoryWith(files)
      const { events } = await new Driven(harness, this.scene([{ say: 'hello' }], { cwd, approvals })).ended
      expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
      expect(left()).toEqual([])
      await new Driven(harness, this.scene([{ say: 'hello' }], { cwd, approvals: 'allow' })).ended
      expect(left()).not.toEqual([])
    })
  }

  /** Those that cannot be told not to run it. */
  isNotStartedBeside(harness: Harness, file: string, text: (leave: Leave) => string): void {
    test(`[H41] what it would run of ${file} keeps it from being started where somebody is asked`, async () => {
      const { cwd, left } = repositoryWith((leave) => ({ [file]: text(leave) }))
      for (const approvals of ['ask', 'deny'] as const)
        expect(() => new Driven(harness, this.scene([{ say: 'hello' }], { cwd, approvals }))).toThrow(file.split('/')[0])
      await new Driven(harness, this.scene([{ say: 'hello' }], { cwd, approvals: 'allow' })).ended
      expect(left()).toEqual(['theirs'])
    })
  }

  /** What is told without the program in `npm test`. */
  recordTapes(harness: Harness): void {
    if (!process.env.SIGNALBOX_TAPES) return
    test.each([
      ['ends-well', ENDS_WELL],
      ['fails', FAILS],
    ])('the tape %s is recorded anew', async (name, steps) => {
      const [home, cwd] = [temporaryFolder(), temporaryFolder()]
      const recording = await new Driven(harness, this.scene(steps, { home, cwd })).ended
      expect(recording.events.at(-1)).toMatchObject({ type: 'exited', ok: name === 'ends-well' })
      const file = join(import.meta.dirname, '..', harness.name, `tapes/${name}.json`)
      saveTape(file, `${this.program} ${realVersion(this.program)}`, recording, {
        [cwd]: '/work',
        [home]: '/home',
        [this.model.url]: 'http://model',
      })
    })
  }
}

/** The command that leaves a file of that name. */
type Leave = (name: string) => [string, string]

function repositoryWith(files: (leave: Leave) => Record<string, string>) {
  const [cwd, folder] = [temporaryFolder(), temporaryFolder()]
  mkdirSync(join(cwd, '.git'))
  for (const [name, text] of Object.entries(files((name) => ['/usr/bin/touch', join(folder, name)]))) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return { cwd, left: () => readdirSync(folder) }
}

export const of = <T extends HarnessEvent['type']>(events: HarnessEvent[], type: T) =>
  events.filter((event): event is Extract<HarnessEvent, { type: T }> => event.type === type)

export const said = (events: HarnessEvent[], from = 'agent') =>
  of(events, 'text').flatMap((event) => (event.from === from ? [event.text] : []))
