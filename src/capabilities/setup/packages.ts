import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import type { CommandEnd } from '../command.ts'
import '../../ports/packages.ts'

/** Folders that hold packages and nothing else, by name. */
const OF_PACKAGES = new Set(['node_modules', '.venv', 'venv', 'vendor'])
/** What package managers leave beside them. */
const BESIDE = new Set(['.pnp.cjs', '.pnp.loader.mjs', '.bundle', '.yarn'])
const GB = 1_024 ** 3
export const KEEP_GB = 'setup.keep_gb'

interface Checkout {
  repo: string
  path: string
  head: string
  /** Whether what is kept may be copied there. */
  gets: boolean
  /** Whether what is made there may be given to others. */
  keeps: boolean
}

/** Copies what an earlier setup has made of the same files, or makes it, and keeps it where it may be. */
export async function withPackages(
  ctx: EffectContext,
  command: string,
  checkout: Checkout,
  brought: string[],
  make: () => Promise<CommandEnd | 'stale'>,
): Promise<{ how: 'made' | 'kept'; ended: CommandEnd | 'stale' }> {
  const { git, packages } = ctx.ports
  const { repo, path, head, gets, keeps } = checkout
  const key = gets || keeps ? await packages.keyOf(command, path, await git.filesOf(repo, head)) : undefined
  if (key && gets && (await packages.give(key, path))) return { how: 'kept', ended: { green: true, how: 'was kept', log: '' } }
  const ended = await make()
  if (key && keeps && ended !== 'stale' && ended.green) await keep(ctx, key, checkout, brought)
  return { how: 'made', ended }
}

async function keep(ctx: EffectContext, key: string, { repo, path }: Checkout, brought: string[]): Promise<void> {
  const { git, packages } = ctx.ports
  const { ignored, untracked } = await git.extras(repo, path)
  const made = ignored.filter((one) => !brought.includes(one))
  const nameOf = (one: string) => one.slice(one.lastIndexOf('/') + 1)
  // What else it has made would be missing where this is given.
  if (untracked.length || !made.length || !made.every((one) => OF_PACKAGES.has(nameOf(one)) || BESIDE.has(nameOf(one)))) return
  await packages.keep(key, path, made)
  await collect(ctx)
}

/** Those that nobody has used for longest go first. */
async function collect(ctx: EffectContext): Promise<void> {
  const all = await ctx.ports.packages.list()
  let over = all.reduce((sum, { bytes }) => sum + bytes, 0) - (await ctx.setting<number>(KEEP_GB)) * GB
  for (const { key, bytes } of all) {
    if (over <= 0) return
    await ctx.ports.packages.drop(key)
    over -= bytes
  }
}

export const forgetKept = defineEffect({
  type: 'setup.forget',
  payload: z.strictObject({ key: z.string().nullable() }),
  attempts: 5,
  recognise: async () => 'not_done',
  async do({ ports: { packages } }, { key }) {
    for (const one of key === null ? (await packages.list()).map((kept) => kept.key) : [key]) await packages.drop(one)
  },
})
