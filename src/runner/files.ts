import {
  closeSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** Whole or absent, and only if it was absent: of two that claim one name exactly one gets true. */
export function claim(path: string, text: string): boolean {
  const partial = `${path}.${process.pid}.claim`
  rmSync(partial, { force: true })
  writeThrough(partial, 'wx', text)
  try {
    linkSync(partial, path)
    syncFolder(path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  } finally {
    rmSync(partial, { force: true })
  }
}

/** Whole or as it was before. */
export function replace(path: string, text: string): void {
  const partial = `${path}.${process.pid}.partial`
  writeThrough(partial, 'w', text)
  renameSync(partial, path)
  syncFolder(path)
}

const RESERVED_BYTES = 4096

/** Room for a record that must still be written when the disk is full. */
export function reserve(path: string): { write(text: string): void } {
  const partial = `${path}.reserved`
  writeFileSync(partial, ' '.repeat(RESERVED_BYTES), { mode: 0o600 })
  return {
    write(text) {
      writeThrough(partial, 'r+', text)
      renameSync(partial, path)
      syncFolder(path)
    },
  }
}

export function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as T
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function writeThrough(path: string, flag: 'wx' | 'w' | 'r+', text: string): void {
  const bytes = Buffer.from(text)
  const file = openSync(path, flag, 0o600)
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done, bytes.length - done, done)
    if (flag === 'r+') ftruncateSync(file, bytes.length)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** A name outlives a power cut only once its folder is on the disk. */
function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
