import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { SYSTEM } from '../kernel/policy.ts'
import { test } from '../testing/app.ts'
import { EventStreams } from './sse.ts'

test('[F25] a reader that has left before its stream begins leaves nothing behind', async ({ app }) => {
  const { feed, engine } = app.app
  const streams = new EventStreams(feed, engine.ledger)
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    streams.close()
    server.close()
  })
  const asked = once(server, 'request') as Promise<[unknown, ServerResponse]>
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n')
  const [, response] = await asked
  const closed = once(response, 'close')
  client.destroy()
  await closed
  await streams.attach(response, SYSTEM, {}, feed.head)
  expect(streams.size).toBe(0)
})
