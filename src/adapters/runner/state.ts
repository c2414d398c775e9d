import { lstatSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Exit, RunnerState, Started, StopReason } from '../../ports/runner.ts'
import { claim, readJson } from '../../runner/files.ts'
import { claimForNobody, isOfThisBoot, livesStill, type RunnerRecord, readRecord } from '../../runner/record.ts'
import { EXIT } from '../../runner/spec.ts'
import { endTree } from '../../runner/tree.ts'
import { lastWords } from './launch.ts'

const RUN = /^[A-Za-z0-9_-]{1,80}$/
const KEPT = /^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$/
const RUNNERS_OWN = /^(runner|exit|stop)[.]|^spool|[.]pipe$/
/** Nobody listens any more to what an agent without a runner still has to say. */
const ORPHAN_GRACE_MS = 1_000

/** One run and where everything about it is. */
export interface Place {
  run: string
  folder: string
}

export function placeOf(runs: string, run: string): Place {
  if (!RUN.test(run)) throw new Error(`${JSON.stringify(run)} is not the name of a run.`)
  return { run, folder: join(runs, run) }
}

/** A file that is kept for a run, and none of its runner's own. */
export function checkKept(name: string): string {
  if (!KEPT.test(name) || RUNNERS_OWN.test(name)) throw new Error(`${JSON.stringify(name)} cannot be the name of a file of a run.`)
  return name
}

export function readExit({ folder }: Place): Exit | undefined {
  return readJson<Exit>(join(folder, EXIT))
}

/** What is true of it now. A runner that was lost is cleared away first, so that a run has always either a runner or an end. */
export async function lookAt(place: Place): Promise<RunnerState> {
  if (!isFolder(place.folder)) return { state: 'absent' }
  const record = readRecord(place.folder)
  if (!record) return { state: 'prepared' }
  const exit = await exitOf(place, record)
  return exit ? { state: 'ended', exit } : { state: 'running', ...startedOf(record) }
}

/** Undefined while it runs. */
export async function exitOf(place: Place, record: RunnerRecord): Promise<Exit | undefined> {
  const exit = readExit(place)
  if (exit) return exit
  if (await livesStill(record)) return undefined
  // It may have written its end and gone between these two looks.
  return readExit(place) ?? settleLost(place, record)
}

/** False when it has been started. */
export async function settleUnstarted(place: Place, why: StopReason): Promise<boolean> {
  if (!(await claimForNobody(place.folder))) return false
  settle(place, neverStarted(why))
  return true
}

export function neverStarted(why: StopReason): Exit {
  return { reason: why, code: null, signal: null, detail: 'It was never started.', at: Date.now() }
}

export function startedOf({ pid, started, boot }: RunnerRecord): Started {
  return { pid, started, boot }
}

async function settleLost(place: Place, record: RunnerRecord): Promise<Exit> {
  if (record.pid === 0) return settle(place, neverStarted('stopped'))
  const sameBoot = await isOfThisBoot(record)
  const killAt = performance.now() + ORPHAN_GRACE_MS
  const stuck = sameBoot ? await endTree({ run: place.run }, () => killAt) : []
  rmSync(record.socket, { force: true })
  const details = [
    sameBoot ? 'Its runner was killed.' : 'The machine was started anew.',
    lastWords(place.folder),
    stuck.length > 0 ? `These could not be ended: ${stuck.map((one) => one.pid).join(', ')}.` : '',
  ]
  return settle(place, { reason: 'runner_lost', code: null, signal: null, detail: details.filter(Boolean).join(' '), at: Date.now() })
}

/** Whoever was first. */
function settle(place: Place, exit: Exit): Exit {
  claim(join(place.folder, EXIT), JSON.stringify(exit))
  return readExit(place) ?? exit
}

function isFolder(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
}
