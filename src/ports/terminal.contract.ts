import { describe, expect, test } from 'vitest'
import type { Named, Terminal, TerminalSpec } from './terminal.ts'

export interface TerminalUnderTest {
  terminal: Terminal
  /** A program that shows `ready` and stays. */
  spec: TerminalSpec
  /** A session that the suite may use as it likes. */
  session(): Named
  /** Lets its program show this. */
  shows(session: Named, text: string): Promise<void>
  /** Lets its program end, or takes the whole terminal away by force. */
  ends(session: Named): Promise<void>
  vanishes(session: Named): Promise<void>
}

const never = new AbortController().signal

/** What every terminal keeps. */
export function terminalContract(given: () => TerminalUnderTest): void {
  const opened = async () => {
    const { terminal, spec, session, ...rest } = given()
    const one = session()
    const { attach } = await terminal.open(one, spec)
    return { terminal, spec, one, attach, ...rest }
  }
  const shown = async (terminal: Terminal, one: Named, text: string) => {
    let screen = await terminal.screen(one)
    while (!screen?.text.includes(text)) screen = await terminal.changed(one, screen?.mark ?? '', AbortSignal.timeout(30_000))
    return screen
  }

  describe('a terminal', () => {
    test('[TM1] is there once, however often it is opened', async () => {
      const { terminal, spec, one, attach } = await opened()
      expect(await Promise.all([terminal.open(one, spec), terminal.open(one, spec)])).toEqual([{ attach }, { attach }])
      expect(attach).toContain(one.name)
      expect(await terminal.look(one)).toEqual({ state: 'running', attached: 0 })
      await terminal.close(one, 200)
    })

    test('[TM3] that is gone is told apart from one whose program ended', async () => {
      const { terminal, one, ends, vanishes } = await opened()
      const other = given().session()
      expect(await terminal.look(other)).toEqual({ state: 'absent' })
      await terminal.open(other, given().spec)
      const [program, whole] = [terminal.ended(one, never), terminal.ended(other, never)]
      await ends(one)
      expect(await program).toMatchObject({ state: 'ended', how: expect.stringMatching(/^(code|signal) |^a code that nobody saw$/) })
      await vanishes(other)
      expect(await whole).toEqual({ state: 'absent' })
      await Promise.all([one, other].map((session) => terminal.close(session, 200)))
    })

    test('[TM7] shows what its program shows; whoever waits for another screen gets it', async () => {
      const { terminal, one, shows } = await opened()
      // Before it has drawn itself, what is typed is shown by the terminal, and then once more by the program.
      const first = await shown(terminal, one, 'ready')
      expect(await terminal.changed(one, first?.mark ?? '', AbortSignal.abort())).toMatchObject({ columns: expect.any(Number) })
      const waiting = [1, 2, 3].map(() => shown(terminal, one, 'ANOTHER'))
      await shows(one, 'ANOTHER')
      const marks = await Promise.all(waiting)
      expect(new Set(marks.map((screen) => screen?.mark)).size).toBe(1)
      await terminal.close(one, 200)
      expect(await terminal.screen(one)).toBeUndefined()
    })

    test('[TM8] that is closed is gone, and may be closed again', async () => {
      const { terminal, one } = await opened()
      await terminal.close(one, 200)
      expect(await terminal.look(one)).toEqual({ state: 'absent' })
      await terminal.close(one, 200)
    })
  })
}
