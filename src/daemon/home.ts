import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../kernel/error.ts'
import type { OwnerFile } from '../ports/owner-file.ts'

const MAX_SOCKET_PATH = 100

/** Ours alone: made 0700, owned by us, and not a link that somebody put in its place. */
export function ensurePrivateFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const found = lstatSync(path)
  if (found.isSymbolicLink() || !found.isDirectory())
    throw new UsageError(`${path} must be a real folder, not a link or a file. Remove it, or set SIGNALBOX_HOME.`)
  if (found.uid !== userInfo().uid) throw new UsageError(`${path} belongs to another user. Choose another folder with SIGNALBOX_HOME.`)
  if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700)
}

/** The kernel cuts longer socket paths silently, so that two daemons could meet on one name. */
export function socketPath(home: string, env: Record<string, string | undefined>): string {
  const folder = join(env.XDG_RUNTIME_DIR || '/tmp', `signalbox-${userInfo().uid}`)
  const path = join(folder, `${createHash('sha256').update(home).digest('hex').slice(0, 16)}.sock`)
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH)
    throw new UsageError(`The socket path ${path} is longer than ${MAX_SOCKET_PATH} bytes. Set XDG_RUNTIME_DIR to a shorter folder.`)
  return path
}

export function ownerTokenPath(home: string): string {
  return join(home, 'owner.token')
}

/** One line, 0600. Undefined when there is none; a link in its place is refused, not followed. */
export function readSecret(path: string): string | undefined {
  refuseLink(path)
  if (!existsSync(path)) return undefined
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const buffer = Buffer.alloc(512)
    const text = buffer.toString('utf8', 0, readSync(file, buffer)).trim()
    return text || undefined
  } finally {
    closeSync(file)
  }
}

/** One line that appears whole or not at all, with 0600 from its first byte. */
export function writePrivate(path: string, line: string): void {
  refuseLink(path)
  const partial = `${path}.${process.pid}.partial`
  const file = openSync(partial, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600)
  writeSync(file, `${line}\n`)
  fsyncSync(file)
  closeSync(file)
  renameSync(partial, path)
}

function stagedTokenPath(home: string): string {
  return `${ownerTokenPath(home)}.next`
}

export function secretsOnDisk(home: string): string[] {
  return [readSecret(stagedTokenPath(home)), readSecret(ownerTokenPath(home))].filter((secret) => secret !== undefined)
}

/** At start, when the database has said which secret holds. */
export function settleOwnerToken(home: string, secret: string): void {
  writePrivate(ownerTokenPath(home), secret)
  rmSync(stagedTokenPath(home), { force: true })
}

export function createOwnerFile(home: string): OwnerFile {
  return { stage: async (secret) => writePrivate(stagedTokenPath(home), secret) }
}

/** Done when the rotation has committed; a crash before it leaves the staged file for the next start. */
export function adoptStagedToken(home: string): void {
  if (existsSync(stagedTokenPath(home))) renameSync(stagedTokenPath(home), ownerTokenPath(home))
}

/** The folder may have been open to others before: what they planted must not make us read or write elsewhere. */
export function refuseLink(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return
  throw new UsageError(`${path} is a link, where Signalbox keeps a file of its own. See where it points, then remove it.`)
}

export interface Address {
  pid: number
  url: string
}

/** Where the running daemon of this state folder is, for the CLI. */
export function writeAddress(home: string, url: string): void {
  writePrivate(join(home, 'daemon.json'), JSON.stringify({ pid: process.pid, url } satisfies Address))
}

export function readAddress(home: string): Address | undefined {
  try {
    return JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as Address
  } catch {
    return undefined
  }
}
