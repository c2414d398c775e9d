import { execFile } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import { promisify } from 'node:util'
import { pause, within } from '../../kernel/patience.ts'
import type { Key, Named, Screen, Terminal, TerminalSpec, TerminalState } from '../../ports/terminal.ts'
import { processAt } from '../../runner/system.ts'
import { endTree } from '../../runner/tree.ts'
import { agentEnvironment } from '../runner/environment.ts'
import { type Attended, deliver, PATIENCE, type Patience, paste, ready, taken } from './delivery.ts'
import { Line } from './line.ts'
import { capture } from './screen.ts'
import { clientEnvironment, literal, PANE, probeTmux, socketOf, Tmux } from './tmux.ts'

export interface TerminalOptions {
  /** A short path, since a socket's has at most 100 bytes. */
  sockets: string
  /** Where an older version had them: its terminals are still there. */
  olderSockets?: string
  /** Makes a folder for us alone, and throws when somebody else has a hand in it. */
  privateFolder: (path: string) => void
  /** Of the daemon. Programs get a few names of it. */
  env: Record<string, string | undefined>
  patience?: Patience
}

const COLUMNS = 160
const ROWS = 48
/** Between two looks for one viewer: nobody reads faster. */
const REST_MS = 120
/** The line tells of an end at once; on a busy machine it was seen to miss one. */
const LOOK_MS = 2_000
/** tmux sees that a terminal was left before it hears how its program ended; on a busy machine it was seen never to hear it. */
const UNTOLD = 'a code that nobody saw'
const LOOKS_FOR_A_CODE = 20
const OURS = '@signalbox'

/**
 * `set-clipboard` off: what is printed must not write to the clipboard of whoever looks. The pane stays when its program ends, so
 * that a dead program is no lost terminal; its clients are sent away then, which is how they hear of it.
 */
const OPTIONS = [
  ['set-option', '-s', 'set-clipboard', 'off'],
  ['set-option', '-s', 'escape-time', '10'],
  ['set-option', '-s', 'focus-events', 'on'],
  ['set-option', '-g', 'remain-on-exit', 'on'],
  ['set-option', '-g', 'history-limit', '20000'],
  ['set-option', '-g', 'update-environment', ''],
  ['set-option', '-g', 'automatic-rename', 'off'],
  ['set-option', '-g', 'allow-rename', 'off'],
  ['set-option', '-g', 'set-titles', 'off'],
  ['set-option', '-g', 'mouse', 'on'],
  ['set-option', '-g', 'status-interval', '0'],
  ['set-option', '-g', 'status-left-length', '60'],
  ['set-option', '-g', 'status-left', ' #S  leave with C-b d '],
  ['set-option', '-g', 'status-right', ''],
]

/** The token comes from its file and goes to the program alone: whoever reads the server's environment does not find it there. */
// On a busy machine tmux throws away what a program prints right before its end: one that is not there says so, and waits a moment.
const WITH_TOKEN = [
  'IFS= read -r SIGNALBOX_TOKEN <"$0"; export SIGNALBOX_TOKEN',
  'command -v "$1" >/dev/null || { echo "$1: not found"; sleep 1; exit 127; }',
  'exec "$@"',
].join('\n')

/** One server to a session: what one agent's program does to its own reaches nobody else's, and a killed one takes nobody along. */
export function createTerminal(options: TerminalOptions): Terminal {
  const shared = new Shared(options)
  return {
    probe: () => probeTmux(options.env),
    open: (session, spec) => open(session, spec, options),
    look: (session) => look(shared.tmux(session), session),
    screen: (session, history) => screenOf(shared.tmux(session), session, history),
    changed: (session, mark, signal) => shared.watching(session, (attended) => changed(attended, mark, signal)),
    ready: (session, signs, onDialog, signal) => shared.watching(session, (attended) => ready(attended, signs, onDialog, signal)),
    deliver: (session, text, signs) =>
      shared.inTurn(session, () => shared.watching(session, (attended) => deliver(attended, text, signs, options.patience ?? PATIENCE))),
    taken: async (_session, text, signs) => taken(text, signs),
    type: (session, text, keys) => shared.inTurn(session, () => type(shared.tmux(session), session, text, keys)),
    ended: (session, signal) => shared.listening(session, (attended) => ended(attended, signal)),
    close: (session, graceMs) => close(shared.tmux(session), session, graceMs),
  }
}

async function open(session: Named, spec: TerminalSpec, options: TerminalOptions) {
  const { sockets, privateFolder, env } = options
  privateFolder(sockets)
  const tmux = tmuxOf(options, session)
  const opened = { attach: ['tmux', '-S', tmux.socket, 'attach', '-t', session.name] }
  if ((await look(tmux, session)).state !== 'absent') return opened
  const size = ['-x', String(COLUMNS), '-y', String(ROWS)]
  const program = ['/bin/sh', '-c', WITH_TOKEN, spec.tokenFile, ...spec.argv].map(literal)
  const commands = [
    ['start-server'],
    ...OPTIONS,
    ['set-hook', '-g', 'pane-died', `detach-client -s =${session.name}`],
    ['set-option', '-g', OURS, session.id],
    ['new-session', '-d', '-s', session.name, ...size, '--', ...program],
  ]
  // Its folder is that of the client: given as an argument, tmux would read formats in it.
  const how = { cwd: spec.cwd, env: agentEnvironment(session.id, env, spec) }
  const { ok, error } = await tmux.ask(
    commands.flatMap((command, i) => (i ? [';', ...command] : command)),
    how,
  )
  // Somebody else may have been faster.
  if (!ok && (await look(tmux, session)).state === 'absent') throw new Error(`The terminal could not be opened: ${error}`)
  return opened
}

function tmuxOf({ sockets, olderSockets, env }: TerminalOptions, session: Named): Tmux {
  const older = olderSockets && socketOf(olderSockets, session)
  return new Tmux(older && existsSync(older) ? older : socketOf(sockets, session), env)
}

async function look(tmux: Tmux, { id }: Named): Promise<TerminalState> {
  const format = `#{${OURS}} #{pane_dead} #{?pane_dead_signal,signal #{pane_dead_signal},code #{pane_dead_status}}`
  const ask = () => tmux.ask(['display-message', '-p', '-t', PANE, format, ';', 'list-clients', '-F', '#{client_control_mode}'])
  let asked = await ask()
  // On a busy machine a server that is there was seen not to answer once: that is no terminal that is gone.
  if (!asked.ok && existsSync(tmux.socket)) {
    await pause(REST_MS, new AbortController().signal)
    asked = await ask()
  }
  if (!asked.ok) return { state: 'absent' }
  const [facts = '', ...clients] = asked.out.trim().split('\n')
  const [marker, dead, ...how] = facts.split(' ')
  if (marker !== id) return { state: 'absent' }
  if (dead !== '1') return { state: 'running', attached: clients.filter((control) => control === '0').length }
  return { state: 'ended', how: how[1] ? how.join(' ') : UNTOLD, screen: (await capture(tmux, ROWS, true))?.text ?? '' }
}

async function screenOf(tmux: Tmux, session: Named, history?: number): Promise<Screen | undefined> {
  return (await look(tmux, session)).state === 'absent' ? undefined : capture(tmux, history)
}

async function changed({ line, screen }: Attended, mark: string, signal: AbortSignal): Promise<Screen | undefined> {
  for (;;) {
    const { version, over } = line
    const now = await screen()
    if (now?.mark !== mark || over || signal.aborted) return now
    await line.after(version, signal)
    await pause(REST_MS, signal)
  }
}

async function ended({ line, look }: Attended, signal: AbortSignal): Promise<TerminalState> {
  for (let looks = 0; ; ) {
    // Read before the look: a line that ends after it says that the program has ended since.
    const { version, over } = line
    const found = await look()
    const untold = found.state === 'ended' && found.how === UNTOLD && looks++ < LOOKS_FOR_A_CODE
    if (!untold && (found.state !== 'running' || over || signal.aborted)) return found
    if (untold) await pause(REST_MS, signal)
    else await within(LOOK_MS, signal, (either) => line.after(version, either))
  }
}

async function type(tmux: Tmux, session: Named, text: string, keys: Key[]): Promise<void> {
  if ((await look(tmux, session)).state !== 'running') throw new Error('Nothing runs in that terminal.')
  if (longestLine(text) > LONGEST_LINE && (await readsByLine(tmux))) throw new Error(TOO_LONG)
  if (text) await paste(tmux, text)
  if (keys.length) await tmux.do(['send-keys', '-t', PANE, ...keys])
}

/** Of a line that is longer the system drops the rest without a word, when it hands the program whole lines. */
const LONGEST_LINE = 4_095
const TOO_LONG = `What runs there reads whole lines, and of one with more than ${LONGEST_LINE} bytes the system drops the rest. Nothing was typed: send shorter lines, or put the text into a file.`

function longestLine(text: string): number {
  return Math.max(...text.split(/[\r\n]/).map((line) => Buffer.byteLength(line)))
}

/** Programs that edit their input themselves turn that off. Where nobody can tell, they are believed to. */
async function readsByLine(tmux: Tmux): Promise<boolean> {
  const { out } = await tmux.ask(['display-message', '-p', '-t', PANE, '#{pane_tty}'])
  const { stdout } = await promisify(execFile)('stty', ['-F', out.trim(), '-a']).catch(() => ({ stdout: '' }))
  return /(^|\s)icanon\b/.test(stdout)
}

async function close(tmux: Tmux, session: Named, graceMs: number): Promise<void> {
  const { ok, out } = await tmux.ask(['display-message', '-p', '-t', PANE, `#{${OURS}} #{pane_pid}`])
  const [marker, pid] = out.trim().split(' ')
  const root = ok && marker === session.id ? await processAt(Number(pid)) : undefined
  const killAt = performance.now() + graceMs
  const stuck = await endTree({ run: session.id, ...(root ? { root } : {}) }, () => killAt)
  if (stuck.length) throw new Error(`These could not be ended: ${stuck.map((one) => one.pid).join(', ')}.`)
  rmSync(tmux.socket, { force: true })
}

/** What those who look at one session have in common: one line, one look at a time. */
class Shared {
  readonly #options: TerminalOptions
  readonly #lines = new Map<string, { line: Line; users: number; last?: { version: number; screen: Promise<Screen | undefined> } }>()
  readonly #turns = new Map<string, Promise<unknown>>()

  constructor(options: TerminalOptions) {
    this.#options = options
  }

  tmux(session: Named): Tmux {
    return tmuxOf(this.#options, session)
  }

  async listening<T>(session: Named, act: (attended: Attended) => Promise<T>): Promise<T> {
    const tmux = this.tmux(session)
    const known = this.#lines.get(session.id)
    const held = known && !known.line.over ? known : { line: new Line(tmux, session.name, clientEnvironment(this.#options.env)), users: 0 }
    this.#lines.set(session.id, held)
    held.users++
    try {
      return await act({ tmux, line: held.line, look: () => look(tmux, session), screen: () => this.#screen(tmux, session) })
    } finally {
      if (--held.users === 0) {
        held.line.close()
        if (this.#lines.get(session.id) === held) this.#lines.delete(session.id)
      }
    }
  }

  watching<T>(session: Named, act: (attended: Attended) => Promise<T>): Promise<T> {
    return this.listening(session, async (attended) => {
      attended.line.view()
      try {
        return await act(attended)
      } finally {
        attended.line.unview()
      }
    })
  }

  /** Two texts at once would come out as one. */
  inTurn<T>({ id }: Named, act: () => Promise<T>): Promise<T> {
    const done = (this.#turns.get(id) ?? Promise.resolve()).then(act)
    const over = done.catch(() => {})
    this.#turns.set(id, over)
    void over.then(() => this.#turns.get(id) === over && this.#turns.delete(id))
    return done
  }

  /** However many look, a change is read once. */
  #screen(tmux: Tmux, session: Named): Promise<Screen | undefined> {
    const held = this.#lines.get(session.id)
    if (!held) return screenOf(tmux, session)
    const { version } = held.line
    if (held.last?.version !== version) held.last = { version, screen: screenOf(tmux, session) }
    return held.last.screen
  }
}
