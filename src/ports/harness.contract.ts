import { basename } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Driven, launchOf, type Recording, replay, type Scene } from '../testing/harness.ts'
import { fc } from '../testing/property.ts'
import { type Harness, HarnessEvent, type HarnessState, METERS, MOST_TEXT } from './harness.ts'
import { EXIT_REASONS, type Exit, type Frame, STOP_REASONS } from './runner.ts'

/** How the real program is brought to do what the suite looks at. */
export interface Live {
  /** Several lines with characters of two to four bytes, every kind of thing that it can tell, and a good end. */
  endsWell(): Promise<Scene> | Scene
  /** Something is told, and then it ends badly. */
  fails(): Promise<Scene> | Scene
  /** It says `READY` and stays until it is ended. */
  stays(): Promise<Scene> | Scene
  /** It says `READY`, and after a message ends well, having said the message's text. For those that take messages. */
  listens?(): Promise<Scene> | Scene
  /** It asks permission for one thing, does it when it may, and ends well. For those that ask. */
  asks?(): Promise<Scene> | Scene
}

export interface HarnessUnderTest {
  harness: Harness
  /** A launch as good as any; nothing is started. */
  scene(): Promise<Scene> | Scene
  /** Where the program is not at hand, two of its lives are told from a recording; what needs it is left to the tier that has it. */
  program: Live | Record<'endsWell' | 'fails', Recording>
  /** The signal at which one that listens goes on, where it cannot hear that a message has come. */
  goesOn?: NodeJS.Signals
  /** It lives on after the end of its input, until a signal tells it to end. */
  lingers?: boolean
  /** Lines of its own protocol, also such as it would never print, as hostile as one can think of. */
  hostileLines: string[]
}

const MOST_STATE = 4 * 1024 * 1024
const RUNS = { numRuns: 40 }

/** What every harness keeps, whatever its program prints. */
export function harnessContract(given: HarnessUnderTest): void {
  const { harness, program } = given
  const live = 'stays' in program ? program : undefined
  const recorded = new Map<string, Promise<Recording>>()
  /** Each program is started once: the recording is what the tests are about. */
  const recording = (name: 'endsWell' | 'fails'): Promise<Recording> => {
    const from = program[name]
    const known =
      recorded.get(name) ??
      (typeof from === 'function' ? Promise.resolve(from()).then((scene) => new Driven(harness, scene).ended) : Promise.resolve(from))
    recorded.set(name, known)
    return known
  }

  describe(`harness ${harness.name}`, () => {
    test('[H1] a real life is told in the one vocabulary, from ready to exited', async () => {
      const { events, exit } = await recording('endsWell')
      expect(exit).toMatchObject({ reason: 'exited', code: 0 })
      expect(problems(events)).toEqual([])
      // What it prints aside may come before.
      expect(events.find((event) => event.type !== 'text' || event.from !== 'error')).toMatchObject({ type: 'ready' })
      expect(events.some((event) => event.type === 'text' && /[^\0-\x7f]/.test(event.text))).toBe(true)
      expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
    })

    test('[H2] its state is plain JSON: a daemon that takes over between any two frames tells the same', async () => {
      for (const name of ['endsWell', 'fails'] as const) {
        const tape = await recording(name)
        const every7th = everyByte(tape.frames).filter((at) => at % 7 === 0)
        const bytewise = { ...tape, frames: cutAt(tape.frames, every7th) }
        expect(replay(harness, bytewise, overJson)).toEqual(replay(harness, bytewise))
      }
    })

    test('[H2] decoding leaves the state that it was given as it was', async () => {
      const tape = await recording('endsWell')
      expect(replay(harness, tape, frozen)).toEqual(replay(harness, tape))
    })

    test('[H3] where the bytes were cut apart makes no difference, in a line or in a character', async () => {
      for (const name of ['endsWell', 'fails'] as const) {
        const tape = await recording(name)
        const { frames } = tape
        const whole = replay(harness, tape)
        expect(replay(harness, { ...tape, frames: cutAt(frames, everyByte(frames)) })).toEqual(whole)
        const cuts = fc.array(fc.nat(length(frames)), { maxLength: 40 })
        await fc.assert(
          fc.asyncProperty(cuts, async (at) => {
            await breathe()
            same(replay(harness, { ...tape, frames: cutAt(frames, at) }), whole)
          }),
          RUNS,
        )
      }
    })

    test('[H3] the same holds for garbage', async () => {
      await fc.assert(
        fc.asyncProperty(framesOf(garbage(given)), anyExit(), fc.array(fc.nat(1_000), { maxLength: 40 }), async (frames, exit, at) => {
          await breathe()
          same(replay(harness, { frames: cutAt(frames, at), exit }), replay(harness, { frames, exit }))
        }),
        RUNS,
      )
    })

    test('[H4] [H5] [H6] whatever is printed, and however it ends: nothing is thrown, the events fit together and are not too long', async () => {
      const { frames: real, state } = await recording('endsWell')
      const lines = real.filter((frame) => frame.stream === 'out').flatMap((frame) => frame.bytes.toString('utf8').split(/(?<=\n)/))
      const disordered = fc.array(fc.constantFrom(...lines), { maxLength: 30 }).map((all) => Buffer.from(all.join('')))
      await fc.assert(
        fc.asyncProperty(framesOf(fc.oneof(garbage(given), disordered)), anyExit(), async (frames, exit) => {
          await breathe()
          expect(problems(replay(harness, { state, frames, exit }, overJson))).toEqual([])
        }),
        RUNS,
      )
    })

    test('[H4] [H5] a line that is very long, or holds what nobody expects, is told in short', () => {
      for (const line of given.hostileLines) {
        const frames: Frame[] = [{ stream: 'out', at: 1, bytes: Buffer.from(`${line}\n`.repeat(2)) }]
        expect(problems(replay(harness, { frames, exit: exitOf({ code: 0 }) }, overJson))).toEqual([])
      }
    })

    test('[H4] a line that never ends is cut, and the state does not grow with it', () => {
      let state = harness.begin()
      const events: HarnessEvent[] = []
      for (let i = 0; i < 40; i++) {
        const step = harness.decode(state, { stream: i % 2 ? 'out' : 'err', at: i, bytes: Buffer.alloc(500_000, '"€') })
        state = step.state
        events.push(...step.events)
      }
      expect(JSON.stringify(state).length).toBeLessThan(MOST_STATE)
      events.push(...harness.end(state, exitOf({ code: 0 })))
      expect(problems(events)).toEqual([])
    })

    test('[H4] a program that opens more and more makes no state that grows for ever', () => {
      const short = shortLines(given)
      const flood = (from: number) => Array.from({ length: 500 }, (_, i) => short.map((line) => line.replaceAll('%', String(from + i))))
      const flooded = (state: HarnessState, from: number) =>
        harness.decode(state, { stream: 'out', at: 1, bytes: Buffer.from(`${flood(from).flat().join('\n')}\n`) }).state
      const early = flooded(harness.begin(), 10_000)
      const late = flooded(flooded(early, 20_000), 30_000)
      expect(JSON.stringify(late).length).toBeLessThanOrEqual(JSON.stringify(early).length * 1.1)
    })

    test('[H6] what ends badly is told as failed, once, and what we end ourselves is not', async () => {
      const { events } = await recording('fails')
      expect(events.filter((event) => event.type === 'failed' || event.type === 'limit_reached')).toHaveLength(1)
      expect(events.at(-1)).toMatchObject({ type: 'exited', ok: false })
      for (const reason of STOP_REASONS) {
        const told = replay(harness, { frames: [], exit: exitOf({ reason, code: 0 }) })
        expect(told.at(-1)).toMatchObject({ type: 'exited', ok: false, reason: expect.stringContaining(reason) })
        expect(told.some((event) => event.type === 'failed')).toBe(false)
      }
    })

    test('[H6] one that is killed, that never started or that nobody saw the end of did not end well', async () => {
      if (live) {
        const life = new Driven(harness, await live.stays())
        await life.saw('text', (event) => event.text.includes('READY'))
        life.kill('SIGKILL')
        const { events } = await life.ended
        expect(problems(events)).toEqual([])
        expect(events.at(-1)).toMatchObject({ ok: false, reason: expect.stringContaining('SIGKILL') })
      }
      for (const reason of ['spawn_failed', 'runner_lost'] as const) {
        const told = harness.end(harness.begin(), exitOf({ reason, code: null, detail: 'nothing of it was found' }))
        expect(told.at(-1)).toMatchObject({ type: 'exited', ok: false, reason: expect.stringContaining('nothing of it was found') })
      }
    })

    test('[H7] the token is in no argument and in no file of the worktree; what is written has a plain name', async () => {
      const launch = launchOf(await given.scene())
      const plan = harness.launch(launch)
      expect(plan.argv.filter((argument) => argument.includes(launch.mcp.token))).toEqual([])
      expect(launch.cwd).not.toContain(launch.mcp.token)
      expect(Object.keys(plan.files).filter((name) => name !== basename(name) || name.startsWith('.') || name === 'token')).toEqual([])
      expect(Object.values(plan.env).every((value) => !value.includes('\0'))).toBe(true)
      expect(harness.launch(launch)).toEqual(plan)
    })

    test('[H8] it has the meters that it says and no others, so that a limit can be refused before the start', async () => {
      const { events } = await recording('endsWell')
      const usage = events.filter((event) => event.type === 'usage')
      expect(METERS).toEqual(expect.arrayContaining(Object.keys(harness.meters)))
      expect(harness.meters.wall_clock).toBe('second')
      expect(usage.length > 0).toBe(harness.meters.tokens !== undefined)
      expect(usage.some((event) => event.cost_usd !== null)).toBe(harness.meters.cost !== undefined)
      if (harness.meters.turns) expect(events.filter((event) => event.type === 'turn_ended').length).toBeGreaterThan(0)
    })

    test('[H9] it takes messages and interrupts when it says so', async () => {
      const state = harness.begin()
      if (!harness.can.message) expect(harness.message(state, 'hello')).toBeUndefined()
      if (!harness.can.interrupt) expect(harness.interrupt(state)).toBeUndefined()
      if (!harness.can.approve) expect(harness.decide(state, 'one', { allow: true, message: '' })).toBeUndefined()
      if (live && harness.can.message) {
        const life = new Driven(harness, await (live.listens as () => Promise<Scene>)())
        await life.saw('text', (event) => event.text.includes('READY'))
        life.message('the Zürich one, 🚂')
        if (given.goesOn) life.kill(given.goesOn)
        await life.saw('text', (event) => event.from === 'agent' && event.text.includes('the Zürich one, 🚂'))
        const { events } = await life.ended
        expect(events.filter((event) => event.type === 'text' && event.from === 'person')).toHaveLength(1)
        expect(events.at(-1)).toMatchObject({ type: 'exited', ok: true })
      }
      if (live && harness.can.interrupt) {
        const life = new Driven(harness, await live.stays())
        await life.saw('text', (event) => event.text.includes('READY'))
        life.interrupt()
        life.closeInput()
        if (given.lingers) life.kill('SIGTERM')
        const { events } = await life.ended
        expect(events.filter((event) => event.type === 'turn_ended').at(-1)).toMatchObject({ how: 'interrupted' })
      }
    })

    if (live && harness.can.approve)
      test('[H9] what it asks permission for is told, and done or left as the answer says', async () => {
        for (const allow of [true, false]) {
          const life = new Driven(harness, { ...(await (live.asks as () => Promise<Scene>)()), approvals: 'ask' })
          const { id } = await life.saw('approval_asked')
          life.decide(id, { allow, message: 'as the test says' })
          const { events } = await life.ended
          expect(events.filter((event) => event.type === 'approval_asked')).toHaveLength(1)
          const results = events.filter((event) => event.type === 'tool_result')
          expect(results.at(-1)?.ok).toBe(allow)
        }
      })

    test('[H9] what is sent to it is told when it is sent, not again when its bytes come by', () => {
      const bytes = Buffer.from(given.hostileLines.join('\n'))
      expect(harness.decode(harness.begin(), { stream: 'in', at: 1, bytes }).events).toEqual([])
    })

    test('[H10] it says whether its program is here, or what to do about it, and refuses options that it does not know', async () => {
      const probe = await harness.probe()
      expect(probe.found ? probe.version : probe.install).toMatch(/\S/)
      const { options } = await given.scene()
      expect(harness.options.safeParse(options).success).toBe(true)
      expect(harness.options.safeParse({ ...options, nobody_knows: true }).success).toBe(false)
    })
  })
}

/** To compare them by their text is what makes hundreds of cases affordable. */
function same(told: HarnessEvent[], expected: HarnessEvent[]): void {
  if (JSON.stringify(told) !== JSON.stringify(expected)) expect(told).toEqual(expected)
}

/** Everything that is wrong with a whole story. */
function problems(events: HarnessEvent[]): string[] {
  return [...misfits(events), ...unbalanced(events), ...tooLong(events)]
}

function misfits(events: HarnessEvent[]): string[] {
  const wrong = events.filter((event) => !HarnessEvent.safeParse(event).success).map((event) => `does not fit: ${JSON.stringify(event)}`)
  const exits = events.filter((event) => event.type === 'exited')
  return exits.length === 1 && events.at(-1) === exits[0] ? wrong : [...wrong, 'exited is not the last, or not told once']
}

function unbalanced(events: HarnessEvent[]): string[] {
  const found: string[] = []
  const open = new Set<string>()
  const asked = new Set<string>()
  let turn = false
  for (const event of events) {
    if (event.type === 'turn_started' && turn) found.push('a turn in a turn')
    if (event.type === 'turn_ended' && !turn) found.push('a turn ended that had not begun')
    if (event.type === 'turn_started' || event.type === 'turn_ended') turn = event.type === 'turn_started'
    if (event.type === 'tool_call' && open.has(event.id)) found.push(`two calls ${event.id} at once`)
    if (event.type === 'tool_call') open.add(event.id)
    if (event.type === 'approval_asked') asked.add(event.id)
    // A question that is not asked any more is told by its id.
    const closes = (id: string) => open.delete(id) || asked.delete(id)
    if (event.type === 'tool_result' && !closes(event.id)) found.push(`a result of no call, or a second one: ${event.id}`)
  }
  return turn ? [...found, 'a turn that never ended'] : found
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNSAFE = /[\0\x1b\x07\x08]/

function tooLong(events: HarnessEvent[]): string[] {
  const texts = events.flatMap((event) => Object.values(event).filter((value) => typeof value === 'string'))
  return [
    ...texts.filter((text) => text.length > MOST_TEXT).map((text) => `a text of ${text.length} characters`),
    ...texts
      .filter((text) => UNSAFE.test(text) || !text.isWellFormed())
      .map((text) => `cannot be stored or shown: ${JSON.stringify(text)}`),
  ]
}

/** The long ones have a test of their own: in every one of a thousand cases they would cost minutes. */
const shortLines = ({ hostileLines }: HarnessUnderTest) => hostileLines.filter((line) => line.length < 1_000)

function garbage(given: HarnessUnderTest): fc.Arbitrary<Buffer> {
  const odd = [
    '\x1b[31mred\x1b[0m',
    '\x1b]0;title\x07',
    '\x1b]8;;x',
    '\0',
    '\r',
    '\r\n',
    '\n',
    '{',
    '{"type":',
    'null\n',
    '[]\n',
    '1e999\n',
    '"\\ud800"\n',
  ]
  const known = [...odd, ...shortLines(given).map((line) => `${line}\n`)].map((text) => Buffer.from(text))
  const piece = fc.oneof(
    fc.constantFrom(...known),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  )
  return fc.array(piece, { maxLength: 15 }).map((pieces) => Buffer.concat(pieces))
}

function framesOf(bytes: fc.Arbitrary<Buffer>): fc.Arbitrary<Frame[]> {
  const frame = fc.record({ stream: fc.constantFrom('out', 'out', 'err', 'in') as fc.Arbitrary<Frame['stream']>, bytes })
  return fc.array(frame, { maxLength: 5 }).map((frames) => frames.map((one, at) => ({ ...one, at: at * 10 })))
}

function anyExit(): fc.Arbitrary<Exit> {
  return fc.record({
    reason: fc.constantFrom(...EXIT_REASONS),
    code: fc.constantFrom(null, 0, 1, 75, 130, 255),
    signal: fc.constantFrom(null, 'SIGKILL', 'SIGINT'),
    detail: fc.constantFrom('', 'ENOENT', '\x1b[31m\0'),
    at: fc.nat(),
  })
}

function exitOf(more: Partial<Exit>): Exit {
  return { reason: 'exited', code: 0, signal: null, detail: '', at: 1, ...more }
}

function cutAt(frames: Frame[], places: number[]): Frame[] {
  let from = 0
  return frames.flatMap((frame) => {
    const inner = [...new Set(places)].map((place) => place - from).filter((place) => place > 0 && place < frame.bytes.length)
    from += frame.bytes.length
    const edges = [0, ...inner.sort((a, b) => a - b), frame.bytes.length]
    return edges.slice(1).map((end, i) => ({ ...frame, bytes: frame.bytes.subarray(edges[i], end) }))
  })
}

/** A test that only computes keeps the process from seeing that a connection was closed, and the next one writes into it. */
const breathe = () => new Promise((resolve) => setImmediate(resolve))

const length = (frames: Frame[]) => frames.reduce((sum, frame) => sum + frame.bytes.length, 0)
const everyByte = (frames: Frame[]) => Array.from({ length: length(frames) }, (_, i) => i)
const overJson = (state: HarnessState): HarnessState => JSON.parse(JSON.stringify(state))

function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) for (const inner of Object.values(Object.freeze(value))) frozen(inner)
  return value
}
