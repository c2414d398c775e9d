import { describe, expect } from 'vitest'
import type { RunContext } from '../../kernel/tool.ts'
import { type TestApp, test } from '../../testing/app.ts'
import { record, type Said } from './index.ts'

const RUN = 'run_0000000000000000000000000000000000a1'

const agent = (body: string): Said => ({ turn: 1, kind: 'agent', body })

/** Again when the machine stood still for longer than a transaction may take. */
async function keep(app: TestApp, task: string, said: Said[], run = RUN): Promise<void> {
  const once = () => app.app.engine.write((tx) => record({ tx, now: Date.now() } as RunContext, { run, task }, said))
  await once().catch(() => once().catch(once))
}

const bodies = (page: { entries: { body: string }[] }) => page.entries.map((entry) => entry.body)

describe('a transcript', () => {
  test('[N1] is numbered without a gap and read in pages from either end, over all runs', async ({ app }) => {
    const task = await app.task()
    await keep(app, task.id, [agent('1'), agent('2')])
    await keep(app, task.id, [agent('3')])
    await keep(app, task.id, [agent('4')], RUN.replace('a1', 'a2'))
    const read = (more: object) => app.owner.call('transcript_read', { task_id: task.id, limit: 3, ...more })
    const oldest = await read({ order: 'oldest' })
    expect(oldest.entries.map((entry: { number: number }) => entry.number)).toEqual([1, 2, 3])
    expect(bodies(await read({ order: 'oldest', after: oldest.next }))).toEqual(['4'])
    const newest = await read({})
    expect(bodies(newest)).toEqual(['4', '3', '2'])
    expect(bodies(await read({ after: newest.next }))).toEqual(['1'])
  })

  test('[N2] keeps no secret, nothing without bound, nothing that cannot be stored, and says what it leaves out', async ({ app }) => {
    const task = await app.task()
    const secret = `sbx_agent_${'x'.repeat(43)}`
    await keep(app, task.id, [agent(`token ${secret}`), agent('a\0b\ud800'), agent('long '.repeat(10_000))])
    const [long, odd, token] = (await app.owner.call('transcript_read', { task_id: task.id })).entries
    expect(token.body).toBe('token [redacted]')
    expect(odd.body).toBe('a\ufffdb\ufffd')
    expect(long.body.length).toBeLessThan(16_500)
    expect(long.body).toMatch(/33616 more characters are not kept/)
    const many = Array.from({ length: 200 }, (_, i) => agent(String(i)))
    for (let i = 0; i < 100; i++) await keep(app, task.id, many)
    await keep(app, task.id, [agent('after')])
    const [last] = (await app.owner.call('transcript_read', { task_id: task.id })).entries
    expect(last).toMatchObject({ number: 20_000, kind: 'signalbox' })
    expect(last.body).toContain('not kept')
  })

  test('[N2] plain output is kept among the first 2,000 entries only, which is said once', async ({ app }) => {
    const task = await app.task()
    const lines = Array.from({ length: 500 }, (_, i): Said => ({ turn: 1, kind: 'program', body: `line ${i}` }))
    for (let i = 0; i < 5; i++) await keep(app, task.id, lines)
    await keep(app, task.id, [agent('still heard'), ...lines])
    const { entries } = await app.owner.call('transcript_read', { task_id: task.id })
    expect(entries[0]).toMatchObject({ number: 2_001, body: 'still heard' })
    expect(entries[1]).toMatchObject({ number: 2_000, kind: 'signalbox', body: expect.stringContaining('not kept') })
  })

  test('[N3] is searched for the words as they are typed', async ({ app }) => {
    const task = await app.task()
    await keep(app, task.id, [agent('Mended the COOKIE'), agent('100% done'), agent('a_b'), agent('axb 1000')])
    const search = async (words: string) => bodies(await app.owner.call('transcript_search', { task_id: task.id, words }))
    expect(await search('cookie')).toEqual(['Mended the COOKIE'])
    expect(await search('100%')).toEqual(['100% done'])
    expect(await search('a_b')).toEqual(['a_b'])
    expect(await search('\\')).toEqual([])
  })

  test('[N4] of a task is for people and for the agent of that task', async ({ app }) => {
    const [own, other] = [await app.task(), await app.task()]
    const worker = await app.worker(own.id)
    expect(await worker.call('transcript_read', { task_id: own.id })).toMatchObject({ entries: [] })
    for (const tool of ['transcript_read', 'transcript_search'])
      expect(await worker.refused(tool, { task_id: other.id, ...(tool === 'transcript_search' ? { words: 'x' } : {}) })).toMatchObject({
        code: 'PERMISSION_DENIED',
      })
  })
})
