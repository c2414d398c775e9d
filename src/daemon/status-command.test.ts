import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { fakeTerminal } from '../testing/terminal.ts'
import { statusCommand } from './status-command.ts'

const need = (kind: string, n: number) => ({
  kind,
  id: `${kind}_${n}`,
  handle: `T-${n}`,
  title: kind,
  detail: null,
  by: null,
  began_at: '',
  steps: [],
})

/** More of what is urgent than fits on a page: what is less so is on none. */
function answerOf(tool: string | undefined, { kinds }: { kinds?: string[] }): object {
  if (tool === 'system_health') return { version: '1', ok: true, uptime_seconds: 1, database: { engine: 'x', size_bytes: 1 }, notices: [] }
  if (tool === 'agent_list') return { agents: [] }
  const found = { review: 200, ready: 12 }
  return {
    needs: kinds ? [need('ready', 1_000)] : Array.from({ length: 200 }, (_, n) => need('review', n)),
    kinds: Object.entries(found).map(([kind, count]) => ({ kind, title: `All of ${kind}`, count })),
    tasks: { BACKLOG: 2_012, REVIEW: 200 },
    next: '1.1.x',
  }
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

test('[E50] of each kind some are shown, also when the first page is full, and how many there are', async () => {
  const out = await shown()
  expect(out).toMatch(/All of review \(200\)\n[\s\S]*T-7[\s\S]*… and 192 more: signalbox need list --kinds review\n/)
  expect(out).toMatch(/All of ready \(12\)\n[\s\S]*T-1000[\s\S]*… and 11 more: signalbox need list --kinds ready\n/)
  expect(out).toContain('200 REVIEW, 0 IN_PROGRESS, 2012 BACKLOG, 0 DONE\n')
})
