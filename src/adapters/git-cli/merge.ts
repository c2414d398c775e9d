import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Build, GitRefusal, type NewBranch } from '../../ports/git.ts'
import { freeLocks } from './lock-files.ts'
import { damaged } from './packs.ts'
import { isObject } from './proven.ts'
import { baseCommit, commitAt } from './repo.ts'
import { type Options, type Repo, US } from './run.ts'

const MOST_LOOKED_AT = 2_000
export const ATTRIBUTES = '.gitattributes'

/** What a commit on a branch of ours is made of. */
type Work = Pick<Build, 'commit' | 'message' | 'trailers'>

/** The branch's commit; made from its base when it is not there. */
export async function ensure(repo: Repo, wanted: NewBranch, lockWaitMs: number): Promise<string> {
  const ref = `refs/heads/${wanted.branch}`
  const known = await commitAt(repo, ref)
  if (known) return known
  const base = await baseCommit(repo, wanted)
  await freeLocks([lockOf(repo, ref)], [repo.cwd, repo.common], lockWaitMs)
  await repo.ask(['update-ref', ref, base, '0'.repeat(base.length)])
  const made = await commitAt(repo, ref)
  if (!made) throw new GitRefusal('failed', `${wanted.branch} could not be made in ${repo.cwd}.`)
  return made
}

export interface Made {
  commit: string
  tree: string
  parents: string[]
  /** Of each trailer that was asked for: what it says. */
  said: string[][]
}

/**
 * By what our own commits say, among those of a range, newest first. Whoever can commit can say the same: where others' commits can
 * be in the range, it has to be seen what they are made of. `edges`: the commits that both sides of the range have last.
 */
export async function madeBefore(repo: Repo, trailers: Work['trailers'], range: string): Promise<{ made: Made[]; edges: Made[] }> {
  const wanted = Object.entries(trailers)
  const values = wanted.map(([name]) => `%(trailers:key=${name},valueonly,separator=%x01)`)
  const fields = ['%m', '%H', '%T', '%P', '%ce', ...values].join('%x00')
  const listed = await repo.ask(['log', '--boundary', `--max-count=${MOST_LOOKED_AT}`, `--format=${fields}%x02`, range])
  const entries = (listed?.split('\u0002') ?? []).map((entry) => entry.trim().split('\0'))
  const all = entries.map(([, commit = '', tree = '', parents = '', committer, ...said]): Made => {
    const isOurs = committer === US.GIT_COMMITTER_EMAIL
    return { commit, tree, parents: parents.split(' ').filter(Boolean), said: isOurs ? said.map((one) => one.split('\u0001')) : [] }
  })
  const isEdge = (n: number) => entries[n]?.[0] === '-'
  const inside = all.filter((_, n) => !isEdge(n))
  const ours = broughtByNoWork(inside)
  const made = inside.filter(({ commit, said }) => ours.has(commit) && wanted.every(([, value], i) => said[i]?.includes(value)))
  return { made, edges: all.filter((_, n) => isEdge(n)) }
}

/**
 * Not by first parents alone: where somebody merged by hand, what we made can be on the other side. But what a merge of ours has on
 * the other side was committed by a worker.
 */
function broughtByNoWork(made: Made[]): Set<string> {
  const known = new Map(made.map((one) => [one.commit, one]))
  const seen = new Set<string>()
  for (const next = [made[0]?.commit ?? '']; next.length; ) {
    const one = known.get(next.pop() as string)
    if (!one || seen.has(one.commit)) continue
    seen.add(one.commit)
    const isWork = one.said.some((values) => values.some(Boolean))
    next.push(...(isWork ? one.parents.slice(0, 1) : one.parents))
  }
  return seen
}

/** Without `id`: nothing was written, because they have nothing in common. `attributes`: the blob that `onto` has, when it is known. */
export async function mergedTree(
  repo: Repo,
  onto: string,
  commit: string,
  attributes?: string | null,
): Promise<{ id: string } | { id?: string; files: string[] }> {
  const blob = attributes === undefined ? await repo.ask(['rev-parse', '--verify', '--quiet', `${onto}:${ATTRIBUTES}`]) : attributes
  const merge = (how: Options) =>
    repo.tried(['merge-tree', '--write-tree', '--name-only', '--no-messages', '-z', onto, commit], {
      ...how,
      env: { GIT_ATTR_SOURCE: onto },
    })
  const { stdout, failed } = await (blob ? withAttributes(repo, blob, merge) : merge({}))
  const [id = '', ...files] = stdout.toString().split('\0').filter(Boolean)
  if (failed === undefined && id) return { id }
  if (failed?.includes('unrelated histories')) return { files: [] }
  if (!id || !files.length) throw new GitRefusal('failed', `git merge-tree in ${repo.cwd}: ${failed}`)
  return { id, files: [...new Set(files)] }
}

/** Newer gits read attributes from a tree (GIT_ATTR_SOURCE); older ones only from the folder that they stand in. */
function withAttributes<T>(repo: Repo, blob: string, work: (how: Options) => Promise<T>): Promise<T> {
  return repo.temporary(async (folder) => {
    const content = await repo.git(['cat-file', 'blob', blob])
    if (!isObject(blob, 'blob', content)) throw damaged(ATTRIBUTES, `${blob} is not what its id says`)
    await writeFile(join(folder, ATTRIBUTES), content)
    return work({ attributesIn: folder })
  })
}

/** By whoever wrote the last of the original, if there is one; that we made it is said by the committer. */
export async function commitOf(
  repo: Repo,
  { message, trailers }: Pick<Work, 'message' | 'trailers'>,
  original: Buffer | undefined,
  tree: string,
  parents: string[],
): Promise<string> {
  const lines = Object.entries(trailers).map(([key, value]) => `${key}: ${value}`)
  // Only the last paragraph is read as trailers: what the message says of itself is none. Nor is the first one: there has to be another.
  const input = `${message.replaceAll('\0', '').trim() || 'Without a message'}\n\n${lines.join('\n')}\n`
  return repo.line(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])], {
    input,
    ...(original ? { env: authorIn(original) } : {}),
  })
}

/** As far as git would take it again: of no name, or of a date that is none, it would make no commit. */
function authorIn(commit: Buffer): Record<string, string> {
  const [, name = '', email = '', date = ''] = /^author (.*?) ?<([^>\n]*)> ?(.*)$/m.exec(commit.toString()) ?? []
  return {
    GIT_AUTHOR_NAME: /[^\s.,:;<>"\\']/.test(name) ? name : 'unknown',
    GIT_AUTHOR_EMAIL: email,
    ...(/^\d{1,10} [+-]\d{4}$/.test(date) ? { GIT_AUTHOR_DATE: `@${date}` } : {}),
  }
}

export function lockOf(repo: Repo, ref: string): string {
  return join(repo.common, `${ref}.lock`)
}
