import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hashRow, type Mark, makeSeal, type Seal, type SealedRow, type SealedTable } from '../../src/db/seal.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { databaseOf, until } from './support.ts'

let daemon: TestDaemon

beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
  await daemon.call('task_create', { title: 'One' })
  await until(async () => (await daemon.call('audit_verify')).sealed_events >= 2, 'the first events are sealed')
})
afterAll(() => daemon.remove())

const file = (name: string) => join(daemon.home, name)
// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
const verdict = async (...args: string[]): Promise<{ code: number; found: any }> => {
  const { code, stdout, stderr } = await daemon.cli(['audit', 'verify', ...args, '--json'])
  expect(stderr).toBe('')
  return { code, found: JSON.parse(stdout) }
}

/** With the daemon stopped, as somebody who has the file. */
async function edit(change: (db: InstanceType<typeof DatabaseSync>) => void): Promise<void> {
  await daemon.end()
  const db = new DatabaseSync(databaseOf(daemon))
  change(db)
  db.close()
  await daemon.start()
}

test('[S14] from the command line: it fits, the head of before is found, and what is no head is refused', async () => {
  const { code, found } = await verdict()
  expect([code, found.ok]).toEqual([0, true])
  expect(await verdict('--expect', found.head)).toMatchObject({ code: 0, found: { ok: true, expected: 'found' } })
  expect((await daemon.cli(['audit', 'verify', '--expect', 'x'])).code).toBe(2)
  expect((await daemon.cli(['audit', '--help'])).stdout).toMatch(/audit tail.*audit verify.*audit export/s)
  expect((await daemon.cli(['audit', 'export', '--help'])).stdout).toContain('--after N')
  expect((await daemon.cli(['audit', 'verify', '--help'])).stdout).toContain('--file FILE')
  expect((await daemon.cli(['--help'])).stdout).toContain('audit tail|verify|export')
})

test('[S14] an export is private, appears when it is whole, never overwrites, and verifies without a daemon', async () => {
  const out = file('audit.jsonl')
  const { code, stdout } = await daemon.cli(['audit', 'export', '--out', out])
  expect([code, stdout]).toEqual([0, expect.stringContaining(`Exported to ${out}`)])
  expect(statSync(out).mode & 0o777).toBe(0o600)
  const again = await daemon.cli(['audit', 'export', '--out', out])
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('never overwrites')])
  const piped = await daemon.cli(['audit', 'export', '--out', '-'])
  writeFileSync(file('piped.jsonl'), piped.stdout)
  for (const name of ['audit.jsonl', 'piped.jsonl'])
    expect(await verdict('--file', file(name))).toMatchObject({ code: 0, found: { ok: true } })
  const text = readFileSync(out, 'utf8')
  writeFileSync(file('forged.jsonl'), text.replace('"tool":"task_create"', '"tool":"task_delete"'))
  expect(await verdict('--file', file('forged.jsonl'))).toMatchObject({
    code: 1,
    found: { ok: false, first_bad: { table: 'calls', problem: 'changed' } },
  })
  writeFileSync(file('cut.jsonl'), text.slice(0, -20))
  expect(await daemon.cli(['audit', 'verify', '--file', file('cut.jsonl')])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no whole export'),
  })
  expect((await daemon.cli(['audit', 'verify', '--file', file('none.jsonl')])).stderr).toContain('There is no file')
  const refused = await daemon.cli(['audit', 'export', '--out', file('late.jsonl'), '--after', '99999'])
  expect([refused.code, existsSync(file('late.jsonl'))]).toEqual([4, false])
  expect(readdirSync(daemon.home).filter((name) => name.includes('partial'))).toEqual([])
})

test('[S14] an edit in the file is found and named; rebuilt, it is found with a head kept elsewhere', async () => {
  const { found } = await verdict()
  await edit((db) => db.exec(`UPDATE calls SET principal = 'nobody' WHERE tool = 'task_create'`))
  const bad = await verdict()
  expect(bad).toMatchObject({ code: 1, found: { ok: false, first_bad: { table: 'calls', problem: 'changed' } } })
  const plain = await daemon.cli(['audit', 'verify'])
  expect(plain.stdout).toContain(`Row ${bad.found.first_bad.seq} of calls is not what it was when it was sealed`)
  await edit(rebuild)
  expect(await verdict()).toMatchObject({ code: 0, found: { ok: true } })
  expect(await verdict('--expect', found.head)).toMatchObject({ code: 1, found: { ok: false, expected: 'rewritten' } })
})

test('[S14] a kill leaves a chain that the next start goes on with', async () => {
  const before = (await verdict()).found.head
  for (let i = 0; i < 3; i++) {
    await daemon.call('project_create', { name: `P ${i}` })
    await daemon.end('SIGKILL')
    await daemon.start()
  }
  await until(async () => (await daemon.call('audit_verify')).unsealed_events === 0, 'what the kill left is sealed')
  expect(await verdict('--expect', before)).toMatchObject({ code: 0, found: { ok: true, unsealed_events: 0 } })
})

/** All seals made anew over the rows as they are. */
function rebuild(db: InstanceType<typeof DatabaseSync>): void {
  let previous = '0'.repeat(64)
  for (const seal of db.prepare('SELECT * FROM seals ORDER BY number').all() as unknown as Seal[]) {
    const hashed = (table: SealedTable) =>
      (JSON.parse(seal[table]) as Mark[]).map(([seq]) => {
        const row = db.prepare(`SELECT * FROM ${table} WHERE seq = ?`).get(seq) as SealedRow
        return { seq, hash: hashRow(table, row) }
      })
    const anew = makeSeal({ number: seal.number, at: seal.at, previous }, { events: hashed('events'), calls: hashed('calls') })
    db.prepare('UPDATE seals SET previous = ?, events = ?, calls = ?, rows = ?, hash = ? WHERE number = ?').run(
      anew.previous,
      anew.events,
      anew.calls,
      anew.rows,
      anew.hash,
      anew.number,
    )
    previous = anew.hash
  }
}
