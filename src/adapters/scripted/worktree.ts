import { execFile } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'

const GIT_MS = 60_000

/** The folder in which the agent works. Every path of a script stays in it. */
export class Worktree {
  readonly #top: string
  readonly #locksOfAnEarlierLife = new Map<string, number>()

  constructor(cwd: string) {
    this.#top = realpathSync(cwd)
  }

  /** To be called before anything is done: a lock that is there now was left by a git that was killed. */
  async rememberLocks(): Promise<void> {
    const found = await this.#locks().catch(() => [])
    for (const file of found.filter((path) => existsSync(path))) this.#locksOfAnEarlierLife.set(file, statSync(file).ino)
  }

  read(path: string): string {
    return readFileSync(this.#inside(path), 'utf8')
  }

  write(path: string, text: string): void {
    const file = this.#inside(path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }

  /** Not twice: a life that is started again finds its text there. */
  append(path: string, text: string): void {
    const file = this.#inside(path)
    const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
    if (!before.includes(text)) this.write(path, before + text)
  }

  delete(path: string): void {
    rmSync(this.#inside(path), { recursive: true, force: true })
  }

  /** False when there is nothing to commit. */
  async commit(message: string, author: { name: string; email: string }): Promise<boolean> {
    this.#unlock()
    await this.#git(['add', '--all'])
    if (!(await this.#git(['diff', '--cached', '--name-only']))) return false
    await this.#git(['commit', '--quiet', '--no-gpg-sign', `--message=${message}`], {
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_COMMITTER_NAME: author.name,
      GIT_COMMITTER_EMAIL: author.email,
    })
    return true
  }

  /** Undefined when nothing was committed yet. */
  head(): Promise<string | undefined> {
    return this.#git(['rev-parse', '--verify', '--quiet', 'HEAD']).catch(() => undefined)
  }

  /** True for the first caller with this key in this worktree, whichever life it is in. */
  async first(key: string): Promise<boolean> {
    const folder = join(await this.#git(['rev-parse', '--absolute-git-dir']), 'signalbox-once')
    mkdirSync(folder, { recursive: true })
    try {
      writeFileSync(join(folder, key), '', { flag: 'wx' })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    }
  }

  /** A link on the way could lead out, and git's own files are not the script's. */
  #inside(path: string): string {
    const file = resolve(this.#top, path)
    const parts = relative(this.#top, file).split(sep)
    if (isAbsolute(path) || parts[0] === '..' || parts[0] === '') throw new Error(`${path} is not inside the worktree`)
    if (parts.some((part) => part.toLowerCase() === '.git')) throw new Error(`${path} belongs to git`)
    for (let i = 1; i <= parts.length; i++) {
      const step = join(this.#top, ...parts.slice(0, i))
      if (lstatSync(step, { throwIfNoEntry: false })?.isSymbolicLink()) throw new Error(`${path} goes through a link`)
    }
    return file
  }

  async #locks(): Promise<string[]> {
    const branch = await this.#git(['symbolic-ref', '--quiet', 'HEAD']).catch(() => 'HEAD')
    const names = ['index.lock', 'HEAD.lock', `${branch}.lock`]
    const paths = await this.#git(['rev-parse', ...names.flatMap((name) => ['--git-path', name])])
    return paths.split('\n').map((path) => resolve(this.#top, path))
  }

  #unlock(): void {
    for (const [file, ino] of this.#locksOfAnEarlierLife) {
      if (lstatSync(file, { throwIfNoEntry: false })?.ino === ino) rmSync(file)
    }
    this.#locksOfAnEarlierLife.clear()
  }

  #git(args: string[], env: Record<string, string> = {}): Promise<string> {
    const options = {
      cwd: this.#top,
      env: { ...process.env, GIT_TERMINAL_PROMPT: '0', GIT_EDITOR: 'true', LC_ALL: 'C', ...env },
      timeout: GIT_MS,
      maxBuffer: 8_000_000,
    }
    return new Promise((done, fail) => {
      execFile('git', args, options, (error, stdout, stderr) =>
        error ? fail(new Error(`git ${args[0]} said no: ${stderr.trim() || error.message}`)) : done(stdout.trim()),
      )
    })
  }
}
