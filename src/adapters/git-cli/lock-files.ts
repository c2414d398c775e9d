import { watch } from 'node:fs'
import { lstat, readdir, readFile, readlink, unlink } from 'node:fs/promises'
import { basename, dirname, sep } from 'node:path'
import { GitRefusal } from '../../ports/git.ts'

/** Younger ones are left alone even when nobody seems to hold them: not every program that locks keeps the file open. */
const YOUNG_MS = 2_000
const LOOK_AGAIN_MS = 500

/**
 * Git's own lock files say neither who made them nor when that was. One is stale when it is ours, is not young, and no
 * living process of ours has it open or is a git at work in one of `homes` (the repository and its worktrees). Where
 * processes cannot be seen, none is ever stale.
 */
export async function freeLocks(files: string[], homes: string[], waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs
  for (const file of files) {
    for (;;) {
      const holder = await holderOf(file, homes)
      if (holder === 'none') break
      if (performance.now() > deadline)
        throw new GitRefusal(
          'busy',
          `${file} is held by ${holder}, for more than ${waitMs / 1_000} s. End that, or remove the file if nothing uses it.`,
        )
      await changeIn(dirname(file))
    }
  }
}

/** A git can outlive the daemon that started it: it is known by what stands in its environment. */
export async function untilEnded(environment: string[], folder: string, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs
  for (;;) {
    const pid = await processWith(environment)
    if (!pid) return
    if (performance.now() > deadline)
      throw new GitRefusal(
        'busy',
        `Process ${pid} (${await nameOf(pid)}) is at work in ${folder}, for more than ${waitMs / 1_000} s. End it.`,
      )
    await changeIn(folder)
  }
}

async function processWith(environment: string[]): Promise<string | undefined> {
  for (const pid of (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))) {
    const told = (await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')).split('\0')
    if (environment.every((entry) => told.includes(entry))) return pid
  }
  return undefined
}

/** Who holds it, in words; `none` when it is not there, or no longer there. */
async function holderOf(file: string, homes: string[]): Promise<string> {
  const found = await lstat(file).catch(() => undefined)
  if (!found) return 'none'
  if (found.uid !== process.getuid?.()) return 'another user'
  const living = await livingUser(file, homes)
  if (living) return living
  if (Math.abs(Date.now() - found.mtimeMs) < YOUNG_MS) return 'somebody'
  const again = await lstat(file).catch(() => undefined)
  if (again?.ino === found.ino && again.mtimeMs === found.mtimeMs) await unlink(file).catch(() => {})
  return (await lstat(file).catch(() => undefined)) ? 'somebody' : 'none'
}

async function livingUser(file: string, homes: string[]): Promise<string | undefined> {
  const pids = (await readdir('/proc').catch(() => undefined))?.filter((name) => /^\d+$/.test(name))
  if (!pids) return 'a program that cannot be seen on this system'
  for (const pid of pids) {
    if (pid === String(process.pid)) continue
    if ((await isGitIn(pid, homes)) || (await hasOpen(pid, file))) return `process ${pid} (${await nameOf(pid)})`
  }
  return undefined
}

async function isGitIn(pid: string, homes: string[]): Promise<boolean> {
  if (!(await nameOf(pid)).startsWith('git')) return false
  const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
  if (homes.some((home) => cwd === home || cwd.startsWith(home + sep))) return true
  const told = await Promise.all(['cmdline', 'environ'].map((name) => readFile(`/proc/${pid}/${name}`, 'utf8').catch(() => '')))
  return homes.some((home) => told.some((text) => text.includes(home)))
}

async function hasOpen(pid: string, file: string): Promise<boolean> {
  const folder = `/proc/${pid}/fd`
  const open = await readdir(folder).catch(() => [])
  const targets = await Promise.all(open.map((fd) => readlink(`${folder}/${fd}`).catch(() => '')))
  return targets.includes(file)
}

/** A process that has ended and was not waited for yet has a name, and holds nothing. */
async function nameOf(pid: string): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  const end = stat.lastIndexOf(')')
  if (stat[end + 2] === 'Z') return ''
  return basename(stat.slice(stat.indexOf('(') + 1, end))
}

/** A lock that goes is a change of its folder; a holder that dies is not, so we look again after a while all the same. */
function changeIn(folder: string): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      watcher?.close()
      resolve()
    }
    const timer = setTimeout(done, LOOK_AGAIN_MS)
    let watcher: ReturnType<typeof watch> | undefined
    try {
      watcher = watch(folder, done)
      watcher.on('error', done)
    } catch {
      // Gone, or too many watches: the timer is enough.
    }
  })
}
