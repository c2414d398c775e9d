import { isUtf8 } from 'node:buffer'
import { realpathSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { type Git, GitRefusal, type Place } from '../../ports/git.ts'
import { bring, ignored, textsOf } from './bring.ts'
import { deliver } from './deliver.ts'
import { diffOfCommit, diffOfPlace } from './diff.ts'
import { type Exec, execHere } from './exec.ts'
import { extras } from './extras.ts'
import { fileBelow, fileOn, sizeOf } from './files.ts'
import { follow } from './follow.ts'
import { build, keep, keyOf, land, lineHead } from './line.ts'
import { ensure } from './merge.ts'
import {
  checkBelow,
  checkCommit,
  checkLine,
  checkNewBranch,
  checkPlace,
  checkRescue,
  checkRevision,
  checkWord,
  placeUnder,
  rescuesUnder,
  scratchUnder,
} from './names.ts'
import { Packs } from './packs.ts'
import { checkOut, foreign, freePlace, linkAgain, lockAll, register, removeLink, state, sweep, takeAway } from './place.ts'
import { rebase } from './rebase.ts'
import { commitAt, find, inspect, openRepo } from './repo.ts'
import { rescue, rescues, restore } from './rescue.ts'
import { LONG_MS, opener, type Repo } from './run.ts'
import { dropScratch, type Scratch, scratch } from './scratch.ts'
import { Watch } from './stuck.ts'
import { alone, Turns } from './turns.ts'

export interface GitOptions {
  /** The folder that every place is below. */
  worktrees: string
  /** The folder for our own git directories, locks and temporary files; no run may write there. */
  own: string
  env?: NodeJS.ProcessEnv
  /** How long another program may keep us from changing something. */
  lockWaitMs?: number
  /** Who starts git. */
  exec?: Exec
  /** A git that takes longer is looked after: it may wait for a pipe that a worker laid. */
  stuckMs?: number
}

const LOCK_WAIT_MS = 10_000
const STUCK_MS = 2_000

export function createGit({
  worktrees,
  own,
  env = process.env,
  lockWaitMs = LOCK_WAIT_MS,
  exec = execHere,
  stuckMs = STUCK_MS,
}: GitOptions): Git {
  const root = resolved(worktrees)
  const open = opener(env, resolved(own), new Watch(exec, stuckMs))
  const turns = new Turns()
  const remembered = { seen: new Map(), packs: new Packs() }

  /** One thing at a time at one place; and where the repository's list of worktrees changes, one at a time of those. */
  const at = async <T>(place: Place, work: (repo: Awaited<ReturnType<typeof openRepo>>) => Promise<T>): Promise<T> => {
    checkPlace(root, place)
    return turns.take(place.path, async () => work(await openRepo(open, place.repo)))
  }
  const found = async (place: Place) => {
    checkPlace(root, place)
    const repo = await openRepo(open, place.repo)
    return { repo, ...(await find(repo.common, place)) }
  }
  const present = async (place: Place): Promise<string> => {
    const { state, admin } = await found(place)
    if (state === 'foreign') throw foreign(place)
    if (state === 'missing' || !admin) throw new GitRefusal('missing', `There is no worktree at ${place.path}.`)
    return admin
  }
  const locked = new Set<string>()
  const lockOnce = async (repo: Repo) => {
    if (locked.has(repo.common)) return
    await lockAll(repo, root)
    locked.add(repo.common)
  }
  const inScratch = async <T>(repo: string, name: string, work: (it: Scratch) => Promise<T>): Promise<T> => {
    const path = scratchUnder(root, repo, name)
    return turns.take(path, async () => {
      for (const folder of [dirname(dirname(path)), dirname(path)]) await removeLink(folder)
      const from = await openRepo(open, repo)
      const registering = <R>(register: () => Promise<R>) => alone(turns, from, lockWaitMs, register)
      return work({ repo: from, path, root, registering, lockWaitMs })
    })
  }

  return {
    inspect: (path) => inspect(open, path),
    placeFor: (name) => placeUnder(root, name),
    has: async (repo, commit) => (await commitAt(await openRepo(open, repo), checkCommit(commit))) !== undefined,
    moved: async (path) => {
      const repo = await openRepo(open, path)
      await alone(turns, repo, lockWaitMs, () => linkAgain(repo))
    },
    add: (place) =>
      at(place, async (repo) => {
        await lockOnce(repo)
        const base = await alone(turns, repo, lockWaitMs, () => register(open, repo, place, lockWaitMs))
        return { base, head: await checkOut(open, repo, place, lockWaitMs) }
      }),
    idOf: async (path) => {
      checkBelow(root, path)
      const { ino, birthtimeNs } = await stat(path, { bigint: true })
      return `${ino}.${birthtimeNs}`
    },
    bring: async (path, to, patterns) => {
      checkBelow(root, to)
      const repo = await openRepo(open, path)
      const { admin, state } = await find(repo.common, { path: to })
      if (state !== 'present' || !admin) throw foreign({ path: to, repo: path })
      return turns.take(to, async () => bring(await repo.checkout(repo.cwd, repo.gitDir), await repo.checkout(to, admin), patterns))
    },
    filesOf: async (path, commit) => {
      const repo = await openRepo(open, path)
      const listed = (await repo.git(['ls-tree', '-r', '-z', checkCommit(commit)], { timeoutMs: LONG_MS })).toString()
      return listed.split('\0').flatMap((line) => {
        const end = line.indexOf('\t')
        const [mode, , id] = line.slice(0, end).split(' ')
        return end < 0 ? [] : [{ path: line.slice(end + 1), id: `${mode} ${id}` }]
      })
    },
    extras: async (path, at) => {
      checkBelow(root, at)
      const repo = await openRepo(open, path)
      const { admin, state } = await find(repo.common, { path: at })
      if (state !== 'present' || !admin) throw foreign({ path: at, repo: path })
      return extras(await repo.checkout(at, admin))
    },
    textOf: async (path, commit, file, mostBytes) => {
      const found = await fileOn(await openRepo(open, path), checkCommit(commit), file, mostBytes + 1)
      return found && found.size <= mostBytes && isUtf8(found.bytes) ? found.bytes.toString('utf8') : undefined
    },
    ignoredIn: async (path, patterns, most) => {
      const repo = await openRepo(open, path)
      return (await ignored(await repo.checkout(repo.cwd, repo.gitDir), patterns)).slice(0, most)
    },
    ignoredTexts: async (path, patterns, mostBytes) => {
      const repo = await openRepo(open, path)
      return textsOf(await repo.checkout(repo.cwd, repo.gitDir), patterns, mostBytes)
    },
    topOf: async (path, commit) => {
      const repo = await openRepo(open, path)
      return (await repo.git(['ls-tree', '-z', '--name-only', checkCommit(commit)])).toString().split('\0').filter(Boolean)
    },
    remove: async (place, rescueAs) => {
      rescuesUnder(rescueAs)
      const saved = await at(place, (repo) => alone(turns, repo, lockWaitMs, () => takeAway(open, repo, place, root, rescueAs, lockWaitMs)))
      await Promise.all([sweep(root), open.sweep()])
      return { rescue: saved }
    },
    state: async (place, from) => {
      checkRevision(from)
      return state((await found(place)).repo, place, from)
    },
    diff: async (place, request) => {
      checkRevision(request.from)
      if (request.follows !== undefined) checkRevision(request.follows)
      if (request.at !== undefined) checkRevision(request.at)
      const { repo, state, admin } = await found(place)
      if (state === 'foreign') throw foreign(place)
      if (request.at !== undefined || state !== 'present' || !admin) return diffOfCommit(repo, place, request)
      return diffOfPlace(open, await repo.checkout(place.path, admin), admin, request)
    },
    file: async (place, path, bytes, at) => {
      const { repo, state } = await found(place)
      if (at !== undefined) return fileOn(repo, checkRevision(at), path, bytes)
      return state === 'present' ? fileBelow(place.path, path, bytes) : undefined
    },
    rescue: async (place, as) => {
      rescuesUnder(as)
      return at(place, async (repo) => rescue(open, repo, place, await present(place), as))
    },
    rescues: (repo, under) => rescues(open, repo, under),
    restore: async (place, ref, rescueAs) => {
      rescuesUnder(rescueAs)
      checkRescue(ref)
      return at(place, async (repo) => {
        const admin = await present(place)
        await freePlace(repo, place, admin, lockWaitMs)
        return restore(open, repo, place, { admin, ref, as: rescueAs })
      })
    },
    branch: async (wanted) => {
      checkNewBranch(wanted)
      const repo = await openRepo(open, wanted.repo)
      return { head: await alone(turns, repo, lockWaitMs, () => ensure(repo, wanted, lockWaitMs)) }
    },
    deliver: (place, delivery) => at(place, async (repo) => deliver(repo, place, await find(repo.common, place), delivery, lockWaitMs)),
    line: async (of) => {
      checkLine(of)
      return lineHead(await openRepo(open, of.repo), of, remembered, lockWaitMs)
    },
    keep: async (path, name, commit) => {
      checkWord(name)
      if (commit !== null) checkCommit(commit)
      await keep(await openRepo(open, path), name, commit, lockWaitMs)
    },
    build: async (wanted) => {
      checkLine(wanted.line)
      checkCommit(wanted.commit)
      checkCommit(wanted.onto)
      if (wanted.from !== undefined) checkCommit(wanted.from)
      checkWord(wanted.keep)
      return build(await openRepo(open, wanted.line.repo), wanted, remembered.packs, lockWaitMs)
    },
    land: async (of, from, to, keep) => {
      checkLine(of)
      checkCommit(from)
      checkCommit(to)
      checkWord(keep)
      return land(await openRepo(open, of.repo), of, { from, to, keep }, remembered, lockWaitMs)
    },
    follow: async (of) => {
      checkLine(of)
      const repo = await openRepo(open, of.repo)
      return turns.take(`follow ${keyOf(repo, of)}`, () => follow(repo, of, lockWaitMs))
    },
    scratch: (repo, name, commit) =>
      inScratch(repo, name, async (it) => {
        await lockOnce(it.repo)
        await scratch(it, checkCommit(commit))
        // Nobody waits for it: what is left is deleted with the next worktree.
        void sweep(root).catch(() => {})
        return { path: it.path }
      }),
    dropScratch: async (repo, name) => {
      await inScratch(repo, name, dropScratch)
      await Promise.all([sweep(root), open.sweep()])
    },
    rebase: async (place, onto, rescueAs) => {
      checkCommit(onto)
      rescuesUnder(rescueAs)
      return at(place, async (repo) =>
        rebase(place, { repo, found: await find(repo.common, place), onto, rescueAs, packs: remembered.packs, lockWaitMs }),
      )
    },
    size: async (place) => {
      checkPlace(root, place)
      return sizeOf(place.path)
    },
  }
}

/** Links above it resolved, as git writes paths down. Not one in its own place: it may become one later, and rows have the path. */
function resolved(folder: string): string {
  try {
    return join(realpathSync(dirname(folder)), basename(folder))
  } catch {
    return resolve(folder)
  }
}
