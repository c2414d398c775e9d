import type { EngineName, Options } from './options.ts'

/** What an aim is about: how large a part of the limit is reached, how long it takes, or what it weighs. */
export interface Aim {
  text: string
  met(row: Figures): boolean
}

interface Figures {
  measured: number
  limit: number | undefined
  /** measured / limit, or for growth how many times as long. */
  ratio: number | undefined
}

export interface Row extends Figures {
  family: string
  what: string
  engine: EngineName
  /** Undefined where the number of clients says nothing. */
  clients: number | undefined
  unit: string
  limitOf: string
  aim: Aim | undefined
  note: string
}

export function row(values: Omit<Row, 'ratio' | 'note' | 'aim'> & { ratio?: number; note?: string; aim?: Aim }): Row {
  const { measured, limit } = values
  return { note: '', aim: undefined, ratio: limit ? measured / limit : undefined, ...values }
}

export function isMissed(row: Row): boolean {
  return row.aim !== undefined && !row.aim.met(row)
}

export const CLIENTS = [1, 16, 64]

/** One thing to measure for about so many milliseconds, and so many calls at the least; resolves with its figure. */
export type Side = (ms: number, calls: number) => Promise<number>

/**
 * Each side in turn, again and again, and of each the median: what else this machine does meanwhile hits all of them alike.
 * The first turn warms up and is not counted.
 */
export async function alternate<K extends string>(
  sides: Record<K, Side>,
  { rounds, roundMs, warmUpCalls }: Options,
): Promise<Record<K, number>> {
  const names = Object.keys(sides) as K[]
  const found = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>
  for (const name of names) await sides[name](roundMs, warmUpCalls)
  for (let i = 0; i < rounds; i++) for (const name of i % 2 ? names.toReversed() : names) found[name].push(await sides[name](roundMs, 0))
  return Object.fromEntries(names.map((name) => [name, median(found[name])])) as Record<K, number>
}

export function median(values: number[]): number {
  return percentile(values, 0.5)
}

export function percentile(values: number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

/** Calls again and again from so many clients at once; resolves with calls per second. */
export async function perSecond(calls: (() => Promise<unknown>)[], ms: number, atLeast: number): Promise<number> {
  const began = performance.now()
  const end = began + ms
  let done = 0
  const loop = async (call: () => Promise<unknown>) => {
    while (performance.now() < end || done < atLeast) {
      await call()
      done++
    }
  }
  await Promise.all(calls.map(loop))
  return done / ((performance.now() - began) / 1_000)
}
