import { describe, expect, onTestFinished } from 'vitest'
import { z } from 'zod'
import { tables } from '../../db/tables.ts'
import { refuse } from '../../kernel/error.ts'
import { defineTool } from '../../kernel/tool.ts'
import { type Caller, openTestApp, type TestApp, test } from '../../testing/app.ts'
import { withProbe } from '../../testing/probe.ts'
import { faulty, until } from '../../testing/signals.ts'

const base = { title: 'Probe', description: 'A tool of a test.', profile: 'viewer' } as const
const Given = z.strictObject({ words: z.string().max(100).default('private words'), refused: z.boolean().default(false) })
const fail = async (_: unknown, { refused }: z.output<typeof Given>) => {
  if (refused) return refuse('CONFLICT', 'no')
  throw new Error('the roof fell in')
}
const broken = defineTool({ ...base, name: 'probe_break', input: Given, output: z.strictObject({}), impact: 'write', run: fail })
const grave = defineTool({
  ...base,
  name: 'probe_grave',
  input: Given,
  output: z.strictObject({}),
  impact: 'write',
  critical: true,
  run: fail,
})
const look = defineTool({ ...base, name: 'probe_look', input: Given, output: z.strictObject({}), impact: 'read', look: fail })

interface Site {
  app: TestApp
  worker: Caller
  supervisor: Caller
  alone: Caller
}

/** A worker and the supervisor of its epic, and one that is in none. */
async function open(): Promise<Site> {
  const app = await openTestApp({ capabilities: withProbe([broken, grave, look]) })
  onTestFinished(() => app.close())
  const [worker, supervisor, alone] = [await app.agent('worker'), await app.agent('supervisor'), await app.agent('worker')]
  const epic = `epic_${'0'.repeat(36)}`
  await app.app.engine.write((tx) =>
    tables<{ agents: { id: string; epic_id: string } }>(tx)
      .updateTable('agents')
      .set({ epic_id: epic })
      .where('id', 'in', [worker.id, supervisor.id])
      .execute(),
  )
  return { app, worker, supervisor, alone }
}

/** As many as there will be: an effect for each failed call has been done by then. */
async function letters(app: TestApp, caller: Caller, escalated: number) {
  await until(async () => (await escalations(app)).length === escalated)
  return (await caller.call('mail_inbox', { include_read: true })).letters
}

const escalations = (app: TestApp) =>
  tables<{ escalations: { call_id: string; told: number; at: number } }>(app.app.engine.view)
    .selectFrom('escalations')
    .selectAll()
    .execute()

describe('a call that failed', () => {
  test('[ESC1] is told to the supervisor of the epic, with code, message, stack and call, and without what it was given', async () => {
    const { app, worker, supervisor } = await open()
    await worker.refused('probe_break')
    const [letter, ...more] = await letters(app, supervisor, 1)
    const [{ id: call }] = (await app.owner.call('audit_tail', { tool: 'probe_break' })).calls
    expect(more).toEqual([])
    expect(letter).toMatchObject({ from_id: 'system', importance: 'high', subject: `${worker.handle}: probe_break failed` })
    for (const part of [
      'Tool: probe_break',
      'Code: INTERNAL_ERROR',
      'failed inside Signalbox',
      'the roof fell in',
      'escalation.test.ts',
      call,
    ])
      expect(letter.body).toContain(part)
    expect(letter.body).not.toContain('private words')
    expect((await app.owner.call('mail_inbox')).letters).toEqual([])
  })

  test('[ESC1] is told to the human where there is no supervisor, or where it is the supervisor that failed', async () => {
    const { app, alone, supervisor } = await open()
    await alone.refused('probe_break')
    await supervisor.refused('probe_break')
    const told = await letters(app, app.owner, 2)
    expect(told.map(({ subject }: { subject: string }) => subject).toSorted()).toEqual(
      [`${alone.handle}: probe_break failed`, `${supervisor.handle}: probe_break failed`].toSorted(),
    )
    expect((await supervisor.call('mail_inbox')).letters).toEqual([])
  })

  test('[ESC1] a look too, under the name that was used', async () => {
    const { app, worker, supervisor } = await open()
    await worker.refused('probe_look')
    expect(await letters(app, supervisor, 1)).toMatchObject([{ subject: `${worker.handle}: probe_look failed` }])
  })

  test('[ESC2] of a critical tool reaches the human too, with the prefix', async () => {
    const { app, worker, supervisor, alone } = await open()
    await worker.refused('probe_grave')
    expect(await letters(app, supervisor, 1)).toMatchObject([{ subject: `${worker.handle}: probe_grave failed` }])
    const critical = { subject: `⚠️ CRITICAL ${worker.handle}: probe_grave failed`, importance: 'urgent' }
    expect((await app.owner.call('mail_inbox')).letters).toMatchObject([critical])
    await alone.refused('probe_grave')
    expect((await letters(app, app.owner, 2)).length).toBe(2)
  })

  test('[ESC3] what was refused, and what a person met with, is told to nobody', async () => {
    const { app, worker, supervisor } = await open()
    await worker.refused('probe_break', { refused: true })
    await worker.refused('probe_look', { refused: true })
    await worker.refused('task_delete', { task_id: 'T-1' })
    await worker.refused('probe_break', { nobody: 1 })
    await app.owner.refused('probe_break')
    await worker.refused('probe_grave')
    expect(await letters(app, supervisor, 1)).toMatchObject([{ subject: `${worker.handle}: probe_grave failed` }])
    expect((await app.owner.call('mail_inbox')).letters.length).toBe(1)
  })

  test('[ESC4] the same again is told once a minute, and the next letter says how often it was not', async () => {
    const { app, worker, supervisor } = await open()
    for (let i = 0; i < 4; i++) await worker.refused('probe_break')
    await worker.refused('probe_look')
    expect((await letters(app, supervisor, 5)).length).toBe(2)
    expect((await escalations(app)).filter(({ told }) => told === 1).length).toBe(2)
    // As if all of that had been two minutes ago.
    await app.app.engine.write((tx) =>
      tables<{ escalations: { at: number } }>(tx)
        .updateTable('escalations')
        .set((eb) => ({ at: eb('at', '-', 120_000) }))
        .execute(),
    )
    await worker.refused('probe_break')
    const [last] = await letters(app, supervisor, 6)
    expect(last.body).toContain('It has failed in the same way 3 times since the last letter.')
  })

  test('[ESC5] is told although the daemon ended before it was, and then once', async () => {
    const { app, worker, supervisor } = await open()
    // The daemon has written down the failure and gets no further.
    app.app.kernel.parts.effects.wake = () => {}
    await worker.refused('probe_break')
    await app.reopen()
    const boss = { call: (tool: string) => app.app.kernel.invoke({ tool, input: {}, credential: supervisor, surface: 'http' }) }
    await until(async () => (await escalations(app)).length === 1)
    expect(await boss.call('mail_inbox')).toMatchObject({ ok: true, value: { letters: [{ from_id: 'system' }] } })
    const [row] = await escalations(app)
    await app.app.kernel.invoke({
      tool: 'escalation_send',
      input: { call_id: row?.call_id, critical: false },
      credential: 'system',
      surface: 'daemon',
    })
    expect(await boss.call('mail_inbox')).toMatchObject({ ok: true, value: { count: 1 } })
  })

  test('[ESC5] is told when storage is back', async () => {
    const { app, worker, supervisor } = await open()
    await app.owner.call('setting_update', { key: 'limits.retry_delay_ms', value: 1 })
    const { storage } = app.app.kernel.parts
    const away = faulty(storage, Array(5).fill('fails before'))
    app.app.kernel.parts.storage = away
    expect(await worker.refused('decision_log', { title: 'a', body: 'b' })).toMatchObject({ code: 'TRANSIENT_ERROR' })
    // Once and three times again, and the audit of it.
    expect(away.attempts).toBe(5)
    expect(await letters(app, supervisor, 1)).toMatchObject([{ subject: `${worker.handle}: decision_log failed` }])
    expect((await supervisor.call('mail_inbox')).letters[0].body).toContain('Code: TRANSIENT_ERROR')
  })
})
