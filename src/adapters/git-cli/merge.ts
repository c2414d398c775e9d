import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { GitRefusal, type NewBranch, type Squash, type Squashed } from '../../ports/git.ts'
import { freeLocks } from './lock-files.ts'
import type { Repo } from './place.ts'
import { baseCommit, commitAt } from './repo.ts'

/** Somebody else moves the branch meanwhile, over and over. */
const TRIES = 10
const MOST_LOOKED_AT = 2_000

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

export async function squash(repo: Repo, merge: Squash, lockWaitMs: number): Promise<Squashed> {
  const ref = `refs/heads/${merge.into.branch}`
  if (!(await commitAt(repo, merge.commit))) throw new GitRefusal('missing', `${repo.cwd} has no commit ${merge.commit}.`)
  for (let tries = 0; tries < TRIES; tries++) {
    const onto = await ensure(repo, merge.into, lockWaitMs)
    const before = await madeBefore(repo, merge, onto)
    if (before) return { result: 'merged', commit: before }
    const tree = await mergedTree(repo, onto, merge.commit)
    if ('files' in tree) return { result: 'conflict', files: tree.files }
    if (tree.id === (await repo.line(['rev-parse', '--verify', `${onto}^{tree}`]))) return { result: 'nothing', commit: onto }
    const commit = await commitOf(repo, merge, tree.id, onto)
    await requireCheckedOutNowhere(repo, merge.into.branch, ref)
    await freeLocks([lockOf(repo, ref)], [repo.cwd, repo.common], lockWaitMs)
    if ((await repo.ask(['update-ref', '-m', 'signalbox: squash', ref, commit, onto])) !== undefined) return { result: 'merged', commit }
    if ((await commitAt(repo, ref)) === onto) throw new GitRefusal('failed', `${merge.into.branch} cannot be moved in ${repo.cwd}.`)
  }
  throw new GitRefusal('busy', `${merge.into.branch} is moved by somebody else all the time.`)
}

/** By what only our own commit says, among what the branch has and the work has not. */
async function madeBefore(repo: Repo, { commit, trailers }: Squash, onto: string): Promise<string | undefined> {
  const wanted = Object.entries(trailers)
  const fields = wanted.map(([name]) => `%(trailers:key=${name},valueonly,separator=%x01)`).join('%x00')
  const listed = await repo.line([
    'log',
    '--first-parent',
    `--max-count=${MOST_LOOKED_AT}`,
    `--format=%H%x00${fields}%x02`,
    `${commit}..${onto}`,
  ])
  for (const entry of listed.split('\u0002')) {
    const [hash = '', ...values] = entry.trim().split('\0')
    if (hash && wanted.every(([, value], i) => values[i]?.split('\u0001').includes(value))) return hash
  }
  return undefined
}

async function mergedTree(repo: Repo, onto: string, commit: string): Promise<{ id: string } | { files: string[] }> {
  const { stdout, failed } = await repo.tried(['merge-tree', '--write-tree', '--name-only', '--no-messages', '-z', onto, commit])
  const [id = '', ...files] = stdout.toString().split('\0').filter(Boolean)
  if (failed === undefined && id) return { id }
  if (!id || !files.length) throw new GitRefusal('failed', `git merge-tree in ${repo.cwd}: ${failed}`)
  return { files: [...new Set(files)] }
}

/** By whoever wrote the last of it; that we made it is said by the committer. */
async function commitOf(repo: Repo, { commit, message, trailers }: Squash, tree: string, onto: string): Promise<string> {
  const [name = '', email = '', date = ''] = (await repo.line(['log', '-1', '--format=%an%x00%ae%x00%aI', commit])).split('\0')
  const lines = Object.entries(trailers).map(([key, value]) => `${key}: ${value}`)
  const env = { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date }
  // Only the last paragraph is read as trailers: what the message says of itself is none.
  const input = `${message.trim()}\n\n${lines.join('\n')}\n`
  return repo.line(['commit-tree', tree, '-p', onto], { input, env })
}

async function requireCheckedOutNowhere(repo: Repo, branch: string, ref: string): Promise<void> {
  const listed = (await repo.git(['worktree', 'list', '--porcelain', '-z'])).toString()
  for (const one of listed.split('\0\0')) {
    const fields = one.split('\0')
    if (!fields.includes(`branch ${ref}`)) continue
    const at = fields.find((field) => field.startsWith('worktree '))?.slice('worktree '.length) ?? '?'
    // Git goes on naming one whose folder is gone.
    if ((await realpath(at).catch(() => undefined)) === undefined) continue
    throw new GitRefusal('busy', `${branch} is checked out in ${at}. Check out another branch there, then merge again.`)
  }
}

function lockOf(repo: Repo, ref: string): string {
  return join(repo.common, `${ref}.lock`)
}
