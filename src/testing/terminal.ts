import type { Terminal } from '../surfaces/cli/terminal.ts'

export interface Heard extends Terminal {
  stdout: string
  stderr: string
}

interface Options {
  /** A person at all three ends, or at none. */
  person?: boolean
  columns?: number
  colours?: boolean
  stdin?: string
  /** What the person types when asked. */
  answer?: string
}

/** A terminal that keeps what it is told. */
export function fakeTerminal({ person = false, columns = 80, colours = false, stdin = '', answer = '' }: Options = {}): Heard {
  const heard: Heard = {
    stdout: '',
    stderr: '',
    out(text) {
      heard.stdout += text
    },
    err(text) {
      heard.stderr += text
    },
    tty: { in: person, out: person, err: person },
    columns: () => columns,
    rows: () => 40,
    colours,
    redraws: true,
    stdin: async () => stdin,
    async ask(question) {
      heard.stderr += question
      return answer
    },
  }
  return heard
}
