import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { capabilities } from '../../src/capabilities/index.ts'
import { isPostgres } from '../../src/db/address.ts'
import { type EngineFacts, POSTGRES, SQLITE } from '../../src/db/engine.ts'
import type { Capability } from '../../src/kernel/capability.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { leftBehind } from '../../src/testing/survivors.ts'
import { fixedSeeds, Random } from '../chaos/random.ts'
import { until } from '../e2e/support.ts'
import { description, type OldDatabase } from './lay-out.ts'
import { contentOf, schemaOf } from './reading.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

/**
 * Each exception with its reason: by table and column what a later migration rewrites, by table and `*` of which one it adds or takes away
 * rows. Everything else is the same before and after.
 */
const REWRITTEN: Record<string, string> = {
  'runs.job_id': 'the owner of a run: owner_kind job, owner_id',
  'run_inputs.job_id': 'message_id',
}
/** Every start may write these down; what they had stays. */
const ADDED_TO = ['migrations', 'meta']

const CACHE = resolve(import.meta.dirname, '../../.cache')
const MIGRATING = join(CACHE, `migrating-${process.pid}.mjs`)
const ENGINES = [SQLITE, POSTGRES]
/** All migrations, in the words of an engine. */
const fileOf = ({ name }: EngineFacts) => join(CACHE, `migrations-${process.pid}-${name}.json`)
const GATES = ['checks', 'review', 'part', 'three', 'work', 'lead']
const ROUNDS = 6

/** `layOut`: the old database on one engine; `empty`: where a new one can be made on the same. */
export function keepsWorking(layOut: () => Promise<OldDatabase>, empty: (old: OldDatabase) => Promise<string>): void {
  const laidOut = async () => {
    const old = await layOut()
    onTestFinished(() => old.remove())
    return old
  }

  beforeAll(async () => {
    const entryPoints = [join(import.meta.dirname, 'migrating.ts')]
    await build({ entryPoints, outfile: MIGRATING, bundle: true, platform: 'node', format: 'esm', packages: 'external' })
    for (const engine of ENGINES)
      writeFileSync(fileOf(engine), JSON.stringify(capabilities.map((capability) => written(capability, engine))))
  })
  afterAll(() => {
    for (const file of [MIGRATING, ...ENGINES.map(fileOf)]) rmSync(file, { force: true })
  })

  test('[E90] every migration finds it full: no row is lost or changed, and its tables are those of a new database', async () => {
    const old = await laidOut()
    const before = await contentOf(old.location)
    expect(Object.fromEntries([...before].map(([table, rows]) => [table, rows.length]))).toEqual(description.counts)
    await migrated(old.location)
    const after = await contentOf(old.location)
    for (const [table, rows] of before) {
      if (REWRITTEN[`${table}.*`]) continue
      const kept = Object.keys(rows[0] ?? {}).filter((column) => !REWRITTEN[`${table}.${column}`])
      const only = (row: Any) => JSON.stringify(kept.map((column) => row[column]))
      const wanted = rows.map(only).sort()
      const found = (after.get(table) ?? []).map(only).sort()
      expect([table, found]).toEqual([table, ADDED_TO.includes(table) ? expect.arrayContaining(wanted) : wanted])
    }
    // What waits in a line is committed with what its worker said of it.
    const said = new Map(before.get('reviews')?.map(({ id, summary }) => [id, summary]))
    for (const { review_id, summary } of after.get('merges') ?? []) expect(summary).toBe(said.get(review_id as string))
    const fresh = await empty(old)
    await migrated(fresh)
    expect(await schemaOf(old.location)).toEqual(await schemaOf(fresh))
  })

  for (const seed of fixedSeeds(2))
    test(`[E91] a migration that is killed at any instant and begun again ends the same: seed ${seed}`, async () => {
      const random = new Random(seed)
      const old = await laidOut()
      const whole = await old.copy()
      const { lasted, statements } = await migrated(whole)
      const endsTheSame = async (location: string) => {
        await migrated(location)
        expect(await schemaOf(location)).toEqual(await schemaOf(whole))
        expect(withoutTimes(await contentOf(location))).toEqual(withoutTimes(await contentOf(whole)))
      }
      let location = await old.copy()
      let kills = 0
      for (let round = 0; round < ROUNDS; round++) {
        if (await killed(location, round % 3 ? { atStatement: random.below(statements) } : { afterMs: random.next() * lasted })) kills++
        else {
          // It was faster: the next one begins with the old database again.
          await endsTheSame(location)
          location = await old.copy()
        }
      }
      await endsTheSame(location)
      expect(kills).toBeGreaterThan(2)
    })

  test('[E92] a daemon of today goes on where the old one was killed', { timeout: 240_000 }, async () => {
    const old = await laidOut()
    const daemon = new TestDaemon({ home: old.home, env: old.env })
    onTestFinished(() => daemon.remove())
    await daemon.start()
    await goesOn(daemon, old)
  })
}

function written({ name: owner, migrations = [] }: Capability, { types }: EngineFacts) {
  return { owner, migrations: migrations.map(({ name, up }) => ({ name, statements: up(types) })) }
}

/** Runs the migrations of today in a process of its own. */
async function migrated(location: string) {
  const { code, ...took } = await migrating(location, {})
  expect(code).toBe(0)
  return took
}

/** False when it was through before it could be killed. */
async function killed(location: string, how: { atStatement?: number; afterMs?: number }): Promise<boolean> {
  const { code, signal } = await migrating(location, how)
  if (code !== 0 && signal !== 'SIGKILL') throw new Error(`the migration ended with ${code ?? signal}`)
  return signal === 'SIGKILL'
}

async function migrating(location: string, { atStatement, afterMs }: { atStatement?: number; afterMs?: number }) {
  const migrations = fileOf(isPostgres(location) ? POSTGRES : SQLITE)
  const child = spawn(process.execPath, [MIGRATING, location, migrations, String(atStatement)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  const ended = once(child, 'close')
  child.stdout.on('data', (text) => {
    said += String(text)
  })
  await Promise.race([once(child.stdout, 'data'), ended])
  const began = performance.now()
  // Any instant is the point, so nothing tells when.
  const timer = afterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), afterMs)
  const [code, signal] = (await ended) as [number | null, string | null]
  clearTimeout(timer)
  return { code, signal, lasted: performance.now() - began, statements: Number(/(\d+) statements/.exec(said)?.[1]) }
}

/** All but when each migration was applied. */
function withoutTimes(content: Awaited<ReturnType<typeof contentOf>>) {
  const migrations = content.get('migrations')?.map(({ name = '' }) => ({ name })) ?? []
  return [...content.set('migrations', migrations)].map(([table, rows]) => [table, rows.map((row) => JSON.stringify(row)).sort()])
}

async function goesOn(daemon: TestDaemon, old: OldDatabase): Promise<void> {
  const { ids, there } = description
  const list = async (tool: string, of: string, input: object = {}): Promise<Any[]> =>
    (await daemon.call(tool, { project_id: ids.project_id, limit: 200, ...input }))[of]
  const get = async (task_id: string): Promise<Any> => (await daemon.call('task_get', { task_id })).task
  const now = async () => {
    const tasks = (await list('task_list', 'tasks')).map((task) =>
      [task.handle, task.title, task.status, task.attention, task.attention_detail].join(' '),
    )
    const jobs = (await list('job_list', 'jobs')).map(({ handle, task_id, action, state, reason }) =>
      [handle, task_id, action, state, reason].join(' '),
    )
    return [...tasks, ...jobs, daemon.log].join('\n')
  }
  const comes = (what: string, holds: () => unknown) => until(holds, async () => `${what}\n${await now()}`)

  // All that people see of it has its name from before.
  const seen = there.tasks.filter(({ lead, reviews_task_id }) => !lead && reviews_task_id === null)
  for (const { id, number, title } of seen) expect(await get(String(id))).toMatchObject({ handle: `T-${number}`, title })
  for (const { id, number } of there.jobs.filter(({ task_id }) => seen.some((task) => task.id === task_id)))
    expect((await daemon.call('job_get', { job_id: String(id) })).job).toMatchObject({ handle: `J-${number}` })
  for (const { id, round, task_id } of there.reviews) {
    const reviews = await daemon.call('review_list', { task_id })
    expect(reviews.reviews).toContainEqual(expect.objectContaining({ id, round }))
  }
  expect(await daemon.call('audit_verify', {})).toMatchObject({ ok: true, first_bad: null })

  expect((await get(ids.paired)).attention_detail).toContain('Its terminal was lost')
  expect(await daemon.call('plan_get', { plan_id: ids.plan_id })).toMatchObject({ status: 'proposed' })
  // Each is at work again, and is let go on when it is seen: what waited in line may have its place first.
  for (const gate of GATES) {
    await comes(`somebody is at ${gate}`, () => old.isReached(gate))
    // An epic of that time has not written down with which program its next agents are started. Those that live go on with theirs.
    if (gate === 'lead') await daemon.call('setting_update', { key: 'runs.default_harness', value: 'scripted' })
    old.open(gate)
  }
  await comes('the question is asked again', async () => (await list('approval_list', 'approvals')).length === 1)
  const [asked] = await list('approval_list', 'approvals')
  await daemon.call('approval_decide', { approval_id: asked.id, decision: 'allow' })

  const landing = [ids.checked, ids.reviewed, ids.atWork, ...ids.queued].map(({ task_id }) => task_id)
  const ofEpic = seen.filter(({ title }) => String(title).startsWith('Part ')).map(({ id }) => String(id))
  for (const id of [...landing, ...ofEpic]) await comes(`${id} is DONE`, async () => (await get(id)).status === 'DONE')
  await comes('the epic is handed in', async () => (await daemon.call('epic_get', { epic_id: ids.epic_id })).epic.state === 'REVIEW')
  await comes('nobody is at work', async () => (await list('job_list', 'jobs', { states: ['queued', 'running'] })).length === 0)

  const { epic } = await daemon.call('epic_get', { epic_id: ids.epic_id })
  const files = (branch: string) => git(old.repo, 'ls-tree', '-r', '--name-only', branch).split('\n')
  expect(files('main')).toEqual(['after.txt', 'draft.txt', 'greeting.txt', 'half.txt', 'next.txt', 'read.txt', 'slow.txt'])
  expect(files(epic.branch)).toEqual(['greeting.txt', 'one.txt', 'three.txt', 'two.txt'])
  expect(git(old.repo, 'show', 'main:draft.txt')).toBe('not committed')
  const landed = git(old.repo, 'log', '--format=%(trailers:key=Signalbox-Task,valueonly,separator=%x2c)', 'main', epic.branch).split('\n')
  expect(landed.filter(Boolean).sort()).toEqual([ids.done.task_id, ...landing, ...ofEpic].sort())

  // Once each, and by whoever had begun it.
  for (const { id } of seen) {
    const { runs } = await daemon.call('run_list', { task_id: id, limit: 200 })
    expect(new Set(runs.map(({ agent_id }: Any) => agent_id)).size).toBeLessThan(2)
  }
  const { runs } = await daemon.call('run_list', { task_id: ids.atWork.task_id })
  expect(runs.map(({ agent_id }: Any) => agent_id)).toEqual([ids.worker, ids.worker])
  expect((await get(ids.atWork.task_id)).notes.map(({ body }: Any) => body)).toEqual(['Half of it is there.'])
  const { letters } = (
    await daemon.post('mail_inbox', { include_read: true }, daemon.token, { headers: { 'signalbox-act-for': ids.worker } })
  ).result
  expect(letters.map(({ id }: Any) => id)).toContain(ids.letter)
  expect((await daemon.call('plan_accept', { plan_id: ids.plan_id })).task_ids).toHaveLength(2)
  const { counts } = await daemon.call('effect_list')
  expect([counts.dead, counts.unknown]).toEqual([0, 0])
  expect(await leftBehind(daemon.home)).toEqual([])
  expect((await daemon.call('audit_verify', {})).ok).toBe(true)
}

function git(cwd: string, ...args: string[]): string {
  return execFileSync('git', args, { cwd, encoding: 'utf8' }).trim()
}
