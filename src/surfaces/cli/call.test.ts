import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { fakeTerminal } from '../../testing/terminal.ts'
import type { Row } from './call.ts'
import { runCli } from './index.ts'

/** A daemon that answers what it was told to, and keeps what it was asked. */
async function answering(...answers: Row[]) {
  const asked: Row[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    asked.push(JSON.parse(body))
    response.end(JSON.stringify({ ok: true, result: answers.shift() }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { asked, reach: { version: '0', daemon: () => ({ url, token: 'x', why: '' }) } }
}

const decided = (status: string, more: Row = {}) => ({ status, merged: status === 'merged', cursor: 'c', resume: false, ...more })
const DECIDE = ['review', 'decide', 'T-1', 'approve']

test('[E56] a decision that is still being merged is waited for, as one call: it is decided once', async () => {
  const { asked, reach } = await answering(decided('pending', { resume: true }), decided('pending', { resume: true }), decided('merged'))
  expect(await runCli(DECIDE, reach, fakeTerminal())).toBe(0)
  expect(asked).toHaveLength(3)
  expect(asked[0]).toMatchObject({ task_id: 'T-1', decision: 'approve', idempotency_key: expect.any(String) })
  expect(asked[1]).toEqual(asked[0])
  expect(asked[2]).toEqual(asked[0])
})

test.for([
  ['merged', 0],
  ['changes_requested', 0],
  ['red', 1],
  ['conflict', 1],
  ['stuck', 1],
  ['pending', 8],
] as const)('[E56] review decide that ends with %s exits with %i, and prints the answer', async ([status, exit]) => {
  const { reach } = await answering(decided(status, { log: 'the last line' }))
  const terminal = fakeTerminal()
  expect(await runCli(DECIDE, reach, terminal)).toBe(exit)
  expect(JSON.parse(terminal.stdout)).toMatchObject({ status, log: 'the last line' })
})
