/**
 * Terminals that people and agents share. Each session has a server of its own, which outlives the daemon; what is true of it
 * is asked there, never remembered. Every method may be called again with the same arguments.
 */
export interface Terminal {
  /** Whether terminals can be had on this machine, or how to get them. */
  probe(): Promise<{ found: true; version: string } | { found: false; why: string; install: string }>
  /** Resolves when its program was started, also when an earlier attempt did it. */
  open(session: Named, spec: TerminalSpec): Promise<Opened>
  look(session: Named): Promise<TerminalState>
  /** What it shows now; with history, what has scrolled away too, up to so many lines. Undefined when there is no terminal. */
  screen(session: Named, history?: number): Promise<Screen | undefined>
  /** As soon as it shows something else than under this mark; as it is then when the signal comes first. */
  changed(session: Named, mark: string, signal: AbortSignal): Promise<Screen | undefined>
  /** Resolves when the program takes a prompt, with `gone` when it never will. Tells of each dialog that a person has to answer. */
  ready(session: Named, signs: Signs, onDialog: (what: string) => void, signal: AbortSignal): Promise<'ready' | 'gone'>
  /** Pastes the text, presses Enter, and finds out whether the program took it. Never says `sent` of what it did not see. */
  deliver(session: Named, text: string, signs: Signs): Promise<Delivery>
  /** Whether the program has said that it took this very text; undefined when it says nothing of the kind. */
  taken(session: Named, text: string, signs: Signs): Promise<boolean | undefined>
  /** The text as it is, and no key for any letter of it; then the keys. */
  type(session: Named, text: string, keys: Key[]): Promise<void>
  /** Resolves when its program has ended, or the terminal is gone. */
  ended(session: Named, signal: AbortSignal): Promise<TerminalState>
  /** Ends everything that was started in it, TERM first, KILL after the grace. Resolves when nothing of it lives any more. */
  close(session: Named, graceMs: number): Promise<void>
}

/** `id` is the marker of everything that it starts, `name` what a person sees. */
export interface Named {
  id: string
  name: string
}

export interface TerminalSpec {
  argv: [string, ...string[]]
  cwd: string
  /** On top of the few variables that every agent gets. Whoever attaches can read these: no secrets. */
  env: Record<string, string>
  /** Names that it gets from the daemon's own environment, when they are there. */
  inherit: string[]
  /** A private file whose first line becomes `SIGNALBOX_TOKEN` of the program, and of nothing else. */
  tokenFile: string
}

export interface Opened {
  /** The command that shows it in a person's own terminal. */
  attach: string[]
}

/** `absent`: no terminal of that id. `ended`: it is there, and its program is not. */
export type TerminalState = { state: 'absent' } | { state: 'running'; attached: number } | { state: 'ended'; how: string; screen: string }

export interface Screen {
  /** Without colours, control characters and trailing blanks. */
  text: string
  /** The same for the same text. */
  mark: string
  columns: number
  rows: number
  /** The oldest lines were left out. */
  cut: boolean
}

/** How it is known what an interactive program does. */
export interface Signs {
  /** A folder into which its hooks put a file for each event, `<event>.<anything>.json`. */
  hooks?: string
  /** The event, or what the screen shows, when it takes a prompt. Without one: it stands still for a while. */
  ready?: { event: string } | { shows: RegExp }
  /** The same for a prompt that it took. The file of an event has it as `prompt`. */
  submitted?: { event: string } | { shows: RegExp }
  /** While a long text stands in its box, and was not taken: Enter can answer nothing else then. */
  holds?: RegExp
  /** Questions that Enter would answer. */
  dialogs: { shows: RegExp; what: string }[]
}

export type Delivery = { state: 'sent' } | { state: 'not_verified' | 'failed'; detail: string }

export const KEYS = [
  'Enter',
  'Escape',
  'Tab',
  'BTab',
  'Space',
  'BSpace',
  'Up',
  'Down',
  'Left',
  'Right',
  'Home',
  'End',
  'PageUp',
  'PageDown',
  'C-a',
  'C-c',
  'C-d',
  'C-e',
  'C-l',
  'C-r',
  'C-u',
  'C-z',
] as const
export type Key = (typeof KEYS)[number]

/** A program that a person talks to in a terminal. */
export interface Interactive {
  name: string
  title: string
  probe(): Promise<{ found: true; version: string } | { found: false; why: string; install: string }>
  launch(launch: InteractiveLaunch): InteractivePlan
}

export interface InteractiveLaunch {
  /** For its own files, outside of the worktree. */
  folder: string
  cwd: string
  mcp: { url: string }
}

export interface InteractivePlan extends Omit<TerminalSpec, 'cwd' | 'tokenFile'> {
  /** By name, in the folder. */
  files: Record<string, string>
  /** Undefined: it takes no prompt. */
  signs: Signs | undefined
}

export interface Interactives {
  names(): string[]
  get(name: string): Interactive | undefined
}

declare module '../kernel/tool.ts' {
  interface Ports {
    terminal: Terminal
    interactives: Interactives
  }
}
