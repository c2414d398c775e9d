import { sql } from 'kysely'
import { describe, expect, inject, onTestFinished } from 'vitest'
import { openEngine } from '../../db/open.ts'
import { tables } from '../../db/tables.ts'
import { JSON_TEXT, type Migration } from '../../kernel/capability.ts'
import { openTestApp, type TestApp, test } from '../../testing/app.ts'
import { createDatabase, dropDatabase } from '../../testing/databases.ts'
import { makeStrange } from '../../testing/strange.ts'
import { capabilities } from '../index.ts'

const KNOWN = capabilities.flatMap(({ values = {} }) =>
  Object.entries(values).flatMap(([table, columns]) => Object.entries(columns).map(([column, known]) => ({ table, column, known }))),
)

/** What the database itself lets into a column. */
async function letIn({ app }: TestApp, table: string, column: string): Promise<string[]> {
  const db = tables(app.engine.view)
  const definition =
    app.engine.facts.name === 'postgres'
      ? sql<{ text: string }>`SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = ${`${table}_${column}_known`}`
      : sql<{ text: string }>`SELECT sql AS text FROM sqlite_master WHERE type = 'trigger' AND name = ${`${table}_${column}_known_insert`}`
  const text = (await definition.execute(db)).rows[0]?.text ?? ''
  return [...text.replace(/RAISE\(.*/s, '').matchAll(/'([^']*)'/g)].map((match) => match[1] as string)
}

const update = (app: TestApp, statement: string) => app.app.engine.write(async (tx) => void (await sql.raw(statement).execute(tables(tx))))

describe('values that nobody knows', () => {
  test('[D21] the database takes into a column what the program knows, and nothing else', async ({ app }) => {
    expect(KNOWN.map(({ table, column }) => `${table}.${column}`)).toEqual(expect.arrayContaining(['jobs.state', 'tasks.status']))
    expect(KNOWN.map(({ table, column }) => `${table}.${column}`)).toContain('lines.strategy')
    for (const { table, column, known } of KNOWN.filter(({ known }) => known !== JSON_TEXT))
      expect([table, column, (await letIn(app, table, column)).sort()]).toEqual([table, column, [...known].sort()])
    await app.task()
    await expect(update(app, `UPDATE tasks SET status = 'weird'`)).rejects.toThrow(/tasks_status_known|tasks\.status/)
    await expect(
      update(
        app,
        `INSERT INTO plans (id, project_id, proposed_by, proposal, status, task_ids, created_at)
        SELECT 'plan_1', project_id, 'x', '{}', 'weird', '[]', 0 FROM tasks`,
      ),
    ).rejects.toThrow(/plans_status_known|plans\.status/)
    await update(app, `UPDATE tasks SET status = 'REVIEW'`)
  })

  test('[D21] rows from before the rule are kept, do not hinder the start, and can be put right', async () => {
    const before = capabilities.map((capability) => ({ ...capability, migrations: beforeTheRule(capability.migrations) }))
    const app = await openTestApp({ capabilities: before, ...(await emptyDatabase()) })
    onTestFinished(() => app.close().catch(() => {}))
    await app.task()
    await update(app, `UPDATE tasks SET status = 'weird'`)
    await app.app.close()
    const engine = await openEngine(
      app.database,
      capabilities.map(({ name, migrations = [], values }) => ({ owner: name, migrations, values })),
    )
    onTestFinished(() => engine.close())
    const statuses = async () => (await sql<{ status: string }>`SELECT status FROM tasks`.execute(tables(engine.view))).rows
    const set = (status: string) => engine.write(async (tx) => void (await sql`UPDATE tasks SET status = ${status}`.execute(tables(tx))))
    expect(await statuses()).toEqual([{ status: 'weird' }])
    expect(await engine.check()).toMatchObject({ ok: false, problems: [expect.stringMatching(/tasks\.status.*"weird"/)] })
    await expect(set('odd')).rejects.toThrow()
    await set('BACKLOG')
    expect(await statuses()).toEqual([{ status: 'BACKLOG' }])
    expect(await engine.check()).toEqual({ ok: true, problems: [] })
  })

  test('[D22] a deep look names the columns, the values and how many rows have them', async ({ app }) => {
    await app.task()
    await app.task()
    await makeStrange(app, 'tasks', 'status')
    await makeStrange(app, 'agents', 'role')
    expect(await app.owner.call('system_health')).toMatchObject({ ok: true })
    const { ok, notices } = await app.owner.call('system_health', { deep: true })
    expect([ok, notices]).toEqual([false, [expect.stringMatching(/^tasks\.status: 2 rows have "weird".*BACKLOG/)]])
  })

  test('[D22] it names text that should be JSON and is not', async ({ app }) => {
    await app.task()
    await makeStrange(app, 'tasks', 'acceptance_criteria', '{nojson')
    const { ok, notices } = await app.owner.call('system_health', { deep: true })
    expect([ok, notices]).toEqual([false, ['tasks.acceptance_criteria: 1 row has "{nojson", which is no JSON']])
  })

  test('[K36] what is asked for by its id and holds such a value is refused, and the value named', async ({ app }) => {
    const [{ id: task_id }, other] = [await app.task(), await app.task()]
    await makeStrange(app, 'tasks', 'acceptance_criteria', '{nojson')
    await update(app, `UPDATE tasks SET acceptance_criteria = '[]' WHERE id = '${other.id}'`)
    for (const tool of ['task_get', 'task_context']) {
      expect(await app.owner.refused(tool, { task_id })).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('task.acceptance_criteria is "{nojson"'),
      })
      expect(await app.owner.call(tool, { task_id: other.id })).toMatchObject({ task: { id: other.id } })
    }
    for (const { table, column } of KNOWN.filter(({ table }) => !['people', 'tokens'].includes(table)))
      await makeStrange(app, table, column)
    for (const tool of ['task_get', 'task_context'])
      expect(await app.owner.refused(tool, { task_id })).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('task.status is "weird"'),
      })
  })

  test('[K35] every list shows such a row as unreadable, and the others as they are', async ({ app }) => {
    const [first] = [await app.task(), await app.task()]
    await app.agent('worker')
    await makeStrange(app, 'tasks', 'task_type')
    await update(app, `UPDATE tasks SET task_type = 'AUTO' WHERE number > 1`)
    const { tasks, unreadable } = await app.owner.call('task_list')
    expect(tasks).toMatchObject([{ handle: 'T-2' }])
    expect(unreadable).toEqual([expect.stringMatching(/^T-1: task_type is "weird"/)])
    expect(first.handle).toBe('T-1')
    // Whoever has no known profile is refused, and rightly so.
    for (const { table, column } of KNOWN.filter(({ table }) => !['people', 'tokens'].includes(table)))
      await makeStrange(app, table, column)
    const lists = app.app.registry.tools.filter(({ name, look, inputJson }) => name.endsWith('_list') && look && !inputJson.required)
    for (const { name } of lists) {
      const answer = await app.owner.invoke(name, {})
      expect([name, answer.ok || answer.error.code]).toEqual([name, true])
    }
  })
})

/** And without what came later: the position of a migration is part of its name. */
function beforeTheRule(migrations: Migration[] = []): Migration[] {
  const rule = migrations.findIndex(({ name }) => name.startsWith('known-'))
  return rule < 0 ? migrations : migrations.slice(0, rule)
}

/** On a server the others get copies of one that has all migrations. */
async function emptyDatabase(): Promise<{ database?: string }> {
  const server = inject('postgres')
  if (!server) return {}
  const name = `values-${process.pid}`
  onTestFinished(() => dropDatabase(server, name))
  return { database: await createDatabase(server, name) }
}
