import { join } from 'node:path'
import { type Build, type Built, GitRefusal, type LineHead, type LineOf } from '../../ports/git.ts'
import { freeLocks } from './lock-files.ts'
import { ATTRIBUTES, commitOf, lockOf, type Made, madeBefore, mergedTree } from './merge.ts'
import { damaged, type Packs, sweepPacks } from './packs.ts'
import { DIFFERING, isObject, mergedBy, proven, readingFrom } from './proven.ts'
import { baseCommit, commitAt, isAncestor, lineRef, refs, type Tips, tips } from './repo.ts'
import { saveCommit } from './rescue.ts'
import type { Repo } from './run.ts'

/** Somebody else moves line or target meanwhile, over and over. */
const TRIES = 10
const BUILDS = 5
/** So often people can have committed before anybody looked at the line. */
const MOST_TAKEN_IN = 100
/** What is between agents and reviewers: it never lands. */
const OURS = '.signalbox'
/** However often it is looked at, it is one and the same commit. */
const SAME_DATE = { GIT_AUTHOR_DATE: '@1 +0000', GIT_COMMITTER_DATE: '@1 +0000' }

/** What the target was when a line was looked at: only a guess, which saves a look when it still holds. */
export type Seen = Map<string, { head: string; local: string | undefined }>

/** What is known from before: nothing is wrong without it. */
export interface Remembered {
  seen: Seen
  packs: Packs
}

export async function lineHead(repo: Repo, of: LineOf, { seen, packs }: Remembered, lockWaitMs: number): Promise<LineHead> {
  let failed = ''
  for (let tries = 0; tries < TRIES; tries++) {
    const now = await tips(repo, of.target)
    const { local, remote, line } = now
    const people = [...new Set(of.strategy === 'local' && local ? [local] : [local, remote])].filter((tip) => tip !== undefined)
    if (line && of.known && !(await isOurs(repo, of.known, line, people))) return { state: 'foreign', head: line }
    if (!line || (!local && of.base)) {
      const refused = await begin(repo, of, now, lockWaitMs)
      if (refused !== undefined) await makeRoom(repo, of.target)
      failed = refused ?? failed
      continue
    }
    if (!local && !remote) throw missing(repo, of)
    const joined = await takeIn(repo, of, line, people)
    if ('files' in joined) return { state: 'apart', ...joined }
    const { head } = joined
    const refused = head === line ? undefined : await moveTo(repo, of, { from: line, to: head, people }, packs, lockWaitMs)
    failed = refused ?? failed
    if (refused !== undefined) continue
    seen.set(keyOf(repo, of), { head, local })
    return { state: 'ready', head, moved: !(of.known ?? [line]).includes(head) }
  }
  throw new GitRefusal(
    'busy',
    `The line of ${of.target} in ${repo.cwd} cannot be moved, or is moved by somebody else all the time: ${failed}`,
  )
}

/**
 * Whether the line got there by us: from where it is known to be, by what people committed and nothing else. Cut off before that was
 * told, it is some merges further; each of them comes out the same when it is made again.
 */
async function isOurs(repo: Repo, known: string[], line: string, people: string[]): Promise<boolean> {
  const isTheirs = async (commit: string) => (await Promise.all(people.map((tip) => isAncestor(repo, commit, tip)))).includes(true)
  let at = line
  for (let steps = 0; steps < MOST_TAKEN_IN; steps++) {
    if (known.includes(at)) return true
    // An older commit of the branch would take back what has landed.
    if (await isTheirs(at)) return hasOneOf(repo, at, known)
    const [tree, first, second, ...more] = (await repo.ask(['log', '--no-walk', '--format=%T %P', at]))?.split(' ') ?? []
    if (!first || !second || more.length || !(await isTheirs(second))) return false
    const again = await mergedTree(repo, first, second)
    if ('files' in again || again.id !== tree) return false
    at = first
  }
  return false
}

/** Also when there is none of them any more: of a repository that was cloned again. */
async function hasOneOf(repo: Repo, commit: string, known: string[]): Promise<boolean> {
  const there = (await Promise.all(known.map((one) => commitAt(repo, one)))).filter((one) => one !== undefined)
  return !there.length || (await Promise.all(there.map((one) => isAncestor(repo, one, commit)))).includes(true)
}

/** Whichever of line and target there is not: as the other, or as the target's base. */
async function begin(repo: Repo, of: LineOf, now: Tips, lockWaitMs: number): Promise<string | undefined> {
  // What has landed stays, though somebody deleted the line.
  const last = now.line ?? (of.known?.[0] && (await commitAt(repo, of.known[0])))
  const known = last || now.local
  const first = known ?? (of.base ? await baseCommit(repo, { base: of.base, strategy: of.strategy }) : now.remote)
  if (!first) throw missing(repo, of)
  const wanted = [...(now.line ? [] : [lineRef(of.target)]), ...(now.local || !of.base ? [] : [`refs/heads/${of.target}`])]
  return moveRefs(
    repo,
    wanted.map((ref) => [ref, `create ${ref} ${first}`]),
    lockWaitMs,
  )
}

/** `rel` and `rel/1` cannot both be refs. The line of a branch that is gone would be in the way for ever. */
async function makeRoom(repo: Repo, target: string): Promise<void> {
  const own = lineRef(target)
  const near = await refs(repo, [own, lineRef(target.split('/')[0] ?? target)])
  for (const [ref, { commit }] of near) {
    if (!own.startsWith(`${ref}/`) && !ref.startsWith(`${own}/`)) continue
    const branch = ref.slice(lineRef('').length)
    const { local, remote } = await tips(repo, branch)
    if (local || remote)
      throw new GitRefusal('failed', `${target} cannot have a line beside ${branch}: git has no room for both names. Rename one of them.`)
    await saveCommit(repo, commit, branch, 'lines')
    await repo.ask(['update-ref', '-d', ref, commit])
  }
}

type Joined = { head: string } | { head: string; target: string; files: string[] }

async function takeIn(repo: Repo, of: LineOf, line: string, people: string[]): Promise<Joined> {
  let head = line
  for (const theirs of people) {
    if (theirs === head) continue
    const common = await repo.ask(['merge-base', head, theirs])
    if (common === theirs) continue
    if (common === head) {
      head = theirs
      continue
    }
    const tree = await mergedTree(repo, head, theirs)
    if ('files' in tree) return { head: line, target: theirs, files: tree.files }
    const input = `Merge ${of.target} into its line\n`
    head = await repo.line(['commit-tree', tree.id, '-p', head, '-p', theirs], { input })
  }
  return { head }
}

interface Step {
  from: string
  to: string
  people: string[]
}

/** Why not, when not. */
async function moveTo(repo: Repo, of: LineOf, { from, to, people }: Step, packs: Packs, lockWaitMs: number): Promise<string | undefined> {
  const damage = people.includes(to) ? undefined : await packs.keep(repo, to, from, ...people)
  return damage ?? moveRefs(repo, [[lineRef(of.target), `update ${lineRef(of.target)} ${to} ${from}`]], lockWaitMs)
}

export async function build(repo: Repo, wanted: Build, packs: Packs, lockWaitMs: number): Promise<Built> {
  const { keep, onto, from, commit } = wanted
  await sweepPacks(repo)
  const [{ before, edges }, first] = await Promise.all([landedBefore(repo, wanted, packs), workOn(repo, commit, onto)])
  if (before) return { result: 'landed', commit: before }
  if (from && from !== onto && !edges.some((edge) => edge.commit === from) && !(await isAncestor(repo, from, onto)))
    throw shownToNobody(wanted.line, from)
  for (let tries = 1; ; tries++) {
    const merged = tries === 1 ? first : await workOn(repo, commit, onto)
    if ('files' in merged) return { result: 'conflict', files: merged.files }
    if (merged.tree === merged.ontoTree) return { result: 'nothing' }
    const built = await packed(repo, wanted, { ...merged, edges }, packs).catch((error: unknown) => {
      // Until it is packed, somebody can collect it: then it is made once more.
      if (!(error instanceof GitRefusal) || tries === BUILDS) throw error
      return undefined
    })
    if (!built) continue
    const refused = await moveRefs(repo, [[keptRef(keep), `update ${keptRef(keep)} ${built}`]], lockWaitMs)
    if (refused !== undefined) throw new GitRefusal('failed', `${keptRef(keep)} cannot be written in ${repo.cwd}: ${refused}`)
    return { result: 'built', commit: built }
  }
}

async function packed(
  repo: Repo,
  { onto, commit: work, method, ...said }: Build,
  merged: Merged & { edges: Made[] },
  packs: Packs,
): Promise<string> {
  await proveMerge(repo, work, onto, merged)
  const commit = await commitOf(repo, said, merged.original, merged.tree, method === 'merge' ? [onto, work] : [onto])
  const damage = await packs.keep(repo, commit, onto)
  if (damage !== undefined) throw damaged(work, damage)
  return commit
}

/**
 * What is merged was read from objects that workers can write. On top of `onto` it is the tree of the work itself; else it has to come
 * out the same from what both sides, and where they parted, are by their ids.
 */
async function proveMerge(repo: Repo, commit: string, onto: string, merged: Merged & { edges: Made[] }): Promise<void> {
  const { original, tree, ontoTree, attributes, ours, edges } = merged
  if (!isObject(commit, 'commit', original)) throw damaged(commit, 'it is not what its id says')
  const [, workTree = ''] = /^tree ([0-9a-f]+)\n/.exec(original.toString('latin1')) ?? []
  if (tree === workTree) return
  const pairs = edges.flatMap((edge) => [`${onto} ${edge.commit}\n`, `${commit} ${edge.commit}\n`])
  const differing = await repo.git([...DIFFERING, '--stdin', '--no-commit-id'], { input: pairs.join('') })
  const sides = [onto, ontoTree, commit, workTree, ...edges.flatMap((edge) => [edge.commit, edge.tree])]
  const objects = [...sides, ...(attributes ? [attributes] : []), ...mergedBy(differing)]
  const again = await proven(repo, `What ${commit.slice(0, 12)} is merged with`, objects, 'with the others', async (run) => {
    const there = readingFrom(repo, run)
    return mergedTree(there, onto, ours ? await withoutOurs(there, commit, onto) : commit, attributes)
  })
  if (again.id !== tree || 'files' in again)
    throw damaged(`What ${commit.slice(0, 12)} is merged with`, 'an object is not what its id says')
}

/**
 * Only what comes out the same when it is built again: where works keep their commits, those of another worker are among them, and
 * can have been given the trailers of this one, which would then be taken for landed.
 */
async function landedBefore(repo: Repo, { commit, trailers, onto }: Pick<Build, 'commit' | 'trailers' | 'onto'>, packs: Packs) {
  const { made, edges } = await madeBefore(repo, trailers, `${commit}..${onto}`)
  for (const one of made) {
    const [first, ...others] = one.parents
    if (!first || others.some((other) => other !== commit)) continue
    const again = await workOn(repo, commit, first)
    if (!('tree' in again) || again.tree !== one.tree) continue
    const damage = await packs.kept(repo, one.commit, first)
    if (damage !== undefined) throw damaged(one.commit, damage)
    return { before: one.commit, edges }
  }
  return { before: undefined, edges }
}

function shownToNobody({ target }: LineOf, from: string): GitRefusal {
  return new GitRefusal(
    'failed',
    `It was shown from ${from.slice(0, 12)}, which is not on ${target}: what that brings was shown to nobody. Put it on top of what has landed with review_rebase, and look at it again.`,
  )
}

type Merged = Awaited<ReturnType<typeof factsOf>> & { tree: string }
type WorkOn = Merged | { files: string[] }

/** The tree of the work on top of another commit, with `.signalbox/` as that has it. */
async function workOn(repo: Repo, commit: string, onto: string): Promise<WorkOn> {
  const facts = await factsOf(repo, commit, onto)
  const work = facts.ours ? await withoutOurs(repo, commit, onto) : commit
  const merged = await mergedTree(repo, onto, work, facts.attributes)
  return 'files' in merged ? { files: merged.files } : { ...facts, tree: merged.id }
}

/** All that has to be known of both commits, of one process. `ours`: they differ in what never lands. */
async function factsOf(repo: Repo, commit: string, onto: string) {
  const asked = [
    `info ${onto}^{tree}`,
    `info ${onto}:${ATTRIBUTES}`,
    `info ${onto}:${OURS}`,
    `info ${commit}:${OURS}`,
    `contents ${commit}`,
  ]
  const out = await repo.git(['cat-file', '--batch-command'], { input: `${asked.join('\n')}\n` })
  const lines: string[] = []
  let offset = 0
  for (const _ of asked) {
    const end = out.indexOf('\n', offset)
    lines.push(out.subarray(offset, end).toString())
    offset = end + 1
  }
  const [ontoTree, attributes, inOnto, inWork, work] = lines.map((line) => (line.endsWith(' missing') ? undefined : line.split(' ')))
  if (!ontoTree) throw new GitRefusal('missing', `${repo.cwd} has no commit ${onto}.`)
  if (work?.[1] !== 'commit') throw new GitRefusal('missing', `${repo.cwd} has no commit ${commit}.`)
  return {
    ontoTree: ontoTree[0] ?? '',
    attributes: attributes?.[1] === 'blob' ? (attributes[0] ?? null) : null,
    ours: inOnto?.[0] !== inWork?.[0],
    original: out.subarray(offset, offset + Number(work[2])),
  }
}

/**
 * The work, and then a commit that makes `.signalbox/` what `onto` has. Not of the merged tree: what the work moved there would be
 * followed there, and what the line has in its old place, changed or new, would be gone with it.
 */
async function withoutOurs(repo: Repo, commit: string, onto: string): Promise<string> {
  const [work, kept] = await Promise.all([repo.git(['ls-tree', '-z', commit]), repo.git(['ls-tree', '-z', onto, OURS])])
  const entries = work.toString('latin1').split('\0').filter(Boolean)
  const others = entries.filter((entry) => entry.slice(entry.indexOf('\t') + 1) !== OURS)
  const input = [...others, ...kept.toString('latin1').split('\0').filter(Boolean)].map((entry) => `${entry}\0`).join('')
  // A submodule's commit is not in this repository.
  const tree = await repo.line(['mktree', '-z', '--missing'], { input: Buffer.from(input, 'latin1') })
  return repo.line(['commit-tree', tree, '-p', commit], { input: `Without ${OURS}/\n`, env: SAME_DATE })
}

export async function land(
  repo: Repo,
  of: LineOf,
  { from, to, keep }: { from: string; to: string; keep: string },
  { seen, packs }: Remembered,
  lockWaitMs: number,
): Promise<boolean> {
  const damage = await packs.kept(repo, to, from)
  if (damage !== undefined) throw damaged(`What was to land on ${of.target}`, damage)
  const [target, line, none] = [`refs/heads/${of.target}`, lineRef(of.target), '0'.repeat(from.length)]
  const [kept, handedIn] = [keptRef(keep), handedInRef(keep)]
  const known = seen.get(keyOf(repo, of))
  let local = known?.head === from ? known.local : from
  let failed = ''
  for (let tries = 0; tries < TRIES; tries++) {
    const moves: [string, string][] = [
      [target, `verify ${target} ${local ?? none}`],
      [line, `update ${line} ${to} ${from}`],
      [kept, `delete ${kept}`],
      [handedIn, `delete ${handedIn}`],
    ]
    const refused = await moveRefs(repo, moves, lockWaitMs)
    if (refused === undefined) {
      seen.set(keyOf(repo, of), { head: to, local })
      return true
    }
    const now = await tips(repo, of.target)
    const lost = now.line !== from || (now.local ? !(await isAncestor(repo, now.local, from)) : !of.base && !now.remote)
    if (lost) {
      await repo.ask(['update-ref', '-d', kept, to])
      return now.line !== undefined && now.line !== from && (await isAncestor(repo, to, now.line))
    }
    if (now.local === local) failed = refused
    local = now.local
  }
  throw new GitRefusal('busy', `The line of ${of.target} in ${repo.cwd} cannot be moved: ${failed}`)
}

export async function keep(repo: Repo, name: string, commit: string | null, lockWaitMs: number): Promise<void> {
  if (commit && !(await commitAt(repo, commit))) throw new GitRefusal('missing', `${repo.cwd} has no commit ${commit}.`)
  const ref = handedInRef(name)
  const refused = await moveRefs(repo, [[ref, commit ? `update ${ref} ${commit}` : `delete ${ref}`]], lockWaitMs)
  if (refused !== undefined) throw new GitRefusal('failed', `${ref} cannot be written in ${repo.cwd}: ${refused}`)
}

/** All of them or none. Why not, when not. A lock that a dead git left is removed once. */
export async function moveRefs(repo: Repo, moves: [ref: string, command: string][], lockWaitMs: number): Promise<string | undefined> {
  const input = `${['start', ...moves.map(([, command]) => command), 'prepare', 'commit'].join('\n')}\n`
  const attempt = async () => (await repo.tried(['update-ref', '-m', 'signalbox: line', '--stdin'], { input })).failed
  const failed = await attempt()
  if (!failed?.includes('.lock')) return failed
  // Of a branch that is checked out, git locks HEAD too.
  const locks = [...moves.map(([ref]) => lockOf(repo, ref)), join(repo.gitDir, 'HEAD.lock'), join(repo.common, 'packed-refs.lock')]
  await freeLocks(locks, [repo.cwd, repo.common], lockWaitMs)
  return attempt()
}

function missing(repo: Repo, { target }: LineOf): GitRefusal {
  return new GitRefusal(
    'missing',
    `${repo.cwd} has no branch "${target}": it was renamed or deleted. Make it again, or name another one as the target.`,
  )
}

export function keyOf(repo: Repo, { target }: LineOf): string {
  return `${repo.common}\0${target}`
}

function handedInRef(name: string): string {
  return `refs/signalbox/handed-in/${name}`
}

export function keptRef(keep: string): string {
  return `refs/signalbox/build/${keep}`
}
