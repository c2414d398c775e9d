import { join } from 'node:path'
import { readJson } from './files.ts'
import { STOP, type Stop } from './spec.ts'

export interface Asked {
  reason: Stop['why'] | 'spool_failed'
  detail: string
}

/** Why a run is to end, and when what is left of it is killed. The first reason stays; a later one can only hasten it. */
export interface Halt {
  asked: Promise<void>
  why(): Asked | undefined
  ask(why: Asked, graceMs: number): void
  killAt(): number
  /** Told each time that moment comes nearer. */
  onHaste(then: () => void): void
}

export function createHalt(): Halt {
  let first: Asked | undefined
  let killAt = Number.POSITIVE_INFINITY
  let tell!: () => void
  let hasten = () => {}
  const asked = new Promise<void>((resolve) => {
    tell = resolve
  })
  return {
    asked,
    why: () => first,
    ask(why, graceMs) {
      first ??= why
      killAt = Math.min(killAt, performance.now() + graceMs)
      tell()
      hasten()
    },
    killAt: () => killAt,
    onHaste(then) {
      hasten = then
    },
  }
}

/** Whoever signals a runner puts the reason down first; a person at a terminal does not. */
export function haltOnSignals(halt: Halt, folder: string, graceMs: number): void {
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const)
    process.on(name, () => {
      const stop = readStop(folder)
      halt.ask({ reason: stop?.why ?? 'stopped', detail: stop ? '' : `Its runner got a ${name}.` }, stop?.graceMs ?? graceMs)
    })
}

function readStop(folder: string): Stop | undefined {
  try {
    return readJson<Stop>(join(folder, STOP))
  } catch {
    return undefined
  }
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

/** Monotonic: neither a clock that jumps nor a laptop that slept brings it nearer. */
export function at(moment: number, then: () => void): void {
  const left = moment - performance.now()
  if (left <= 0) return then()
  setTimeout(() => at(moment, then), Math.min(Math.ceil(left), LONGEST_TIMER_MS)).unref()
}
