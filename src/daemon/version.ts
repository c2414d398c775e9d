import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** From package.json, which stands above both src/daemon and dist. */
export const VERSION: string = findVersion(dirname(fileURLToPath(import.meta.url)))

function findVersion(folder: string): string {
  try {
    const found = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name?: string; version: string }
    if (found.name === 'signalbox') return found.version
  } catch {
    // Not in this folder: look one higher.
  }
  if (folder === dirname(folder)) throw new Error('package.json is missing from this installation of Signalbox')
  return findVersion(dirname(folder))
}
