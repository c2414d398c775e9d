import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, vi } from 'vitest'
import { capabilities } from '../capabilities/index.ts'
import type { Storage } from '../kernel/storage.ts'
import { type TestApp, test } from '../testing/app.ts'
import { auditRows } from '../testing/probe.ts'
import { until } from '../testing/signals.ts'
import { backupFile, restoreFile } from './maintenance.ts'
import { sealStore } from './seal-store.ts'
import { Sealer } from './sealer.ts'

const MIGRATIONS = capabilities.map((c) => ({ owner: c.name, migrations: c.migrations ?? [] }))

const create = (app: TestApp, name = 'Web') => app.owner.call('project_create', { name })
const head = async (app: TestApp) => (await app.owner.call('audit_verify')).head as string

describe('the sealer', () => {
  afterEach(() => void vi.useRealTimers())

  test('[Z1] it is armed by a commit, once for all that come meanwhile, and not again when all is sealed', async ({ app }) => {
    await app.app.sealer.close()
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { engine, host } = app.app
    const sealer = new Sealer({ storage: engine, order: engine.order, now: host.now })
    expect(vi.getTimerCount()).toBe(0)
    await create(app)
    for (let i = 0; i < 5; i++) sealer.wake()
    expect(vi.getTimerCount()).toBe(1)
    vi.advanceTimersByTime(1_000)
    await until(async () => (await sealStore(engine.view).head())?.number === 1)
    await until(async () => !(await sealer.seal()))
    expect(vi.getTimerCount()).toBe(0)
    await sealer.close()
    sealer.wake()
    expect(vi.getTimerCount()).toBe(0)
  })

  test('[Z1] one that fails tries again', async ({ app }) => {
    await app.app.sealer.close()
    const { engine, host } = app.app
    await create(app)
    const faults: unknown[] = []
    let failing = true
    const storage: Storage = {
      view: engine.view,
      write: (job) => (failing ? Promise.reject(new Error('no')) : engine.write(job)),
    }
    const sealer = new Sealer({ storage, order: engine.order, now: host.now, onFault: (error) => faults.push(error) })
    sealer.wake()
    await until(() => faults.length > 0)
    failing = false
    await until(async () => (await sealStore(engine.view).head()) !== undefined)
    await sealer.close()
  })

  test('[Z1] under steady writing a round makes one seal, and the rest waits for the next', async ({ app }) => {
    await app.app.sealer.close()
    const { engine, host } = app.app
    await create(app)
    let written = 0
    const storage: Storage = {
      view: engine.view,
      async write(job) {
        const value = await engine.write(job)
        if (written++ < 20) await create(app, `P ${written}`)
        return value
      },
    }
    expect(await new Sealer({ storage, order: engine.order, now: host.now }).seal()).toBe(true)
    expect((await sealStore(engine.view).head())?.number).toBe(1)
  })

  test('[Z1] a long backlog is sealed in pieces, and others are answered in between', { timeout: 180_000 }, async ({ app }) => {
    await app.app.sealer.close()
    for (let round = 0; round < 6; round++) await Promise.all(Array.from({ length: 200 }, (_, i) => create(app, `P ${round} ${i}`)))
    const seen = new Set<number>()
    let sealing = true
    const looking = (async () => {
      for (; sealing; await new Promise((resolve) => setImmediate(resolve)))
        seen.add((await sealStore(app.app.engine.view).head())?.number ?? 0)
    })()
    await app.app.sealer.seal()
    sealing = false
    await looking
    const seals = await sealStore(app.app.engine.view).page(undefined, 100, 100)
    expect(seals.length).toBe(3)
    // Whoever looks on gets a turn behind every piece but the last.
    expect([...seen].slice(0, 3)).toEqual([0, 1, 2])
    expect(await app.owner.call('audit_verify')).toMatchObject({ ok: true, sealed_events: 1_200 })
  })
})

describe('a restored backup', () => {
  test('[Z5] it verifies, goes on, and with a head from after the backup it says that the chain is shorter', async ({ app }) => {
    await create(app, 'before')
    await app.reopen()
    const early = await head(app)
    const backup = join(app.folder, 'backup.db')
    backupFile(app.database, backup)
    await create(app, 'after')
    await app.reopen()
    const late = await head(app)
    await app.reopen(() => void restoreFile(app.database, backup, '20260101', MIGRATIONS))
    expect(await app.owner.call('audit_verify', { expect: early })).toMatchObject({ ok: true, expected: 'found' })
    expect(await app.owner.call('audit_verify', { expect: late })).toMatchObject({ ok: false, first_bad: null, expected: 'cut' })
    await create(app, 'again')
    await app.reopen()
    expect(await app.owner.call('audit_verify', { expect: early })).toMatchObject({ ok: true, expected: 'found' })
    expect(await app.owner.call('audit_verify', { expect: late })).toMatchObject({
      ok: false,
      expected: expect.stringMatching('rewritten|cut'),
    })
  })
})

describe('what is in the log stays', () => {
  const root = fileURLToPath(new URL('../', import.meta.url))
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.startsWith('testing/'))
    .map((file) => ({ file, text: readFileSync(join(root, file), 'utf8') }))
  const TABLES = '(events|calls|seals)'
  const found = (pattern: RegExp) => sources.filter(({ text }) => pattern.test(text)).map(({ file }) => file)

  test('[Z6] no statement changes or removes events, calls or seals', () => {
    const builder = new RegExp(`(updateTable|deleteFrom|replaceInto|mergeInto)\\(\\s*['"\`]${TABLES}['"\`]`)
    const text = new RegExp(
      `(UPDATE|DELETE\\s+FROM|REPLACE\\s+INTO|TRUNCATE(\\s+TABLE)?|DROP\\s+TABLE|MERGE\\s+INTO)\\s+"?${TABLES}\\b`,
      'i',
    )
    expect(found(builder)).toEqual([])
    expect(found(text)).toEqual([])
    expect('db.deleteFrom("calls")').toMatch(builder)
    expect('sql`delete from events`').toMatch(text)
  })

  test('[Z6] rows are added to each in one place', () => {
    const adding = (table: string) =>
      found(new RegExp(`(?:insertInto|insertion)\\(\\s*['"]${table}['"]|INSERT\\s+INTO\\s+"?${table}\\b`, 'i'))
    expect([adding('events'), adding('calls'), adding('seals')]).toEqual([['db/ledger.ts'], ['db/ledger.ts'], ['db/seal-store.ts']])
  })

  test('[Z6] whatever the strongest token asks of any tool, what was sealed stays as it is', async ({ app }) => {
    await create(app)
    await app.reopen()
    const kept = await head(app)
    const [call] = await auditRows(app)
    const names = ['events', 'calls', 'seals', call?.id ?? '', '1', 'task.*']
    for (const tool of app.app.registry.tools.filter(({ watch, name }) => !watch && name !== 'system_health')) {
      const properties = Object.entries(tool.inputJson.properties as Record<string, { type?: string; enum?: string[] }>)
      for (const name of names) {
        const guess = ({ type, enum: allowed }: { type?: string; enum?: string[] }) =>
          allowed?.[0] ?? { integer: 1, number: 1, boolean: true, array: [name], object: { id: name } }[type ?? ''] ?? name
        const input = Object.fromEntries(properties.filter(([key]) => key !== 'idempotency_key').map(([key, p]) => [key, guess(p)]))
        await app.owner.invoke(tool.name, input)
        await app.app.kernel.invoke({ tool: tool.name, input, credential: 'system', surface: 'daemon' })
      }
    }
    // The owner may have rotated the token away: what counts is the chain.
    const verdict = await app.app.kernel.parts.ports.seals.verify(kept)
    expect(verdict).toMatchObject({ ok: true, expected: 'found' })
  })
})
