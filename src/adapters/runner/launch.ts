import { spawn } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { readRecord } from '../../runner/record.ts'
import { LOG, READY_FD, SPEC_FD, type Spec } from '../../runner/spec.ts'

const READY_MS = 20_000
/** Resolves when the folder has a record, this runner's or that of one before it. */
export async function launchRunner(folder: string, entry: string, spec: Spec, env: Record<string, string | undefined>): Promise<void> {
  const log = openSync(join(folder, LOG), constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW, 0o600)
  const stdio = ['ignore', 'ignore', log, 'pipe', 'pipe'] as const
  const child = spawn(process.execPath, [entry, folder], { cwd: '/', env, stdio: [...stdio], detached: true })
  closeSync(log)
  const [specPipe, readyPipe] = [child.stdio[SPEC_FD] as Writable, child.stdio[READY_FD] as Readable]
  // One that died at once has said why in its log.
  specPipe.on('error', () => {})
  specPipe.end(JSON.stringify(spec))
  let timer: NodeJS.Timeout | undefined
  const failed = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    readyPipe.once('error', (error) => resolve(error.message))
    readyPipe.once('data', () => resolve(undefined)).once('close', () => resolve(undefined))
    timer = setTimeout(resolve, READY_MS, `it did not come up within ${READY_MS / 1000} s`)
  })
  clearTimeout(timer)
  specPipe.destroy()
  readyPipe.destroy()
  child.unref()
  if (readRecord(folder)) return
  child.kill('SIGKILL')
  rmSync(spec.socket, { force: true })
  throw new Error(
    `The runner could not be started: ${failed ?? (lastWords(folder) || 'it ended without a word')}. See ${join(folder, LOG)}.`,
  )
}

/** What a runner that went without a record left in its log. */
export function lastWords(folder: string): string {
  try {
    const lines = readFileSync(join(folder, LOG), 'utf8').slice(-4_000).split('\n')
    return lines.findLast((line) => /^\w*Error\b/.test(line))?.slice(0, 300) ?? ''
  } catch {
    return ''
  }
}
