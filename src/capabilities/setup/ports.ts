import { z } from 'zod'
import { tables } from '../../db/tables.ts'
import type { EffectContext } from '../../kernel/effect.ts'
import { refuse } from '../../kernel/error.ts'
import type { Tx } from '../../kernel/storage.ts'
import { defineTool } from '../../kernel/tool.ts'
import { takeTurn } from '../handle.ts'
import { projectStore } from '../project/index.ts'
import { handleOf, taskStore } from '../task/index.ts'
import { type WorkRow, workStore } from '../work/index.ts'
import '../../ports/daemon.ts'
import '../../ports/listeners.ts'

export const ENVIRONMENT = 'setup.environment'
export const FIRST_PORT = 'setup.first_port'
export const PORTS_EACH = 'setup.ports_each'
/** Above these the system gives out ports by itself. */
export const LAST_PORT = 32_767

export interface LeaseRow {
  /** Ports are a machine's, however many daemons it has. */
  machine: string
  port: number
  ports: number
  /** A work, or the checks of a line: of one that is gone its ports are free. */
  holder: string
  name: string
}

type Lease = Pick<LeaseRow, 'port' | 'ports' | 'name'>

const leases = (tx: Tx) => tables<{ port_leases: LeaseRow }>(tx)
const LINE = 'line '
const ENDED = ['COMPLETED', 'CANCELLED']
/** Ranges of ports in which somebody else listens, before the next free one is taken as it is. */
const MOST_TAKEN = 100

export const lineHolder = (repo: string, target: string) => `${LINE}${repo} ${target}`

export const leasePorts = defineTool({
  name: 'setup_ports',
  title: 'Ports and a name of its own for a checkout',
  description: 'The same ones however often it is asked; never those of another checkout on that machine.',
  input: z.strictObject({
    machine: z.string(),
    holder: z.string(),
    name: z.string(),
    taken: z.array(z.int()).max(MOST_TAKEN).describe('Ports on which a program listens that has no lease'),
  }),
  output: z.strictObject({ port: z.int(), ports: z.int(), name: z.string() }),
  impact: 'write',
  profile: 'maintainer',
  internal: true,
  async run(ctx, { machine, holder, name, taken }) {
    await takeTurn(ctx.tx, `ports:${machine}`)
    const own = await ownLease(ctx.tx, machine, holder)
    if (own) return own
    const { live, free } = await leasesOf(ctx.tx, machine)
    for (const { port } of free)
      await leases(ctx.tx).deleteFrom('port_leases').where('machine', '=', machine).where('port', '=', port).execute()
    const ports = ctx.setting<number>(PORTS_EACH)
    const port = firstFree(live, taken, ctx.setting<number>(FIRST_PORT), ports)
    if (port === undefined)
      return refuse('CONFLICT', `All ports up to ${LAST_PORT} are taken by ${live.length} checkouts${others(taken)}.`, {
        hint: `Remove worktrees that are not needed with work_collect, or make ${PORTS_EACH} or ${FIRST_PORT} smaller.`,
      })
    await leases(ctx.tx).insertInto('port_leases').values({ machine, port, ports, holder, name }).execute()
    return { port, ports, name }
  },
})

function others(taken: number[]): string {
  return taken.length ? ` and by programs that listen on ${taken.join(', ')}` : ''
}

function ownLease(tx: Tx, machine: string, holder: string): Promise<Lease | undefined> {
  return leases(tx)
    .selectFrom('port_leases')
    .select(['port', 'ports', 'name'])
    .where('machine', '=', machine)
    .where('holder', '=', holder)
    .executeTakeFirst()
}

async function leasesOf(tx: Tx, machine: string): Promise<{ live: LeaseRow[]; free: LeaseRow[] }> {
  const all = await leases(tx).selectFrom('port_leases').selectAll().where('machine', '=', machine).orderBy('port').execute()
  const live: LeaseRow[] = []
  for (const lease of all) if (await isHeld(tx, lease)) live.push(lease)
  return { live, free: all.filter((lease) => !live.includes(lease)) }
}

async function isHeld(tx: Tx, { holder }: LeaseRow): Promise<boolean> {
  if (!holder.startsWith(LINE)) return ((await workStore(tx).find(holder))?.state ?? 'removed') !== 'removed'
  const [id = '', target = ''] = holder.slice(LINE.length).split(' ')
  const repo = await projectStore(tx).repo(id)
  return repo !== undefined && repo.removed_from === null && !(await isOfEndedEpic(tx, id, target))
}

async function isOfEndedEpic(tx: Tx, repo: string, branch: string): Promise<boolean> {
  const epic = await tables<{ epics: { id: string; repo_id: string | null; branch: string; state: string } }>(tx)
    .selectFrom('epics')
    .select('id')
    .where('repo_id', '=', repo)
    .where('branch', '=', branch)
    .where('state', 'in', ENDED)
    .executeTakeFirst()
  return epic !== undefined
}

function firstFree(live: LeaseRow[], taken: number[], first: number, ports: number): number | undefined {
  for (let port = first; port + ports - 1 <= LAST_PORT; port += ports) {
    const isLeased = live.some((lease) => lease.port < port + ports && port < lease.port + lease.ports)
    if (!isLeased && !taken.some((one) => one >= port && one < port + ports)) return port
  }
  return undefined
}

/** What every program in a worktree is told of its ports and its name. */
export async function environmentOfWork(ctx: EffectContext, work: WorkRow): Promise<Record<string, string>> {
  return environmentOf(ctx, work.id, await nameOfWork(ctx, work))
}

/** Also where the environment names no ports. */
export async function leaseOfWork(ctx: EffectContext, work: WorkRow): Promise<Lease> {
  return lease(ctx, work.id, await nameOfWork(ctx, work))
}

async function nameOfWork({ view }: EffectContext, work: WorkRow): Promise<string> {
  const repo = await projectStore(view).repo(work.repo_id)
  const task = await taskStore(view).find(work.task_id)
  return `${repo?.handle}-${task ? handleOf(task).toLowerCase() : work.name}`
}

export async function environmentOf(ctx: EffectContext, holder: string, name: string): Promise<Record<string, string>> {
  const lines = await ctx.setting<string[]>(ENVIRONMENT)
  if (lines.length === 0) return {}
  const leased = await lease(ctx, holder, name)
  return Object.fromEntries(lines.map((line) => filled(line, leased)))
}

async function lease(ctx: EffectContext, holder: string, name: string): Promise<Lease> {
  // Without the folder of the daemon: two daemons of one machine share its ports.
  const machine = ctx.ports.daemon.host.split(':')[0] as string
  const own = await ownLease(ctx.view, machine, holder)
  if (own) return own
  const taken = await takenPorts(ctx, machine)
  return ctx.report(leasePorts, { machine, holder, name, taken })
}

/** Nobody has leased these, and a program of the person, or of another daemon, listens there. Never looked at again: then it may be the checkout's own. */
async function takenPorts(ctx: EffectContext, machine: string): Promise<number[]> {
  const [first, ports] = [await ctx.setting<number>(FIRST_PORT), await ctx.setting<number>(PORTS_EACH)]
  const { live } = await leasesOf(ctx.view, machine)
  const taken: number[] = []
  while (taken.length < MOST_TAKEN) {
    const port = firstFree(live, taken, first, ports)
    if (port === undefined) return taken
    const answering = await ctx.ports.listeners.answering(Array.from({ length: ports }, (_, i) => port + i))
    if (answering === undefined) return taken
    taken.push(answering)
  }
  return taken
}

export const VariableName = z
  .string()
  .max(100)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable')

const LINE_OF_ENVIRONMENT = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/
export const EnvironmentLine = z
  .string()
  .max(300)
  .regex(LINE_OF_ENVIRONMENT, 'must be NAME=value, where {port}, {port+1} … and {name} are filled in')

function filled(line: string, { port, name }: Lease): [string, string] {
  const [, key = '', value = ''] = LINE_OF_ENVIRONMENT.exec(line) ?? []
  return [key, value.replaceAll('{name}', name).replace(/\{port(?:\+(\d{1,3}))?\}/g, (_, more) => String(port + Number(more ?? 0)))]
}

/** In words, for whoever works there. */
export async function portsOf(view: Tx, work: WorkRow): Promise<string | undefined> {
  const lease = await leaseOf(view, work)
  return lease && `${lease.port} to ${lease.port + lease.ports - 1}`
}

export function leaseOf(view: Tx, { id }: WorkRow): Promise<LeaseRow | undefined> {
  return leases(view).selectFrom('port_leases').selectAll().where('holder', '=', id).executeTakeFirst()
}
