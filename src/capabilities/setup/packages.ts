import { z } from 'zod'
import { defineEffect, type EffectContext } from '../../kernel/effect.ts'
import { NotHere } from '../../kernel/error.ts'
import { defineTool } from '../../kernel/tool.ts'
import type { CommandEnd } from '../command.ts'
import type { KeptUse } from './schema.ts'
import '../../ports/packages.ts'

/** Folders that hold packages and nothing else, what package managers leave beside them, and the hooks that husky makes. */
const KEPT_PATHS = ['node_modules', '.venv', 'venv', '.pnp.cjs', '.pnp.loader.mjs', '.yarn', '.husky/_']
const isPackages = (path: string) => KEPT_PATHS.some((kept) => `/${path}`.endsWith(`/${kept}`))
const isBelowPackages = (file: string) => KEPT_PATHS.some((kept) => `/${file}`.includes(`/${kept}/`))
/** As sizes are shown. */
export const GB = 1_000 ** 3
const STOCK_ATTEMPTS = 5
/** The daemon that has them may be away. */
const FORGET_ATTEMPTS = 100
export const KEEP_GB = 'setup.keep_gb'

interface Checkout {
  repo: string
  path: string
  head: string
  /** Whether what is kept may be copied there. */
  gets: boolean
  kept: KeptUse
  /** The setup, or the check. */
  by: string
}

/** Copies what an earlier setup has made, or makes it, and keeps it for those for whom it may be. */
export async function withPackages(
  ctx: EffectContext,
  command: string,
  checkout: Checkout,
  brought: string[],
  make: () => Promise<CommandEnd | 'stale'>,
): Promise<{ how: 'made' | 'kept'; ended: CommandEnd | 'stale' }> {
  const { git, packages } = ctx.ports
  const { repo, path, head, gets, kept, by } = checkout
  const { host } = ctx.ports.daemon
  // Given or kept as one, a package folder is everybody's; what was brought into it is for this checkout.
  const isOwn = kept === 'none' || brought.some(isBelowPackages)
  const keys = isOwn ? undefined : await packages.keysOf(command, path, await git.filesOf(repo, head), brought).catch(() => undefined)
  if (!keys) return { how: 'made', ended: await make() }
  const own = kept === 'by_files' ? keys.byFiles : keys.byTree
  // Packages that cannot be copied are installed.
  const gives = (key: string) => packages.give(key, path).catch(() => false)
  if (gets && (await gives(keys.byFiles))) {
    await ctx.report(stock, { key: keys.byFiles, host, by })
    return given()
  }
  if (gets && (await gives(keys.byTree))) {
    // It was made for a tree that has landed by now.
    if (own !== keys.byTree) await keep(ctx, own, checkout, brought)
    return given()
  }
  const ended = await make()
  if (ended !== 'stale' && ended.green) {
    await keep(ctx, own, checkout, brought)
    if (own === keys.byFiles) await ctx.report(stock, { key: own, host, by })
  }
  return { how: 'made', ended }
}

function given() {
  return { how: 'kept' as const, ended: { green: true, how: 'was kept', log: '' } }
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
  payload: z.strictObject({ key: z.string().nullable(), host: z.string().optional() }),
  attempts: FORGET_ATTEMPTS,
  async do({ ports: { packages, daemon } }, { key, host = daemon.host }) {
    // Other packages than those that the person was shown.
    if (host !== daemon.host && daemon.shared) throw new NotHere('What is kept there', host)
    for (const one of key === null ? (await packages.list()).map((kept) => kept.key) : [key]) await packages.drop(one)
  },
})

/** To copy packages takes longer than an agent should wait. Nothing else is deleted for that. */
export const stockKept = defineEffect({
  type: 'setup.stock',
  payload: z.strictObject({ key: z.string(), host: z.string() }),
  attempts: STOCK_ATTEMPTS,
  async do(ctx, { key, host }) {
    const { packages, daemon } = ctx.ports
    const isLast = ctx.attempt >= STOCK_ATTEMPTS
    if (host !== daemon.host && daemon.shared && !isLast) throw new NotHere('What is kept', host)
    const all = await packages.list()
    const total = all.reduce((sum, { bytes }) => sum + bytes, 0)
    const spare = all.find((one) => one.key === key)?.spare_bytes ?? 0
    const fits = total + spare <= (await ctx.setting<number>(KEEP_GB)) * GB
    // Without it the next one waits for its copy, as on a full disk.
    if (spare > 0 && fits) await packages.stock(key, ctx.signal).catch((error) => isLast || ctx.signal.aborted || Promise.reject(error))
  },
})

export const stock = defineTool({
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  name: 'setup_stock',
  title: 'A checkout has got packages',
  description: 'One copy more is made, and lies ready for the next one.',
  input: z.strictObject({ key: z.string(), host: z.string(), by: z.string() }),
  output: z.strictObject({}),
  async run(ctx, { key, host }) {
    ctx.enqueue(stockKept({ key, host }, { queue: `setup.stock:${host}` }))
    return {}
  },
})
