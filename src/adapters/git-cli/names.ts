import { createHash } from 'node:crypto'
import { isAbsolute, join, normalize, sep } from 'node:path'
import { GitRefusal, type LineOf, type NewBranch, type Place, type PlaceName } from '../../ports/git.ts'

/** What git accepts as a branch, less what it reads as an option or as an expression over revisions. */
const BRANCH = /^(?![-/.])(?!@$)(?!.*(?:\.\.|@\{|\/\/|\/\.|\.lock(?:\/|$)|[\s~^:?*[\\]))[^\p{Cc}]{1,200}(?<!\/|\.)$/u
const REF = /^refs\/[A-Za-z]/
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/
const WORD = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/
const PART = /^[A-Za-z0-9._-]{1,100}$/
const RESCUES = 'refs/signalbox/rescue/'

export function checkBranch(branch: string): string {
  if (!BRANCH.test(branch)) throw new GitRefusal('invalid', `${JSON.stringify(branch)} is not a branch name that git accepts.`)
  return branch
}

export function isRefOrCommit(name: string): boolean {
  return COMMIT.test(name) || (REF.test(name) && BRANCH.test(name))
}

export function checkRevision(name: string): string {
  if (!isRefOrCommit(name)) throw new GitRefusal('invalid', `${JSON.stringify(name)} is neither a commit nor a ref in full.`)
  return name
}

export function checkCommit(name: string): string {
  if (!COMMIT.test(name)) throw new GitRefusal('invalid', `${JSON.stringify(name)} is not a commit in full.`)
  return name
}

export function checkNewBranch({ repo, branch }: NewBranch): void {
  checkPath(repo)
  checkBranch(branch)
}

export function checkLine({ repo, target }: LineOf): void {
  checkPath(repo)
  checkBranch(target)
}

/** One part of a path and of a ref. */
export function checkWord(word: string): string {
  const bad = !WORD.test(word) || word.includes('..') || word.endsWith('.') || word.endsWith('.lock')
  if (bad) throw new GitRefusal('invalid', `${JSON.stringify(word)} cannot be part of a path or a ref.`)
  return word
}

export function rescuesUnder(name: string): string {
  return `${RESCUES}${checkWord(name)}`
}

export function checkRescue(ref: string): string {
  if (!ref.startsWith(RESCUES) || !BRANCH.test(ref))
    throw new GitRefusal('invalid', `${JSON.stringify(ref)} is not the ref of a saved tree.`)
  return ref
}

export function placeUnder(root: string, { repo_handle, name }: PlaceName): string {
  return join(root, checkWord(repo_handle), checkWord(name))
}

/** Apart from the places: the repository is known by its path alone. */
export function scratchUnder(root: string, repo: string, name: string): string {
  checkPath(repo)
  return join(root, '.scratch', createHash('sha256').update(repo).digest('hex').slice(0, 16), checkWord(name))
}

/** Only below our own root: no mistake in a row may point us at a folder of the person's. */
export function checkPlace(root: string, place: Place): void {
  checkBranch(place.branch)
  checkPath(place.repo)
  checkBelow(root, place.path)
}

export function checkBelow(root: string, path: string): void {
  checkPath(path)
  if (!path.startsWith(root + sep)) throw new GitRefusal('invalid', `${path} is not below ${root}, where worktrees are kept.`)
}

/** Of a file, below a folder. */
export function checkDelivered(path: string): void {
  const parts = path.split('/')
  const plain = parts.length > 1 && parts.every((part) => PART.test(part) && part !== '.' && part !== '..' && part.toLowerCase() !== '.git')
  if (!plain) throw new GitRefusal('invalid', `${JSON.stringify(path)} is not a plain path below a folder.`)
}

export function checkPath(path: string): void {
  // A line feed would be two lines to git's own files.
  const plain = isAbsolute(path) && normalize(path) === path && !/[\0\n\r]/.test(path)
  if (!plain) throw new GitRefusal('invalid', `${JSON.stringify(path)} is not an absolute, plain path.`)
}
