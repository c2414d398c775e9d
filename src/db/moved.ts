import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { UsageError } from '../kernel/error.ts'

/** Beside the file, so that the file itself stays as it was copied; removed by whoever wants to go back to it. */
function markOf(path: string): string {
  return `${path}.moved`
}

/** `where` is the address without its password. Written before the copy is final: a crash then leaves a refusal, not two databases. */
export function markMoved(path: string, where: string): void {
  rmSync(markOf(path), { force: true })
  writeFileSync(markOf(path), `${where}\n`, { mode: 0o600, flush: true })
}

/** What is written to a database that was left behind is missing where everybody else works. */
export function refuseMoved(path: string): void {
  if (!existsSync(markOf(path))) return
  const where = readFileSync(markOf(path), 'utf8').trim()
  throw new UsageError(
    `${path} was copied to ${where} and is out of date. Set SIGNALBOX_DATABASE_URL='${where}' to use that database. ` +
      `If the copy was interrupted, repeat it with: signalbox db copy '${where}'. ` +
      `To go back to this file, without anything written since the copy: rm ${markOf(path)}`,
  )
}
