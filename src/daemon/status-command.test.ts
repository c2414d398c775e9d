import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { fakeTerminal } from '../testing/terminal.ts'
import { statusCommand } from './status-command.ts'

/** A board with a review and the lead of an epic, and more waiting tasks than anybody counts. */
function answerOf(tool: string | undefined, { status: [status] = [''] }: { status?: string[] }): object {
  if (tool === 'system_health') return { version: '1', ok: true, uptime_seconds: 1, database: { engine: 'x', size_bytes: 1 }, notices: [] }
  if (tool === 'mail_inbox') return { unread_count: 1, letters: [{ id: 'mail_1', from: 'system', subject: 'Cannot start: T-1' }] }
  if (tool === 'work_get') return { work: { state: 'made' } }
  if (tool === 'repo_list') return { repos: [{ handle: 'web' }] }
  if (tool === 'setting_get') return { settings: [{ value: 'claude' }] }
  if (tool !== 'task_list') return { agents: [], effects: [] }
  const ofEpic = { attention: 'human', epic_id: 'epic_1', attention_detail: 'Look.', title: 'x' }
  const attention_steps = [{ tool: 'epic_finish', arguments: { epic_id: 'E-2' } }]
  if (status === 'IN_PROGRESS') return { tasks: [{ ...ofEpic, handle: 'T-8', status, lead: true, attention_steps }], next: null }
  if (status === 'REVIEW') return { tasks: [{ ...ofEpic, handle: 'T-9', status, lead: false }], next: null }
  const tasks = status === 'BACKLOG' ? [{ handle: 'T-1', title: 'x', status, attention: 'human' }] : []
  return { tasks, next: status === 'BACKLOG' ? '1' : null }
}

async function shown(): Promise<string> {
  const server = createServer(async (request, response) => {
    const input = JSON.parse(await text(request))
    response.end(JSON.stringify({ ok: true, result: answerOf(request.url?.split('/').at(-1), input) }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const reach = { version: '0', daemon: () => ({ url, token: 'x', why: '' }) }
  const terminal = fakeTerminal({ person: true })
  expect(await statusCommand([], { reach, terminal })).toBe(0)
  return terminal.stdout
}

test('[E50] what is too much to be counted has a +, and only that', async () => {
  expect(await shown()).toContain('1 REVIEW, 1 IN_PROGRESS, 10+ BACKLOG, 0 DONE\n')
})

test('[E50] work of an epic is decided about and not closed; a letter of Signalbox is not answered', async () => {
  const out = await shown()
  expect(out).toMatch(/To review\n[\s\S]*→ signalbox review decide T-9 approve\n[\s\S]*Epics that wait for you\n[\s\S]*T-8/)
  expect(out).not.toMatch(/signalbox task close T-9|signalbox start T-8/)
  expect(out).toContain('→ signalbox epic finish E-2\n')
  expect(out).toContain('signalbox mail read mail_1')
  expect(out).not.toContain('mail reply')
})
