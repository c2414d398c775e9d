import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { fakeTerminal } from '../testing/terminal.ts'
import { statusCommand } from './status-command.ts'

/** A board with one review and more waiting tasks than anybody counts. */
function answerOf(tool: string | undefined, { status: [status] = [''] }: { status?: string[] }): object {
  if (tool === 'system_health') return { version: '1', ok: true, uptime_seconds: 1, database: { engine: 'x', size_bytes: 1 }, notices: [] }
  if (tool !== 'task_list') return { agents: [], effects: [] }
  const tasks = ['REVIEW', 'BACKLOG'].includes(status as string) ? [{ handle: 'T-1', title: 'x', status, attention: 'human' }] : []
  return { tasks, next: status === 'BACKLOG' ? '1' : null }
}

test('[E50] what is too much to be counted has a +, and only that', async () => {
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
  expect(terminal.stdout).toContain('1 REVIEW, 0 IN_PROGRESS, 10+ BACKLOG, 0 DONE\n')
})
