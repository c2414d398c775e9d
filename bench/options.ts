import { parseArgs } from 'node:util'

export const ENGINES = ['sqlite', 'postgres'] as const
export type EngineName = (typeof ENGINES)[number]

export interface Options {
  quick: boolean
  only: string[]
  engines: EngineName[]
  json: boolean
  profile: string | undefined
  /** How long one side is measured before the other has its turn. */
  roundMs: number
  rounds: number
  /** How many calls each side gets before anything counts: Node compiles what is called often. */
  warmUpCalls: number
  /** How many events the large database of the growth rows holds. */
  manyEvents: number
}

/** Throws a sentence for whoever typed them. */
export function readOptions(args: string[], families: string[]): Options {
  const values = parsed(args)
  const { quick, json, profile } = values
  return {
    quick,
    json,
    profile,
    only: known(values.only, families),
    engines: values.engine.length ? (known(values.engine, [...ENGINES]) as EngineName[]) : [...ENGINES],
    roundMs: quick ? 250 : 1_000,
    rounds: quick ? 3 : 5,
    warmUpCalls: quick ? 100 : 1_000,
    manyEvents: quick ? 50_000 : 1_000_000,
  }
}

function parsed(args: string[]) {
  return parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      engine: { type: 'string', multiple: true, default: [] },
      json: { type: 'boolean', default: false },
      profile: { type: 'string' },
    },
  }).values
}

function known(names: string[], all: string[]): string[] {
  const unknown = names.find((name) => !all.includes(name))
  if (unknown !== undefined) throw new Error(`There is no "${unknown}". Known: ${all.join(', ')}.`)
  return names
}
