import { describe, expect, test } from 'vitest'
import type { Exit, Frame, Runner, RunSpec } from './runner.ts'

export interface RunnerUnderTest {
  runner: Runner
  /** Of the daemon that comes after that one. */
  later: Runner
  /** A name that no run has had; nothing of it outlives the test. */
  run(): string
  /** Its agent does what it is told below. */
  agent(run: string, stdin?: RunSpec['stdin']): RunSpec
  /** One line. */
  prints(run: string, text: string): void
  ends(run: string, code: number): void
  /** Whether one was begun and is there. */
  hasAgent(run: string): boolean
}

const NO_RUNS = ['../x', 'a/b', '', 'a b']
const NO_FILES = ['../x', 'a/b', '', '.hidden', 'runner.json', 'exit.json', 'stop.json', 'spool']

interface Told extends Record<Frame['stream'], string> {
  offset: number
  exit: Exit | undefined
}

/** Everything from there to the end, or until it has printed that. */
async function told(runner: Runner, run: string, { from = 0, upTo }: { from?: number; upTo?: string } = {}): Promise<Told> {
  const all: Told = { out: '', err: '', in: '', offset: from, exit: undefined }
  for await (const { frames, offset, exit } of runner.follow(run, from, new AbortController().signal)) {
    // It is the last thing that is told.
    expect(all.exit).toBeUndefined()
    for (const { stream, bytes } of frames) all[stream] += bytes.toString()
    all.offset = offset
    all.exit = exit
    if (upTo && all.out.includes(upTo)) break
  }
  return all
}

/** What a capability may rely on, whoever keeps the processes. */
export function runnerContract(given: () => RunnerUnderTest): void {
  const started = async (stdin?: RunSpec['stdin']) => {
    const under = given()
    const run = under.run()
    await under.runner.start(run, under.agent(run, stdin))
    return { ...under, run }
  }

  describe('a run', () => {
    test('[R1] is absent, prepared, running and ended, and has one agent however often it is started', async () => {
      const { runner, later, run: fresh, agent, ends, prints, hasAgent } = given()
      const run = fresh()
      const spec = agent(run)
      expect(await runner.look(run)).toEqual({ state: 'absent' })
      const folder = await runner.folder(run)
      expect(await later.folder(run)).toBe(folder)
      expect(await later.look(run)).toEqual({ state: 'prepared' })
      const [one, other] = await Promise.all([runner.start(run, spec), later.start(run, spec)])
      expect([other, await runner.start(run, spec)]).toEqual([one, one])
      expect(await later.look(run)).toEqual({ state: 'running', ...one })
      prints(run, 'one')
      await told(runner, run, { upTo: 'one\n' })
      expect(hasAgent(run)).toBe(true)
      ends(run, 3)
      const { exit } = await told(later, run)
      expect(exit).toMatchObject({ reason: 'exited', code: 3, signal: null })
      expect(await runner.look(run)).toEqual({ state: 'ended', exit })
      expect(await runner.start(run, spec)).toEqual(one)
      expect(await runner.look(run)).toEqual({ state: 'ended', exit })
    })

    test('[R1] that is prepared and stopped never has an agent; of one that is absent nothing is left', async () => {
      const { runner, later, run: fresh, agent, hasAgent } = given()
      const run = fresh()
      await expect(told(runner, run)).rejects.toThrow()
      expect(await runner.stop(run, 'stopped', 0)).toMatchObject({ reason: 'stopped', code: null, signal: null })
      expect(await runner.look(run)).toEqual({ state: 'absent' })
      await runner.folder(run)
      await expect(told(runner, run)).rejects.toThrow()
      const exit = await runner.stop(run, 'budget', 0)
      expect(exit).toMatchObject({ reason: 'budget', code: null, signal: null })
      await later.start(run, agent(run))
      expect([hasAgent(run), await later.look(run)]).toEqual([false, { state: 'ended', exit }])
      expect(await told(later, run)).toMatchObject({ out: '', exit })
      expect(await later.send(run, { seq: 1, data: 'x' })).toBe(false)
    })

    test('[R2] [R3] is told whole and in order, from any place told before, and last of all its exit', async () => {
      const { runner, later, run, prints, ends } = await started()
      prints(run, 'one')
      const first = await told(runner, run, { upTo: 'one\n' })
      const following = [told(runner, run), told(later, run)]
      prints(run, 'two')
      ends(run, 0)
      const rest = await told(later, run, { from: first.offset })
      expect(rest).toMatchObject({ out: 'two\n', exit: { reason: 'exited', code: 0 } })
      const whole = { out: 'one\ntwo\n', offset: rest.offset, exit: rest.exit }
      for (const all of [...(await Promise.all(following)), await told(runner, run)]) expect(all).toMatchObject(whole)
      expect(await told(later, run, { from: rest.offset })).toMatchObject({ out: '', offset: rest.offset, exit: rest.exit })
    })

    test('[R2] goes on when nobody follows it any more', async () => {
      const { runner, run, prints } = await started()
      const waiting = new AbortController()
      const next = runner.follow(run, 0, waiting.signal)[Symbol.asyncIterator]().next()
      waiting.abort()
      expect(await next).toEqual({ done: true, value: undefined })
      prints(run, 'one')
      const reading = new AbortController()
      const exits: unknown[] = []
      for await (const { exit } of runner.follow(run, 0, reading.signal)) {
        exits.push(exit)
        reading.abort()
      }
      expect(exits).toEqual([undefined])
      expect(await runner.look(run)).toMatchObject({ state: 'running' })
      prints(run, 'two')
      expect(await told(runner, run, { upTo: 'two\n' })).toMatchObject({ out: 'one\ntwo\n' })
    })

    test('[R4] ends when it is stopped, for the first reason, however often', async () => {
      const { runner, later, run } = await started()
      const exit = await runner.stop(run, 'budget', 0)
      expect(exit).toMatchObject({ reason: 'budget' })
      expect(await later.stop(run, 'stopped', 0)).toEqual(exit)
      expect(await later.look(run)).toEqual({ state: 'ended', exit })
      expect((await told(later, run)).exit).toEqual(exit)
    })

    test('[R9] takes each input once, under its number, as long as its input is open', async () => {
      const { runner, later, run, ends } = await started('open')
      for (const [from, seq, data] of [
        [runner, 1, 'a\n'],
        [later, 1, 'a\n'],
        [runner, 2, 'b\n'],
        [runner, 1, 'other\n'],
      ] as const)
        expect(await from.send(run, { seq, data })).toBe(true)
      expect(await runner.send(run, { seq: 3, data: 'c\n', close: true })).toBe(true)
      expect(await runner.send(run, { seq: 3, data: 'c\n', close: true })).toBe(true)
      expect(await runner.send(run, { seq: 4, data: 'late\n' })).toBe(false)
      ends(run, 0)
      expect(await told(later, run)).toMatchObject({ in: 'a\nb\nc\n', exit: { code: 0 } })
      for (const seq of [1, 5]) expect(await runner.send(run, { seq, data: 'x' })).toBe(false)
    })

    test('[R9] whose input is closed takes signals alone; one that is not there takes nothing', async () => {
      const { runner, later, run } = await started('closed')
      expect(await runner.send(run, { seq: 1, data: 'x' })).toBe(false)
      expect(await runner.send(run, { seq: 2, close: true })).toBe(false)
      expect(await runner.send(run, { seq: 3, signal: 'SIGINT' })).toBe(true)
      const other = given().run()
      expect(await runner.send(other, { seq: 1, data: 'x' })).toBe(false)
      await runner.folder(other)
      expect(await runner.send(other, { seq: 1, data: 'x' })).toBe(false)
      expect(await later.send(other, { seq: 1, signal: 'SIGINT' })).toBe(false)
    })

    test('[R9] that begins with a text has it as its input, and more where that stays open', async () => {
      const [closed, open] = await Promise.all([started({ text: 'brief\n' }), started({ text: 'brief\n', open: true })])
      expect(await closed.runner.send(closed.run, { seq: 1, data: 'more\n' })).toBe(false)
      expect(await open.runner.send(open.run, { seq: 1, data: 'more\n' })).toBe(true)
      for (const { run, ends } of [closed, open]) ends(run, 0)
      expect([(await told(closed.runner, closed.run)).in, (await told(open.runner, open.run)).in]).toEqual(['brief\n', 'brief\nmore\n'])
    })

    test('[R8] keeps what was put into a file of its folder first', async () => {
      const { runner, later, run: fresh } = given()
      const run = fresh()
      expect(await runner.keep(run, 'token', () => 'first')).toBe('first')
      expect(await runner.look(run)).toEqual({ state: 'prepared' })
      const again = () => {
        throw new Error('it was made again')
      }
      expect(await later.keep(run, 'token', again)).toBe('first')
      expect(await runner.keep(run, 'other', () => '')).toBe('')
      expect(await later.keep(run, 'other', again)).toBe('')
      for (const name of NO_FILES)
        await expect(
          runner.keep(run, name, () => ''),
          name,
        ).rejects.toThrow()
    })

    test('[R12] is forgotten when nothing of it runs, with all that was kept', async () => {
      const { runner, later, run } = await started()
      await expect(runner.forget(run)).rejects.toThrow('still running')
      expect(await runner.look(run)).toMatchObject({ state: 'running' })
      await runner.keep(run, 'token', () => 'first')
      await runner.stop(run, 'stopped', 0)
      for (let times = 0; times < 2; times++) await later.forget(run)
      expect(await runner.look(run)).toEqual({ state: 'absent' })
      expect(await runner.keep(run, 'token', () => 'second')).toBe('second')
      await runner.forget(run)
      expect(await runner.look(run)).toEqual({ state: 'absent' })
      for (const name of NO_RUNS)
        for (const attempt of [() => runner.folder(name), () => runner.look(name), () => runner.keep(name, 'token', () => '')])
          await expect(attempt(), name).rejects.toThrow('not the name of a run')
    })
  })
}
