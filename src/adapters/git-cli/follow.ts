import { createHash } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Followed, GitRefusal, type LineOf } from '../../ports/git.ts'
import { filtersIn } from './config.ts'
import { exists } from './files.ts'
import { type Change, moveOf, onlyTheBranchStayed, takeBack, writeDown, writtenDown } from './half-way.ts'
import { DETACHED, headsOf, isThere } from './heads.ts'
import { moveRefs } from './line.ts'
import { freeLocks, untilEnded } from './lock-files.ts'
import { lockOf, mergedTree } from './merge.ts'
import { isAncestor, lineRef, tips } from './repo.ts'
import { type At, LONG_MS, type Repo } from './run.ts'
import { smallFileOrNone } from './small-file.ts'

type Why = Extract<Followed, { state: 'behind' }>['why']
type Held = { why: Why; at: string | null; message: string }

/** In git's own folder of a checkout while something is at work there that will move its branch itself. */
const IN_PROGRESS = {
  MERGE_HEAD: 'a merge',
  CHERRY_PICK_HEAD: 'a cherry-pick',
  REVERT_HEAD: 'a revert',
  'rebase-merge': 'a rebase',
  'rebase-apply': 'a rebase',
  sequencer: 'a cherry-pick',
  BISECT_LOG: 'a bisect',
}
const LOCKS = ['index.lock', 'HEAD.lock']
const MOST_NAMED = 5
/** In the reflog, and in the environment of the git that does it. */
const ACTION = 'signalbox: line'
const GITLINK = '160000'
/** What git says of an attribute that has no value. */
const NO_FILTER = new Set(['unspecified', 'set', 'unset'])

export async function follow(repo: Repo, of: LineOf, lockWaitMs: number): Promise<Followed> {
  const checkouts = await checkoutsOf(repo, of.target)
  for (const checkout of checkouts) await mend(repo, of, checkout, lockWaitMs)
  const { line, local } = await tips(repo, of.target)
  if (of.known && !(line && of.known.includes(line))) return foreign(repo, of, local)
  if (!line || line === local) return { state: 'even' }
  if (!local && !of.base) throw new GitRefusal('missing', `${repo.cwd} has no branch "${of.target}". ${byHand('git branch', of)}`)
  const held = await tryTo(repo, of, { line, local }, checkouts, lockWaitMs)
  if (!held) return { state: 'even' }
  // Somebody else was faster: another of us, or the person.
  const then = (await tips(repo, of.target)).local
  if (then === line) return { state: 'even' }
  const by = Number(await repo.line(['rev-list', '--count', line, ...(then ? [`^${then}`] : [])]))
  return { state: 'behind', by, ...held }
}

async function foreign(repo: Repo, of: LineOf, local: string | undefined): Promise<Followed> {
  const [head] = of.known ?? []
  const by = head && (await repo.ask(['rev-list', '--count', head, ...(local ? [`^${local}`] : [])]))
  const message = `${lineRef(of.target)} does not stand where it was put.`
  return { state: 'behind', by: by ? Number(by) : 1, why: 'foreign', at: null, message }
}

interface Step {
  line: string
  local: string | undefined
}

async function tryTo(repo: Repo, of: LineOf, step: Step, checkouts: Checkout[], lockWaitMs: number): Promise<Held | undefined> {
  const { line, local } = step
  const [first, second] = checkouts
  if (first && second) {
    const message = `${of.target} is checked out in ${first.path} and in ${second.path}. Check out another branch in one of them, then sync.`
    return { why: 'busy', at: first.path, message }
  }
  if (first) return (await atWork(of, first)) ?? (local ? inCheckout(repo, of, first, { line, local }) : unborn(of, first))
  if (local && !(await isAncestor(repo, local, line))) return wentOn(repo, of, { line, local }, null)
  const ref = `refs/heads/${of.target}`
  const refused = await moveRefs(repo, [[ref, `update ${ref} ${line} ${local ?? '0'.repeat(line.length)}`]], lockWaitMs)
  if (refused === undefined) return undefined
  return { why: 'moved', at: null, message: `${of.target} cannot be moved: ${refused}` }
}

/** What a git of ours was killed in the middle of is finished where only the branch is missing, and taken back elsewhere. */
async function mend(repo: Repo, of: LineOf, { path, admin, doing }: Checkout, lockWaitMs: number): Promise<void> {
  const file = admin && journalOf(repo, admin)
  const begun = file && (await writtenDown(file))
  if (!begun || doing) return
  await untilEnded([`GIT_WORK_TREE=${path}`, `GIT_REFLOG_ACTION=${ACTION}`], admin, lockWaitMs)
  const ref = `refs/heads/${of.target}`
  await freeLocks([...LOCKS.map((name) => join(admin, name)), lockOf(repo, ref)], [path, repo.common], lockWaitMs)
  const { local, line } = await tips(repo, of.target)
  if (local === begun.from) {
    const at = await repo.checkout(path, admin)
    const finish = line && (await onlyTheBranchStayed(at, begun)) && (await isAncestor(repo, begun.to, line))
    const refused = finish ? await moveRefs(repo, [[ref, `update ${ref} ${begun.to} ${begun.from}`]], lockWaitMs) : undefined
    if (!finish || refused !== undefined) await takeBack(at, { ...(await moveOf(at, begun.from, begun.to)), before: begun.before })
  }
  await rm(file, { force: true })
}

/** What the fast-forward of a checkout is about to do. */
function journalOf(repo: Repo, admin: string): string {
  return join(repo.notes, `follow-${createHash('sha256').update(admin).digest('hex').slice(0, 16)}`)
}

/** A checkout of the target, or one in which it will be moved by what is at work there. */
interface Checkout {
  path: string
  /** Git's own folder about it; undefined when the checkout is gone, or on a disk that is not mounted now. */
  admin: string | undefined
  doing: string | undefined
}

async function checkoutsOf(repo: Repo, target: string): Promise<Checkout[]> {
  const found = (await headsOf(repo)).map(async (one): Promise<Checkout | undefined> => {
    const { path, admin, head } = one
    const holds = head === `refs/heads/${target}` || (head === DETACHED && (await namesBranch(admin, target)))
    if (!holds) return undefined
    return (await isThere(one)) ? { path, admin, doing: await inProgress(admin) } : { path, admin: undefined, doing: undefined }
  })
  return (await Promise.all(found)).filter((one) => one !== undefined)
}

async function inProgress(admin: string): Promise<string | undefined> {
  const names = new Set(await readdir(admin))
  return Object.entries(IN_PROGRESS).find(([name]) => names.has(name))?.[1]
}

/** Its HEAD is detached meanwhile: that it will go back to the branch is only in these. */
async function namesBranch(admin: string, target: string): Promise<boolean> {
  const files = ['rebase-merge/head-name', 'rebase-apply/head-name', 'rebase-merge/update-refs', 'BISECT_START']
  const said = await Promise.all(files.map((name) => smallFileOrNone(join(admin, name))))
  return said.some((text) => text.split('\n').some((line) => line === `refs/heads/${target}` || line === target))
}

async function atWork(of: LineOf, { path, admin, doing }: Checkout): Promise<Held | undefined> {
  const busy = (message: string): Held => ({ why: 'busy', at: path, message })
  if (!admin) return busy(`${of.target} is checked out in ${path}, which is not there now. If it is gone for good: \`git worktree prune\`.`)
  if (doing) return busy(`In ${path}, ${doing} is in progress. End it, then sync.`)
  for (const name of LOCKS) {
    const lock = join(admin, name)
    if (await exists(lock)) return busy(`Another git is at work in ${path}. If none is, remove ${lock}, then sync.`)
  }
  return undefined
}

function unborn(of: LineOf, { path }: Checkout): Held {
  return { why: 'busy', at: path, message: `${path} is on ${of.target}, which has no commit there. Check out another branch, then sync.` }
}

/** It has landed by now: that git says no here must not look as if it had not. */
async function inCheckout(repo: Repo, of: LineOf, { path, admin = '' }: Checkout, step: { line: string; local: string }) {
  try {
    return await fastForward(await repo.checkout(path, admin), repo, of, step, journalOf(repo, admin))
  } catch (error) {
    if (!(error instanceof GitRefusal) || error.reason !== 'failed') throw error
    const held: Held = { why: 'busy', at: path, message: `${of.target} could not follow: ${error.message}. Mend that, then sync.` }
    return held
  }
}

async function fastForward(
  at: At,
  repo: Repo,
  of: LineOf,
  step: { line: string; local: string },
  journal: string,
): Promise<Held | undefined> {
  const looked = ['--untracked-files=no', '--ignore-submodules=dirty']
  const [status, move] = await Promise.all([
    at.git(['status', '--porcelain', '--branch', '--no-ahead-behind', '-z', '--no-renames', ...looked]),
    moveOf(at, step.local, step.line),
  ])
  const [on = '', ...dirty] = status.toString().split('\0').filter(Boolean)
  // It would be another branch that is moved.
  if (on.slice(3).split('...')[0] !== of.target)
    return { why: 'busy', at: at.cwd, message: `Another branch is being checked out in ${at.cwd}. Sync again later.` }
  // First: without its filter a file can look changed that is not.
  const held = await onlyByHand(at, repo, of, move.changes)
  if (held) return held
  if (dirty.length) {
    const message = `In ${at.cwd}, these are changed and not committed: ${named(dirty.map((entry) => entry.slice(3)))}. Commit or stash them, then sync.`
    return { why: 'dirty', at: at.cwd, message }
  }
  const flags = ['--ff-only', '--no-overwrite-ignore', '--no-autostash', '--no-verify-signatures', '--no-squash', '--commit', '--no-stat']
  const run = { checkout: true, timeoutMs: LONG_MS, env: { GIT_REFLOG_ACTION: ACTION } }
  await writeDown(journal, move)
  const { failed } = await at.tried(['merge', '--quiet', ...flags, step.line], run)
  // Who has that lock may be in the middle of the same: then what is there is his, and nothing of it is ours.
  if (failed !== undefined && !failed.includes('index.lock')) await takeBack(at, move)
  await rm(journal, { force: true })
  if (failed === undefined) return undefined
  if (!(await isAncestor(repo, `refs/heads/${of.target}`, step.line))) return wentOn(repo, of, step, at.cwd)
  return refusedBy(at, failed)
}

/** What git says when it will not; it names each file on a line of its own, after a tab. */
function refusedBy(at: At, failed: string): Held {
  const files = failed.split('\n').flatMap((line) => (line.startsWith('\t') ? [line.slice(1).trim()] : []))
  const which = files.length ? named(files) : failed
  if (failed.includes('.lock'))
    return { why: 'busy', at: at.cwd, message: `Another git is at work in ${at.cwd}. Sync again later. Git said: ${failed}` }
  if (failed.includes('local changes'))
    return { why: 'dirty', at: at.cwd, message: `In ${at.cwd}, these are changed: ${which}. Commit or stash them, then sync.` }
  if (files.length)
    return {
      why: 'in_the_way',
      at: at.cwd,
      message: `In ${at.cwd}, these are in the way of what landed: ${which}. Move them away, then sync.`,
    }
  return { why: 'in_the_way', at: at.cwd, message: `In ${at.cwd}, what landed could not be written: ${failed}. Mend that, then sync.` }
}

/** What a fast-forward would leave half done: the next commit of all that is changed would take it back. */
async function onlyByHand(at: At, repo: Repo, of: LineOf, changes: Change[]): Promise<Held | undefined> {
  const links = changes.filter(({ modes }) => modes.includes(GITLINK)).map(({ path }) => utf8(path))
  const filled = []
  for (const path of links) if (await exists(join(at.cwd, path, '.git'))) filled.push(path)
  if (filled.length) {
    const message = `What landed changes a submodule: ${named(filled)}. ${byHand('git merge --ff-only', of)}, then \`git submodule update\`.`
    return { why: 'in_the_way', at: at.cwd, message }
  }
  const filtered = await withheld(at, repo, changes)
  if (!filtered.length) return undefined
  const message = `A filter that only the repository's own configuration names writes these: ${named(filtered)}. ${byHand('git merge --ff-only', of)}.`
  return { why: 'in_the_way', at: at.cwd, message }
}

function has(filters: ReturnType<typeof filtersIn>, name: string): boolean {
  return filters === 'any' || filters.has(name)
}

/** What goes through a filter that the repository's own configuration names, and not the person's. */
async function withheld(at: At, repo: Repo, changes: Change[]): Promise<string[]> {
  const filters = filtersIn(repo.says)
  if (filters !== 'any' && !filters.size) return []
  const input = Buffer.from(changes.map(({ path }) => `${path}\0`).join(''), 'latin1')
  const told = (await at.git(['check-attr', '--stdin', '-z', 'filter'], { input })).toString().split('\0')
  // Of the repository's configuration this git knows none: those that it knows are run.
  const listed = (await at.ask(['config', '-z', '--name-only', '--get-regexp', '^filter\\..*\\.(smudge|process)$'])) ?? ''
  const ran = filtersIn(listed.split('\0').map((key) => [key, '']))
  const isWithheld = (filter: string) => !NO_FILTER.has(filter) && !has(ran, filter) && has(filters, filter)
  return told.flatMap((value, i) => (i % 3 === 2 && isWithheld(value) ? [told[i - 2] ?? ''] : []))
}

async function wentOn(repo: Repo, of: LineOf, { line, local }: { line: string; local: string }, at: string | null): Promise<Held> {
  const tree = await mergedTree(repo, line, local)
  if (!('files' in tree)) return { why: 'moved', at, message: `${of.target} has commits that its line has not taken in yet. Sync again.` }
  const message = `${of.target} and what landed both changed ${tree.files.length ? named(tree.files) : 'everything'}. ${byHand('git merge', of)}.`
  return { why: 'apart', at, message }
}

function utf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString()
}

function byHand(command: string, of: LineOf): string {
  const ref = lineRef(of.target)
  return command === 'git branch' ? `Make it: \`git branch ${of.target} ${ref}\`.` : `Do it yourself there: \`${command} ${ref}\``
}

function named(files: string[]): string {
  const shown = files.slice(0, MOST_NAMED).join(', ')
  return files.length > MOST_NAMED ? `${shown} and ${files.length - MOST_NAMED} more` : shown
}
