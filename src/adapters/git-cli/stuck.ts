import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'
import type { Command, Exec, Ran } from './exec.ts'

/** Git reads these of its own accord, in every folder of a work tree. */
const READ_BY_GIT = new Set(['.gitignore', '.gitattributes', '.gitmodules'])

/** What a git reads that workers can write. */
export interface Readable {
  /** Git's own folders. */
  directories: string[]
  workTree: string | undefined
  files: string[]
}

interface Looking {
  pipe: string | undefined
  end(): void
}

/**
 * A git that opens a pipe waits until somebody opens the other end, which nobody may ever do. To look for pipes before every command
 * would take longer than most of what git does; so one that takes long is looked after, and stopped when there is a pipe.
 */
export class Watch {
  readonly #exec: Exec
  readonly #afterMs: number
  /** By the folder in which git was: where the pipe was last time, it is looked for first. */
  readonly #found = new Map<string, string>()

  constructor(exec: Exec, afterMs: number) {
    this.#exec = exec
    this.#afterMs = afterMs
  }

  /** Throws when there is one: that git could not look does not mean that nothing is there. */
  async run(command: Command, reads: Readable): Promise<Ran> {
    const key = reads.workTree ?? command.cwd
    const known = this.#found.get(key)
    if (known && (await isPipe(known))) throw stuckAt(known)
    this.#found.delete(key)
    const stop = new AbortController()
    const looking = this.#lookAfter(reads, stop)
    const ran = await this.#exec(command, stop.signal)
    looking.end()
    if (!looking.pipe || ran.failed === undefined) return ran
    this.#found.set(key, looking.pipe)
    throw stuckAt(looking.pipe)
  }

  /** Again after twice as long: a pipe can come later, and a large checkout takes its time. */
  #lookAfter(reads: Readable, stop: AbortController): Looking {
    const ended = new AbortController()
    const looking: Looking = {
      pipe: undefined,
      end() {
        ended.abort()
        clearTimeout(timer)
      },
    }
    const look = async (waited: number) => {
      looking.pipe = await pipeAmong(reads, ended.signal)
      if (looking.pipe) stop.abort()
      else if (!ended.signal.aborted) timer = setTimeout(look, waited * 2, waited * 2)
    }
    let timer = setTimeout(look, this.#afterMs, this.#afterMs)
    return looking
  }
}

function stuckAt(pipe: string): GitRefusal {
  return new GitRefusal('failed', `${pipe} is a pipe, which git would wait for. Remove it.`)
}

async function pipeAmong({ directories, workTree, files }: Readable, ended: AbortSignal): Promise<string | undefined> {
  for (const file of files) if (await isPipe(file)) return file
  for (const folder of directories) {
    const found = await pipeBelow(folder, () => true, ended)
    if (found) return found
  }
  return workTree && pipeBelow(workTree, (name) => READ_BY_GIT.has(name), ended)
}

async function pipeBelow(top: string, isRead: (name: string) => boolean, ended: AbortSignal): Promise<string | undefined> {
  const folders = [top]
  for (let folder = folders.pop(); folder !== undefined && !ended.aborted; folder = folders.pop()) {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) folders.push(path)
      else if (isRead(entry.name) && !entry.isFile() && (await isPipe(path))) return path
    }
  }
  return undefined
}

/** Also by way of a link. */
async function isPipe(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFIFO() ?? false
}
