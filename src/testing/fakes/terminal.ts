import type {
  Delivery,
  Interactive,
  Interactives,
  Key,
  Named,
  Screen,
  Signs,
  Terminal,
  TerminalSpec,
  TerminalState,
} from '../../ports/terminal.ts'
import { type Deferred, deferred } from '../signals.ts'

interface FakeSession {
  spec: TerminalSpec
  state: TerminalState
  text: string
  typed: { text: string; keys: Key[] }[]
  prompts: string[]
  ready: boolean
  dialog: string | undefined
  grew: Deferred
}

/** Terminals that show and end what the test says. Like the real ones they outlive the app that opened them. */
export class FakeTerminal implements Terminal {
  readonly sessions = new Map<string, FakeSession>()
  /** What `open` fails with, as long as it is set. */
  broken: string | undefined
  missing: { found: false; why: string; install: string } | undefined
  /** Whether its programs take a prompt as soon as they are open. */
  takesPrompts = true
  delivery: Delivery = { state: 'sent' }
  opened: string[] = []
  /** Whose end somebody waits for: that hears of a `change`, and not of what is done behind its back. */
  readonly followed = new Set<string>()
  closed: string[] = []

  get living(): string[] {
    return [...this.sessions].filter(([, { state }]) => state.state === 'running').map(([id]) => id)
  }

  of(id: string): FakeSession {
    const found = this.sessions.get(id)
    if (!found) throw new Error(`no terminal ${id}`)
    return found
  }

  change(id: string, changes: Partial<FakeSession>): void {
    const { grew } = Object.assign(this.of(id), changes)
    this.of(id).grew = deferred()
    grew.resolve()
  }

  async probe() {
    return this.missing ?? { found: true as const, version: '3.4' }
  }

  async open({ id, name }: Named, spec: TerminalSpec) {
    if (this.broken !== undefined) throw new Error(this.broken)
    if (!this.sessions.has(id)) {
      this.opened.push(id)
      const state = { state: 'running', attached: 0 } as const
      const ready = this.takesPrompts
      this.sessions.set(id, { spec, state, text: 'ready', typed: [], prompts: [], ready, dialog: undefined, grew: deferred() })
    }
    return { attach: ['tmux', '-S', `/run/${name}.tmux`, 'attach', '-t', name] }
  }

  async look({ id }: Named): Promise<TerminalState> {
    return this.sessions.get(id)?.state ?? { state: 'absent' }
  }

  async screen({ id }: Named): Promise<Screen | undefined> {
    const found = this.sessions.get(id)
    if (!found || found.state.state === 'absent') return undefined
    return { text: found.text, mark: `mark:${found.text.length}:${found.text.slice(-20)}`, columns: 80, rows: 24, cut: false }
  }

  async changed(session: Named, mark: string, signal: AbortSignal): Promise<Screen | undefined> {
    for (;;) {
      const grew = this.sessions.get(session.id)?.grew.promise
      const now = await this.screen(session)
      if (!grew || now?.mark !== mark || signal.aborted) return now
      await either(grew, signal)
    }
  }

  async ready(session: Named, _signs: Signs, onDialog: (what: string) => void, signal: AbortSignal): Promise<'ready' | 'gone'> {
    let told: string | undefined
    while (!signal.aborted) {
      const found = this.sessions.get(session.id)
      if (found?.state.state !== 'running') return 'gone'
      if (found.dialog && found.dialog !== told) onDialog(found.dialog)
      told = found.dialog
      if (found.ready && !found.dialog) return 'ready'
      await either(found.grew.promise, signal)
    }
    return 'gone'
  }

  async deliver({ id }: Named, text: string): Promise<Delivery> {
    this.of(id).prompts.push(text)
    return this.delivery
  }

  async taken({ id }: Named, text: string): Promise<boolean> {
    return this.of(id).prompts.includes(text)
  }

  async type({ id }: Named, text: string, keys: Key[]): Promise<void> {
    const found = this.of(id)
    if (found.state.state !== 'running') throw new Error('Nothing runs in that terminal.')
    found.typed.push({ text, keys })
  }

  async ended(session: Named, signal: AbortSignal): Promise<TerminalState> {
    for (;;) {
      const found = this.sessions.get(session.id)
      if (found?.state.state !== 'running' || signal.aborted) return found?.state ?? { state: 'absent' }
      this.followed.add(session.id)
      await either(found.grew.promise, signal)
    }
  }

  async close({ id }: Named): Promise<void> {
    this.closed.push(id)
    if (this.sessions.has(id)) this.change(id, { state: { state: 'absent' } })
  }
}

/** One program that takes a prompt, a shell that takes none, and one that is not installed. */
export function fakeInteractives(): Interactives {
  const signs: Signs = { dialogs: [] }
  const found = { found: true as const, version: '1' }
  const list: Interactive[] = [
    {
      name: 'claude',
      title: 'A fake',
      probe: async () => found,
      launch: () => ({ argv: ['fake'], env: {}, inherit: [], files: {}, signs }),
    },
    {
      name: 'shell',
      title: 'A shell',
      probe: async () => found,
      launch: () => ({ argv: ['sh'], env: {}, inherit: [], files: {}, signs: undefined }),
    },
    {
      name: 'codex',
      title: 'Not there',
      probe: async () => ({ found: false as const, why: 'It is not on the PATH.', install: 'npm install codex' }),
      launch: () => ({ argv: ['none'], env: {}, inherit: [], files: {}, signs }),
    },
  ]
  return { names: () => list.map(({ name }) => name), get: (name) => list.find((one) => one.name === name) }
}

function either(promise: Promise<unknown>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => resolve()
    signal.addEventListener('abort', done, { once: true })
    void promise.then(done)
  })
}
