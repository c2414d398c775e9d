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
import { dirname, join } from 'node:path'
import { refuse, UsageError } from '../kernel/error.ts'
import type { OwnerFile } from '../ports/owner-file.ts'

const MAX_SOCKET_PATH = 100
const MOST_STAGED = 20
const MAX_SECRETS = 4_096

/** Ours alone: made 0700, owned by us, and not a link that somebody put in its place. */
export function ensurePrivateFolder(path: string): void {
  const found = lookAt(path) ?? made(path)
  if (found.isSymbolicLink() || !found.isDirectory())
    throw new UsageError(`${path} must be a real folder, not a link or a file. Remove it, or set SIGNALBOX_HOME.`)
  if (found.uid !== userInfo().uid) throw new UsageError(`${path} belongs to another user. Choose another folder with SIGNALBOX_HOME.`)
  if ((found.mode & 0o077) !== 0) chmodSync(path, 0o700)
}

/** Undefined when there is none. */
function lookAt(path: string) {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw new UsageError(`${path} cannot be looked at: ${(error as Error).message}. Choose another state folder with SIGNALBOX_HOME.`)
  }
}

function made(path: string) {
  try {
    makeFolder(path)
    return lstatSync(path)
  } catch (error) {
    throw new UsageError(`The folder ${path} cannot be made: ${(error as Error).message}. Choose another one with SIGNALBOX_HOME.`)
  }
}

/** One by one: where the system says of a folder that it cannot be, as in /proc, Node's own way tries for ever. */
function makeFolder(path: string): void {
  if (!existsSync(dirname(path))) makeFolder(dirname(path))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    // Another process of ours was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
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

/** Undefined when there is none; a link in its place is refused, not followed. */
export function readSecret(path: string): string | undefined {
  return readLines(path)[0]
}

function readLines(path: string): string[] {
  refuseLink(path)
  if (!existsSync(path)) return []
  const file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    const buffer = Buffer.alloc(MAX_SECRETS)
    const lines = buffer.toString('utf8', 0, readSync(file, buffer)).split('\n')
    return lines.map((line) => line.trim()).filter(Boolean)
  } finally {
    closeSync(file)
  }
}

/** Lines that appear whole or not at all, with 0600 from the first byte. */
export function writePrivate(path: string, ...lines: string[]): void {
  refuseLink(path)
  const partial = `${path}.${process.pid}.partial`
  try {
    const file = openSync(partial, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600)
    try {
      writeSync(file, lines.map((line) => `${line}\n`).join(''))
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(partial, path)
  } catch (error) {
    rmSync(partial, { force: true })
    throw error
  }
}

function stagedTokenPath(home: string): string {
  return `${ownerTokenPath(home)}.next`
}

export function secretsOnDisk(home: string): string[] {
  return [...readLines(stagedTokenPath(home)), ...readLines(ownerTokenPath(home))]
}

/** At start, when the database has said which secret holds. */
export function settleOwnerToken(home: string, secret: string): void {
  writePrivate(ownerTokenPath(home), secret)
  rmSync(stagedTokenPath(home), { force: true })
}

export function createOwnerFile(home: string): OwnerFile {
  const path = stagedTokenPath(home)
  return {
    async stage(secret) {
      try {
        // Beside those of other rotations under way: only one of them will commit.
        writePrivate(path, secret, ...readLines(path).slice(0, MOST_STAGED - 1))
      } catch (error) {
        throw refuse('STORAGE_FULL', `The owner's new token could not be put on disk: ${(error as Error).message}. Nothing was written.`)
      }
    },
  }
}

/** Done when a rotation has committed; a crash before it leaves the staged file for the next start. */
export async function adoptStagedToken(home: string, isCurrent: (secret: string) => Promise<boolean>): Promise<void> {
  for (const secret of readLines(stagedTokenPath(home))) if (await isCurrent(secret)) return settleOwnerToken(home, secret)
}

/** The folder may have been open to others before: what they planted must not make us read or write elsewhere. */
export function refuseLink(path: string): void {
  if (!lookAt(path)?.isSymbolicLink()) return
  throw new UsageError(`${path} is a link, where Signalbox keeps a file of its own. See where it points, then remove it.`)
}

export interface Address {
  pid: number
  url: string
  socket: string
}

/** Where the running daemon of this state folder is, for the CLI. */
export function writeAddress(home: string, url: string, socket: string): void {
  writePrivate(join(home, 'daemon.json'), JSON.stringify({ pid: process.pid, url, socket } satisfies Address))
}

export function readAddress(home: string): Address | undefined {
  try {
    return JSON.parse(readFileSync(join(home, 'daemon.json'), 'utf8')) as Address
  } catch {
    return undefined
  }
}

/**
 * Where the pipe finds the daemon of this state folder: where it said, since it may have been started with another
 * environment. The folder must be ours alone, or we would hand our token to whoever put a socket there.
 */
export function socketToTrust(home: string, env: Record<string, string | undefined>): string {
  const path = readAddress(home)?.socket ?? socketPath(home, env)
  const folder = lstatSync(dirname(path), { throwIfNoEntry: false })
  const foreign = folder && (!folder.isDirectory() || folder.uid !== userInfo().uid || (folder.mode & 0o077) !== 0)
  if (foreign)
    throw new UsageError(
      `${dirname(path)} is not a folder of yours alone; Signalbox does not send its token there. Remove it, or set XDG_RUNTIME_DIR.`,
    )
  return path
}
