import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)
const LONGEST_MS = 15 * 60_000
/** Folders that may not be written, as those of Go's modules; folders so deep that no path names them. */
const REFUSED = ['EACCES', 'EPERM', 'ENAMETOOLONG']

/** A folder that somebody else has filled, with whatever that is. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 3 })
  } catch (error) {
    if (!REFUSED.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    await run('chmod', ['-R', 'u+rwx', '--', path], { timeout: LONGEST_MS }).catch(() => {})
    await run('rm', ['-rf', '--', path], { timeout: LONGEST_MS })
  }
}
