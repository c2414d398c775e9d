import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { type ExportPage, endLine, headerLine, verifyExport } from '../../db/audit-export.ts'
import { headOf, sha256 } from '../../db/seal.ts'
import { type TestApp, test } from '../../testing/app.ts'
import { until } from '../../testing/signals.ts'

const SECRET = `sk-${'a'.repeat(30)}`

/** The file that `signalbox audit export` writes. */
async function exported(app: TestApp, after = 0): Promise<string[]> {
  const pages: ExportPage[] = []
  for (let last = after; ; last = (pages.at(-1) as ExportPage).last) {
    const page = await app.owner.call('audit_export', { after: last })
    if (!page.lines.length) break
    pages.push(page)
  }
  const lines = pages.flatMap((page) => page.lines)
  const newest = lines.at(-1)
  const head = newest ? headOf(JSON.parse(newest).seal) : null
  return [headerLine(after, pages[0]?.previous ?? '0'.repeat(64)), ...lines, endLine(head)]
}

async function* each(lines: string[]) {
  yield* lines
}

const sealAll = (app: TestApp) => until(async () => !(await app.app.sealer.seal()))
const endOf = (lines: string[]) => JSON.parse(lines.at(-1) as string).end as string

async function log(app: TestApp): Promise<void> {
  await app.app.sealer.close()
  const { project_id } = await app.owner.call('project_create', { name: `The key is ${SECRET}` })
  await sealAll(app)
  const { task } = await app.owner.call('task_create', { project_id, title: 'Größe “1” \u2028 \\ "x"' })
  await app.owner.call('task_note', { task_id: task.id, body: 'line\nline\ttab \u0001' })
  await sealAll(app)
  await app.agent('orchestrator', { name: 'Ann' })
  await sealAll(app)
}

/** The program in docs/audit.md, as a reader would copy it. */
function documented(app: TestApp, lines: string[], ...args: string[]): { code: number | null; said: string } {
  const page = readFileSync(new URL('../../../docs/audit.md', import.meta.url), 'utf8')
  const program = /```js\n(.*?)```/s.exec(page)?.[1] as string
  writeFileSync(join(app.folder, 'verify.mjs'), program)
  writeFileSync(join(app.folder, 'audit.jsonl'), lines.map((line) => `${line}\n`).join(''))
  const { status, stdout, stderr } = spawnSync(process.execPath, ['verify.mjs', 'audit.jsonl', ...args], {
    cwd: app.folder,
    encoding: 'utf8',
  })
  return { code: status, said: stdout + stderr }
}

describe('export', () => {
  test('[Z8] it has every sealed row and its seal, and verifies here and with the program of the documentation', async ({ app }) => {
    await log(app)
    const lines = await exported(app)
    const { ok, head, sealed_events, sealed_calls } = await app.owner.call('audit_verify')
    const rows = (kind: string) => lines.filter((line) => line.startsWith(`{"${kind}":`))
    expect([ok, rows('event').length, rows('call').length, endOf(lines)]).toEqual([true, sealed_events, sealed_calls, head])
    expect(await verifyExport(each(lines), head)).toMatchObject({ ok: true, head, sealed_events, sealed_calls, expected: 'found' })
    expect(documented(app, lines, head)).toEqual({ code: 0, said: `GOOD: up to ${head}\n` })
    expect(documented(app, lines, `9.${'0'.repeat(64)}`)).toMatchObject({ code: 1, said: expect.stringContaining('BAD') })
    expect(await verifyExport(each(lines), `9.${'0'.repeat(64)}`)).toMatchObject({ ok: false, expected: 'cut' })
  })

  test('[Z8] a secret in a payload is not in it: the hash stands in its place', async ({ app }) => {
    await log(app)
    const lines = await exported(app)
    expect(lines.join('\n')).not.toContain(SECRET)
    const created = lines.map((line) => JSON.parse(line).event).find((event) => event?.type === 'project.created')
    const [stored] = await app.events({ type: 'project.created' })
    expect(JSON.stringify(stored?.data)).toContain(SECRET)
    expect(created.data).toBeUndefined()
    expect(created.data_sha256).toBe(sha256(JSON.stringify(stored?.data)))
  })

  test('[Z8] any change to any line is found, by both', async ({ app }) => {
    await log(app)
    const lines = await exported(app)
    const head = endOf(lines)
    for (const [i, line] of lines.entries()) {
      const [kind, row] = Object.entries(JSON.parse(line))[0] as [string, Record<string, unknown>]
      if (!['event', 'call', 'seal'].includes(kind)) continue
      for (const [column, value] of Object.entries(row)) {
        const other = typeof value === 'number' ? value + 1 : `${value ?? ''}0`
        const edited = lines.with(i, JSON.stringify({ [kind]: { ...row, [column]: other } }))
        const verdict = await verifyExport(each(edited), head).catch((error: Error) => error)
        expect([kind, column, verdict instanceof Error || verdict.ok]).toEqual([kind, column, verdict instanceof Error])
        if (kind !== 'seal' && column !== 'seq' && !(verdict instanceof Error))
          expect(verdict.first_bad).toMatchObject({ table: `${kind}s`, seq: row.seq, problem: 'changed' })
      }
      const without = lines.toSpliced(i, 1)
      expect((await verifyExport(each(without), head).catch(() => ({ ok: false }))).ok).toBe(false)
      const twice = lines.toSpliced(i, 0, line)
      expect((await verifyExport(each(twice), head).catch(() => ({ ok: false }))).ok).toBe(false)
      if (i % 4 !== 1) continue
      for (const bad of [without, twice]) expect(documented(app, bad).code).toBe(1)
    }
  })

  test('[Z8] nothing that no hash covers passes as verified, by both, also with the right head', async ({ app }) => {
    await log(app)
    const lines = await exported(app)
    const head = endOf(lines) as string
    const at = lines.findIndex((line) => line.startsWith('{"call":'))
    const { call } = JSON.parse(lines[at] as string)
    const { input, ...rest } = call
    const withCall = (row: object) => lines.with(at, JSON.stringify({ call: row }))
    const forgeries: Record<string, string[]> = {
      'a payload beside the hash of the true one': withCall({ ...call, input: { forged: true }, input_sha256: sha256(String(input)) }),
      'a payload in the shape of an object': withCall({ ...rest, input: { forged: true } }),
      'a column that is not sealed': withCall({ ...call, approved_by: 'owner' }),
      'a field that stands twice': lines.with(at, (lines[at] as string).replace('{"seq":', '{"tool":"forged","seq":')),
      'a line of no known kind': lines.toSpliced(at, 0, '{"Call":{"tool":"forged"}}'),
      'two things in one line': lines.with(at, JSON.stringify({ call, note: 'forged' })),
      'something behind the end': [...lines, JSON.stringify({ call })],
    }
    for (const [what, forged] of Object.entries(forgeries)) {
      const verdict = await verifyExport(each(forged), head).catch((error: Error) => ({ ok: false, error }))
      expect([what, verdict.ok, documented(app, forged, head).code]).toEqual([what, false, 1])
    }
  })

  test('[Z8] an export that begins later tells nothing about the seals before it', async ({ app }) => {
    await log(app)
    const [first] = (await exported(app)).filter((line) => line.startsWith('{"seal":')).map((line) => JSON.parse(line).seal)
    const head = `${first.number}.${first.hash}`
    const empty = [headerLine(first.number, first.hash), endLine(null)]
    await expect(verifyExport(each(empty), head)).rejects.toThrow('tells nothing about seal 1')
    expect(documented(app, empty, head).code).toBe(1)
    await expect(verifyExport(each([headerLine(0, 'ab'.repeat(32)), endLine(null)]), undefined)).rejects.toThrow('where it begins')
  })

  test('[Z8] a file that is cut, of another kind or of another version is no whole export', async ({ app }) => {
    await log(app)
    const lines = await exported(app)
    for (let end = 1; end < lines.length; end++)
      await expect(verifyExport(each(lines.slice(0, end)), undefined)).rejects.toThrow('no whole export')
    await expect(verifyExport(each([]), undefined)).rejects.toThrow('no whole export')
    await expect(verifyExport(each(['{}']), undefined)).rejects.toThrow('no audit export')
    await expect(verifyExport(each(['hello']), undefined)).rejects.toThrow('"hello"')
    const [header = '', ...rest] = lines
    await expect(verifyExport(each([header.replace('"version":1', '"version":2'), ...rest]), undefined)).rejects.toThrow('version 2')
  })

  test('[Z8] what came after a seal follows on its own; after a seal that is not there is refused', async ({ app }) => {
    await log(app)
    const all = await exported(app)
    const later = await exported(app, 1)
    expect(later.length).toBeLessThan(all.length)
    expect(await verifyExport(each(later), endOf(all))).toMatchObject({ ok: true, expected: 'found' })
    expect(documented(app, later, endOf(all)).code).toBe(0)
    const { number } = JSON.parse(all.at(-2) as string).seal
    expect(await exported(app, number)).toHaveLength(2)
    expect(await app.owner.refused('audit_export', { after: number + 1 })).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
  })

  test('[Z8] it comes in pages that a client can take', async ({ app }) => {
    await app.app.sealer.close()
    const task = await app.task()
    for (let seal = 0; seal < 4; seal++) {
      const body = 'x'.repeat(3_900)
      await Promise.all(Array.from({ length: 100 }, () => app.owner.call('task_note', { task_id: task.id, body })))
      await sealAll(app)
    }
    const first = await app.owner.call('audit_export')
    expect(first.last).toBeLessThan(Number(first.head.split('.')[0]))
    const lines = await exported(app)
    expect(await verifyExport(each(lines), undefined)).toMatchObject({ ok: true, head: first.head })
  })

  test('[Z8] only a person exports', async ({ app }) => {
    const agent = await app.agent('supervisor', { profile: 'maintainer' })
    expect(await agent.refused('audit_export')).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await agent.call('audit_verify')).toMatchObject({ ok: true })
  })
})
