import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { refuse } from '../../kernel/error.ts'
import { until } from '../../testing/signals.ts'
import { fakeTerminal } from '../../testing/terminal.ts'
import { watch } from './watch.ts'

test('[E48] a daemon that has no time now is asked again, for a look and for the stream; another refusal ends it', async () => {
  let opened = 0
  let stream: ServerResponse | undefined
  const server = createServer((_, response) => {
    if (opened++) {
      stream = response.writeHead(200)
      stream.flushHeaders()
    } else response.writeHead(429).end(JSON.stringify({ error: { code: 'RATE_LIMITED', message: 'x' } }))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const reach = { version: '0', daemon: () => ({ url, token: 'x', why: '' }) }
  const answers = [
    () => {
      throw refuse('TRANSIENT_ERROR', 'x')
    },
    async () => {
      await until(() => stream !== undefined)
      stream?.write('id: 1\n')
      return { seen: 1 }
    },
    () => {
      throw refuse('RESOURCE_NOT_FOUND', 'gone')
    },
  ]
  const terminal = fakeTerminal()
  const watched = { title: 'w', json: true, look: async () => answers.shift()?.() ?? {}, draw: async () => '' }
  await expect(watch(watched, reach, terminal)).rejects.toThrow('gone')
  expect(terminal.stdout).toBe('{"seen":1}\n')
  expect(opened).toBe(2)
})
