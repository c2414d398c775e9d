import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import type { CommandEnd } from '../command.ts'
import type { KeptUse } from './schema.ts'
import '../../ports/packages.ts'

/** Folders that hold packages and nothing else, what package managers leave beside them, and the hooks that husky makes. */
const KEPT_PATHS = ['node_modules', '.venv', 'venv', '.pnp.cjs', '.pnp.loader.mjs', '.yarn', '.husky/_']
const isPackages = (path: string) => KEPT_PATHS.some((kept) => `/${path}`.endsWith(`/${kept}`))
const isBelowPackages = (file: string) => KEPT_PATHS.some((kept) => `/${file}`.includes(`/${kept}/`))
/** As sizes are shown. */
export const GB = 1_000 ** 3
export const KEEP_GB = 'setup.keep_gb'

interface Checkout {
  repo: string
  path: string
  head: string
  /** Whether what is kept may be copied there. */
  gets: boolean
  kept: KeptUse
}

interface Made {
  how: 'made' | 'kept'
  ended: CommandEnd | 'stale'
  /** By which the next checkout of landed work gets the same. */
  key?: string
}

/** Copies what an earlier setup has made, or makes it, and keeps it for those for whom it may be. */
export async function withPackages(
  ctx: EffectContext,
  command: string,
  checkout: Checkout,
  brought: string[],
  make: () => Promise<CommandEnd | 'stale'>,
): Promise<Made> {
  const { git, packages } = ctx.ports
  const { repo, path, head, gets, kept } = checkout
  // Given or kept as one, a package folder is everybody's; what was brought into it is for this checkout.
  const isOwn = kept === 'none' || brought.some(isBelowPackages)
  const keys = isOwn ? undefined : await packages.keysOf(command, path, await git.filesOf(repo, head)).catch(() => undefined)
  if (!keys) return { how: 'made', ended: await make() }
  const own = kept === 'by_files' ? keys.byFiles : keys.byTree
  // Packages that cannot be copied are installed.
  const gives = (key: string) => packages.give(key, path).catch(() => false)
  if (gets && (await gives(keys.byFiles))) return { ...GIVEN, key: keys.byFiles }
  if (gets && (await gives(keys.byTree))) {
    // It was made for a tree that has landed by now.
    if (own !== keys.byTree) await keep(ctx, own, checkout, brought)
    return GIVEN
  }
  const ended = await make()
  if (ended !== 'stale' && ended.green) await keep(ctx, own, checkout, brought)
  return { how: 'made', ended, ...(own === keys.byFiles && { key: own }) }
}

const GIVEN: Made = { how: 'kept', ended: { green: true, how: 'was kept', log: '' } }

/** To copy them takes as long as an agent would wait: the next one finds them copied. Nothing else is deleted for that. */
export async function stockUp(ctx: EffectContext, key: string | undefined): Promise<void> {
  const { packages } = ctx.ports
  try {
    const all = await packages.list()
    const total = all.reduce((sum, { bytes }) => sum + bytes, 0)
    const spare = all.find((one) => one.key === key)?.spare_bytes ?? 0
    const limit = (await ctx.setting<number>(KEEP_GB)) * GB
    if (key && spare > 0 && total + spare <= limit) await packages.stock(key, ctx.signal)
  } catch {
    // As on a full disk.
  }
}

/** What cannot be kept is installed again the next time: nobody waits for that, and nothing fails. */
async function keep(ctx: EffectContext, key: string, { repo, path }: Checkout, brought: string[]): Promise<void> {
  const { git, packages } = ctx.ports
  try {
    const { ignored, untracked, changed } = await git.extras(repo, path)
    const made = ignored.filter((one) => !brought.includes(one))
    const isOfPackages = made.length > 0 && made.every(isPackages)
    // What else it has made would be missing where this is given.
    if (!isOfPackages || untracked.length || changed.length) return
    await packages.keep(key, path, made)
    await collect(ctx)
  } catch {
    // As on a full disk.
  }
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
  async do({ ports: { packages } }, { key }) {
    for (const one of key === null ? (await packages.list()).map((kept) => kept.key) : [key]) await packages.drop(one)
  },
})
