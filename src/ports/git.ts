import { type Code, type ErrorBody, Refusal } from '../kernel/error.ts'

export interface RepoFacts {
  /** The real path of the top of the work tree: links resolved, so one repository has one name. */
  top: string
  /** The branch that is checked out; null when detached. */
  branch: string | null
  /** Local branches by name. */
  branches: string[]
  remote: string | null
  head: string | null
}

/** What a place is called: both are plain words, parts of a path. The handle of a repository, not where it is. */
export interface PlaceName {
  repo_handle: string
  name: string
}

/** One task's own checkout: where it is, what it belongs to. */
export interface Place {
  /** The top of the repository that it was made from. */
  repo: string
  path: string
  branch: string
}

export const BASE_STRATEGIES = ['remote', 'local_if_ahead', 'local'] as const
export type BaseStrategy = (typeof BASE_STRATEGIES)[number]

export interface NewPlace extends Place {
  /** A branch, or in full: a ref (`refs/…`) or a commit. */
  base: string
  /**
   * Which of the two a branch means. Nothing is fetched: the remote one is what the last fetch saw. Where only one of them
   * exists, it is that one. `local_if_ahead` is the local one when it has all that the remote one has.
   */
  strategy: BaseStrategy
  /** Where the line of the base was told to stand last; null when it has none. Without it, its ref is believed. */
  line?: string | null
}

/**
 * Why git was not asked, or would not:
 *
 * | reason  | means                                                                  |
 * |---------|------------------------------------------------------------------------|
 * | invalid | a name or a path that no honest caller has                             |
 * | foreign | something else is there: nobody may work in it, and nothing removes it |
 * | missing | the repository, the branch or the saved tree is not there              |
 * | busy    | another program holds a lock, for longer than we wait                  |
 * | unsaved | a repository inside the place holds work that only it has              |
 * | damaged | objects are missing, or are not what their ids say                     |
 * | failed  | git itself said no                                                     |
 */
export class GitRefusal extends Refusal {
  override readonly name = 'GitRefusal'
  readonly reason: 'invalid' | 'foreign' | 'missing' | 'busy' | 'unsaved' | 'damaged' | 'failed'
  constructor(reason: GitRefusal['reason'], message: string, more: Omit<ErrorBody, 'code' | 'message'> = {}) {
    super({ code: ANSWERS[reason], message, ...more })
    this.message = message
    this.reason = reason
  }
}

/** What the caller of a tool is told that does not expect it. */
const ANSWERS = {
  invalid: 'INVALID_INPUT',
  foreign: 'CONFLICT',
  missing: 'RESOURCE_NOT_FOUND',
  busy: 'CONFLICT',
  unsaved: 'CONFLICT',
  damaged: 'CONFLICT',
  failed: 'CONFLICT',
} as const satisfies Record<string, Code>

export interface WorkState {
  /** `missing`: nobody is there. `foreign`: something else is there, or git does not know it as this place: nobody may work in it. */
  state: 'present' | 'missing' | 'foreign'
  head: string | null
  /** Commits of the branch that the commit it began at does not have. */
  ahead: number
  /** Files that differ from the last commit, untracked ones too. */
  dirty: number
  /** The same for the same head and the same files: whether anything happened since. */
  fingerprint: string
}

/** A saved tree: what was in a place, untracked files too, when it was about to be changed or taken away. */
export interface Rescue {
  ref: string
  commit: string
  at: number
  branch: string
}

export interface DiffRequest {
  /** The commit that the work began at. */
  from: string
  /** A ref in full that the work follows: what came from there since is not its own. Without it, or when they have nothing in common, `from` holds. */
  follows?: string
  path?: string
  /** A commit, or a ref in full, to be shown instead of the files in the place. */
  at?: string
  /** Cut after so many bytes. */
  bytes: number
}

/** `status` is git's letter: A, M, D, R, T. Lines are null of a binary file. */
export interface Diff {
  files: { path: string; from: string | null; status: string; added: number | null; removed: number | null }[]
  text: string
  cut: boolean
  /** That was shown; null when it was the files in the place. */
  commit: string | null
  /** Where the branch of the place is now. */
  tip: string | null
}

export interface FileText {
  bytes: Buffer
  size: number
  cut: boolean
  /** That has it; null when it was read in the place. */
  commit: string | null
}

/** A file that is to be a commit of its own on the branch of a place. */
export interface Delivery {
  /** Below a folder, in plain words: `.signalbox/feedback/1.md`. */
  path: string
  text: string
  message: string
  /** Trailers by name; the commit is known again by them. */
  trailers: Record<string, string>
}

export interface NewBranch {
  repo: string
  branch: string
  base: string
  strategy: BaseStrategy
  line?: string | null
}

/** A line: what has landed for a branch, as `refs/signalbox/line/<target>`. The branch itself follows it. */
export interface LineOf {
  repo: string
  target: string
  /** What the target is made from when it is not there: of an epic. Without it a target that is not there is `missing`. */
  base?: string
  strategy: BaseStrategy
  /**
   * Where we know the line to be: first where it was told to stand last, then what was about to land. Workers can write the ref: one
   * that stands elsewhere, and not because of what people committed, is `foreign`. Without it the ref is believed.
   */
  known?: string[]
}

/**
 * Where a line stands, after it has taken in what people committed on the target themselves.
 *
 * | state   | means                                                                                 |
 * |---------|---------------------------------------------------------------------------------------|
 * | ready   | it has all that the target has; `moved`: some of that was taken in since it was told  |
 * | apart   | line and target both went on and cannot be joined: somebody has to merge these files  |
 * | foreign | somebody else has moved it to this head; nothing was moved                            |
 */
export type LineHead =
  | { state: 'ready'; head: string; moved: boolean }
  | { state: 'apart'; head: string; target: string; files: string[] }
  | { state: 'foreign'; head: string }

export interface Build {
  line: LineOf
  /** The commit to be merged, in full: what was reviewed, wherever its branch is by then. */
  commit: string
  /** The line's head, in full. */
  onto: string
  /** The commit that the work was shown from. What is not on the line of it was shown to nobody: such work is refused. */
  from?: string
  message: string
  /** Trailers by name; the commit is known again by them. */
  trailers: Record<string, string>
  /** Part of a ref that keeps the built commit from being collected. */
  keep: string
  method: MergeMethod
}

/** `squash`: one commit. `merge`: the same tree, with the commits of the work as its second parent. */
export const MERGE_METHODS = ['squash', 'merge'] as const
export type MergeMethod = (typeof MERGE_METHODS)[number]

/**
 * | result   | means                                                                  |
 * |----------|------------------------------------------------------------------------|
 * | built    | this commit is the work on top of `onto`; nothing has it yet           |
 * | landed   | `onto` has it already, by this commit of an earlier attempt            |
 * | nothing  | `onto` has all of it: there is nothing to add                          |
 * | conflict | these files were changed on both sides                                 |
 */
export type Built =
  | { result: 'built'; commit: string }
  | { result: 'landed'; commit: string }
  | { result: 'nothing' }
  | { result: 'conflict'; files: string[] }

/** `even`: it had all of it. `conflict`: these files were changed on both sides. */
export type Rebased = { result: 'rebased' | 'even'; head: string } | { result: 'conflict'; files: string[] }

/**
 * Whether the target has what its line has, or why it stays behind. The message is for a person and says what to do.
 *
 * | why        | means                                                                             |
 * |------------|-----------------------------------------------------------------------------------|
 * | dirty      | where it is checked out, something is changed or staged                           |
 * | in_the_way | files there that would be overwritten, cannot be written, or need the person      |
 * | busy       | a merge, a rebase or another git is at work there, it is checked out twice, or    |
 * |            | git cannot look at it                                                             |
 * | moved      | somebody committed on it, and the line has not taken that in yet                  |
 * | apart      | line and target both went on, and cannot be joined                                |
 * | foreign    | the line does not stand where we know it to be                                    |
 */
export type Followed =
  | { state: 'even' }
  | {
      state: 'behind'
      by: number
      why: 'dirty' | 'in_the_way' | 'busy' | 'moved' | 'apart' | 'foreign'
      at: string | null
      message: string
    }

/**
 * Only the git CLI, argv arrays, no shell. A repository may be hostile: neither its hooks nor a program that its own
 * configuration names is run by us; filters (LFS) of the person's own configuration are. Every method may be repeated.
 */
export interface Git {
  /** Undefined when the folder does not exist or is not inside a work tree. */
  inspect(path: string): Promise<RepoFacts | undefined>
  /** Whether the repository has that commit, in full. */
  has(repo: string, commit: string): Promise<boolean>
  /** The repository was moved to here: its worktrees find it again. */
  moved(repo: string): Promise<void>
  /** Where a place of that name is to be. Says nothing about whether it is there. */
  placeFor(name: PlaceName): string
  /** Also when an earlier attempt made it, or only half of it. Refuses a path that holds anything else. */
  add(place: NewPlace): Promise<{ base: string; head: string }>
  /**
   * Copies files that git does not carry from the person's checkout: those that match one of the patterns, as git matches paths, and are
   * ignored in both. What is there already stays. `to`: a place, or a scratch checkout. Answers with their paths.
   */
  bring(repo: string, to: string, patterns: string[]): Promise<string[]>
  /** Of the checkout at this path: another one once it was taken away and made again. */
  idOf(path: string): Promise<string>
  /** The names of all that a commit has at its top. */
  topOf(repo: string, commit: string): Promise<string[]>
  /** A file of a commit. Undefined when it has none there, when it is larger, or no text. */
  textOf(repo: string, commit: string, path: string, mostBytes: number): Promise<string | undefined>
  /** Files in the person's checkout that git ignores and that match one of the patterns, as git matches paths. */
  ignoredIn(repo: string, patterns: string[], most: number): Promise<string[]>
  /** What such files say, each of at most so many bytes. */
  ignoredTexts(repo: string, patterns: string[], mostBytes: number): Promise<string[]>
  /** All files that a commit has, each by its content and its mode. */
  filesOf(repo: string, commit: string): Promise<{ path: string; id: string }[]>
  /**
   * What is in a checkout and in no commit: folders of which git ignores all as one, what it would add, and what differs. A submodule
   * differs as soon as it is filled.
   */
  extras(repo: string, path: string): Promise<{ ignored: string[]; untracked: string[]; changed: string[] }>
  /** Saves what is there, then takes the folder away. The branch stays. */
  remove(place: Place, rescueAs: string): Promise<{ rescue: Rescue | undefined }>
  /** `from`: a commit, or a ref in full. */
  state(place: Place, from: string): Promise<WorkState>
  /** What is not committed too, unless a commit is asked for. Of a place that is gone: what its branch has. */
  diff(place: Place, request: DiffRequest): Promise<Diff>
  /** Undefined when there is no such file inside the place, or in the commit `at` (an id, or a ref in full). */
  file(place: Place, path: string, bytes: number, at?: string): Promise<FileText | undefined>
  /** Undefined when there is nothing that is not committed. What git ignores is not saved. */
  rescue(place: Place, as: string): Promise<Rescue | undefined>
  /** Newest first. */
  rescues(repo: string, under: string): Promise<Rescue[]>
  /** Brings a saved tree back into the place, after saving what is there now. Moves no branch. */
  restore(place: Place, ref: string, rescueAs: string): Promise<{ rescue: Rescue | undefined }>
  /** Makes the branch unless it is there. Moves nothing. */
  branch(wanted: NewBranch): Promise<{ head: string }>
  /**
   * The line's head; made from the target when there is none. A target that people moved is taken in: by a fast-forward, or by a
   * merge commit when both went on.
   */
  line(of: LineOf): Promise<LineHead>
  /** Keeps a commit that was handed in from being collected, wherever its branch goes, until something lands under its name. Null lets it go. */
  keep(repo: string, name: string, commit: string | null): Promise<void>
  /** One commit on top of `onto`, away from every checkout. `.signalbox/` stays as `onto` has it. Moves only what keeps it. */
  build(build: Build): Promise<Built>
  /**
   * Moves the line from one commit to another by compare-and-swap; also true when an earlier attempt did. False when the line
   * stands elsewhere, or when the target was moved by somebody meanwhile: look at the line, and build again. What cannot be read
   * does not land: `damaged`.
   */
  land(of: LineOf, from: string, to: string, keep: string): Promise<boolean>
  /** By compare-and-swap where the target is checked out nowhere, by a fast-forward in a clean checkout; else it stays behind. */
  follow(of: LineOf): Promise<Followed>
  /**
   * A detached checkout of a commit, and nothing else in it, for checks. One that is there is used again: what an earlier check
   * left in it, or made of it, is gone.
   */
  scratch(repo: string, name: string, commit: string): Promise<{ path: string }>
  dropScratch(repo: string, name: string): Promise<void>
  /**
   * One commit with one file, on the branch of the place, and the file in the place where that is there. Whatever else is changed
   * or staged there stays as it is. Refuses (`busy`) a branch that is checked out elsewhere, and a place that is not on its branch.
   */
  deliver(place: Place, delivery: Delivery): Promise<{ commit: string }>
  /**
   * The commits of the place's branch once more, on top of `onto`: branch, and place where that is there, are moved to them, and where
   * the branch was is saved. A conflict moves nothing. Refuses a place with changes that are not committed, or with a file in the way
   * of what landed, ignored or not, and what `deliver` refuses.
   */
  rebase(place: Place, onto: string, rescueAs: string): Promise<Rebased>
  /** On disk, without what it shares with the repository. */
  size(place: Place): Promise<number>
}

declare module '../kernel/tool.ts' {
  interface Ports {
    git: Git
  }
}
