import { lstat, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { checkCommit } from './names.ts'
import { replace } from './own.ts'
import { type At, LONG_MS } from './run.ts'
import { plainFile } from './small-file.ts'

/** The mode of what is not there. */
export const NONE = '000000'
const GITLINK = '160000'
const MOST_WRITTEN = 256 * 1024 * 1024

/** What one path is in two commits. The path is in latin1: names of files are bytes. */
export interface Change {
  path: string
  modes: [from: string, to: string]
  ids: [from: string, to: string]
}

/** Files of a checkout on their way from one commit to another. */
export interface Move {
  from: string
  to: string
  changes: Change[]
  /** Those of the paths that were files, or links, before. */
  before: Set<string>
}

export async function moveOf(at: At, from: string, to: string): Promise<Move> {
  const raw = await at.git(['diff-tree', '-r', '-z', '--no-renames', '--ignore-submodules=none', from, to])
  const changes = changesIn(raw.toString('latin1'))
  const files = await Promise.all(changes.map(async ({ path }) => (await kindOf(at, path))?.isDirectory() === false))
  return { from, to, changes, before: new Set(changes.filter((_, n) => files[n]).map(({ path }) => path)) }
}

/** `:mode mode id id status NUL path NUL …` */
function changesIn(raw: string): Change[] {
  const parts = raw.split('\0')
  const changes: Change[] = []
  for (let i = 0; i + 1 < parts.length; i += 2) {
    const [from = '', to = '', old = '', now = ''] = (parts[i] as string).slice(1).split(' ')
    changes.push({ path: parts[i + 1] as string, modes: [from, to], ids: [old, now] })
  }
  return changes
}

/** Before git begins: whoever is killed in the middle leaves it to the next one. */
export async function writeDown(file: string, { from, to, before }: Move): Promise<void> {
  await replace(file, JSON.stringify({ from, to, before: [...before] }))
}

export async function writtenDown(file: string): Promise<Omit<Move, 'changes'> | undefined> {
  const text = (await plainFile(file, MOST_WRITTEN))?.toString()
  if (text === undefined) return undefined
  const { from, to, before } = JSON.parse(text) as { from: string; to: string; before: string[] }
  return { from: checkCommit(from), to: checkCommit(to), before: new Set(before) }
}

/**
 * After git gave up in the middle, or was killed: what it had written by then would look like the person's own changes. Only what is
 * as `to` has it, or begins so, goes back; whatever else is in a file is somebody's.
 */
export async function takeBack(at: At, move: Move): Promise<void> {
  if (await onlyTheBranchStayed(at, move)) {
    await at.git(['read-tree', '-m', '-u', move.to, move.from], { checkout: true, timeoutMs: LONG_MS })
    return
  }
  const files = move.changes.filter(({ modes }) => !modes.includes(GITLINK))
  const [other, staged, changed] = await Promise.all([notAsTo(at, files), stagedSince(at, move.from), changedFiles(at)])
  for (const { path, modes } of files) {
    const isNobodys = modes[0] === NONE ? !move.before.has(path) : changed.has(path)
    if (isNobodys && other.has(path) && (await beginsAsIn(at, move.to, path))) other.delete(path)
  }
  for (const { path, modes } of files) {
    if (modes[0] !== NONE || move.before.has(path)) continue
    if (!other.has(path)) await unlink(onDisk(at, path)).catch(() => {})
    await removeEmpty(at, path)
  }
  const lost: string[] = []
  for (const { path, modes } of files) {
    const mayGoBack = modes[0] !== NONE && move.before.has(path) && !staged.has(path)
    const arrived = modes[1] !== NONE && !other.has(path)
    if (mayGoBack && (arrived || !(await kindOf(at, path)))) lost.push(path)
  }
  if (!lost.length) return
  const input = Buffer.from(lost.map((path) => `${path}\0`).join(''), 'latin1')
  await at.git(['checkout-index', '--force', '--index', '-z', '--stdin'], { input, checkout: true, timeoutMs: LONG_MS })
}

/** Files and index are there, and then the ref could not be written. */
export async function onlyTheBranchStayed(at: At, { from, to }: Pick<Move, 'from' | 'to'>): Promise<boolean> {
  const [staged, head] = await Promise.all([at.ask(['write-tree']), at.ask(['rev-parse', '--verify', 'HEAD'])])
  return staged !== undefined && head === from && staged === (await at.line(['rev-parse', '--verify', `${to}^{tree}`]))
}

/** By an index that knows nothing but these: git reads them, with their filters and line ends. */
async function notAsTo(at: At, files: Change[]): Promise<Set<string>> {
  return at.temporary(async (folder) => {
    const run = { env: { GIT_INDEX_FILE: join(folder, 'index') }, timeoutMs: LONG_MS }
    const wanted = files.filter(({ modes }) => modes[1] !== NONE).map(({ path, modes, ids }) => `${modes[1]} ${ids[1]}\t${path}\0`)
    await at.git(['update-index', '-z', '--index-info'], { ...run, input: Buffer.from(wanted.join(''), 'latin1') })
    await at.ask(['update-index', '-q', '--refresh'], run)
    return pathsIn(await at.git(['diff-files', '--name-only', '-z'], run))
  })
}

async function changedFiles(at: At): Promise<Set<string>> {
  return pathsIn(await at.git(['diff-files', '--name-only', '-z']))
}

/** A git that was killed while it wrote a file has written the beginning of it. */
async function beginsAsIn(at: At, commit: string, path: string): Promise<boolean> {
  if (!(await kindOf(at, path))?.isFile()) return false
  const written = await plainFile(onDisk(at, path), MOST_WRITTEN).catch(() => undefined)
  if (!written) return false
  if (!written.length) return true
  const name = Buffer.from(path, 'latin1').toString()
  const run = { checkout: true, cutAfter: written.length }
  const { stdout, failed } = await at.tried(['cat-file', '--filters', `${commit}:${name}`], run)
  return failed === undefined && stdout.subarray(0, written.length).equals(written)
}

async function stagedSince(at: At, commit: string): Promise<Set<string>> {
  return pathsIn(await at.git(['diff-index', '--cached', '--name-only', '--no-renames', '-z', commit]))
}

/** The folders above it that hold nothing now: one of them can be where a file was. */
async function removeEmpty(at: At, path: string): Promise<void> {
  const parts = path.split('/').slice(0, -1)
  for (; parts.length; parts.pop()) await rmdir(onDisk(at, parts.join('/'))).catch(() => {})
}

export function kindOf(at: At, path: string) {
  return lstat(onDisk(at, path)).catch(() => undefined)
}

function pathsIn(listed: Buffer): Set<string> {
  return new Set(listed.toString('latin1').split('\0').filter(Boolean))
}

function onDisk(at: At, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${at.cwd}/`), Buffer.from(path, 'latin1')])
}
