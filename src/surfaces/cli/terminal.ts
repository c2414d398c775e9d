/** What a command knows of where it runs. Tests give their own; `processTerminal` is the real one. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
  /** Whether a person is at each end. */
  tty: { in: boolean; out: boolean; err: boolean }
  columns(): number
  rows(): number
  colours: boolean
  /** The terminal can move its cursor, so a line may be drawn again. */
  redraws: boolean
  /** Everything on stdin. */
  stdin(): Promise<string>
  /** One line typed by the person; empty when they close the input. */
  ask(question: string): Promise<string>
}

const WIDTH_WITHOUT_TERMINAL = 100

export function processTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process
  if (!stdout.listenerCount('error')) stdout.on('error', stopWithTheReader)
  return {
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    tty: { in: Boolean(stdin.isTTY), out: Boolean(stdout.isTTY), err: Boolean(stderr.isTTY) },
    columns: () => stdout.columns || Number(env.COLUMNS) || WIDTH_WITHOUT_TERMINAL,
    rows: () => stdout.rows || 24,
    colours: wantsColours(env, Boolean(stdout.isTTY)),
    redraws: env.TERM !== 'dumb',
    async stdin() {
      const chunks: Buffer[] = []
      for await (const chunk of stdin) chunks.push(chunk as Buffer)
      return Buffer.concat(chunks).toString('utf8')
    },
    async ask(question) {
      const { createInterface } = await import('node:readline/promises')
      const lines = createInterface({ input: stdin, output: stderr })
      const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
      try {
        return await Promise.race([lines.question(question), closed])
      } finally {
        lines.close()
      }
    },
  }
}

/** FORCE_COLOR wins over NO_COLOR, as in Node itself. */
export function wantsColours(env: Record<string, string | undefined>, tty: boolean): boolean {
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '') return !['0', 'false'].includes(env.FORCE_COLOR)
  return tty && !env.NO_COLOR && env.TERM !== 'dumb'
}

/** Whoever reads may have heard enough, or the disk behind it may be full. */
function stopWithTheReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.stderr.write(`signalbox: the output could not be written: ${error.message}\n`)
  process.exit(error.code === 'EPIPE' ? 0 : 1)
}
