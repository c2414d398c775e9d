import { EventEmitter, once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test } from 'vitest'
import { until } from '../../testing/signals.ts'
import { createNotifier } from './index.ts'

const NEVER = new AbortController().signal

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'signalbox-notify-'))
  onTestFinished(() => rmSync(path, { recursive: true, force: true }))
  return path
}

async function server(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const listening = createServer(answer)
  await once(listening.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    listening.closeAllConnections()
    listening.close()
  })
  return `http://127.0.0.1:${(listening.address() as AddressInfo).port}/hook`
}

test('[M18] a command gets its arguments as they are, the letter on its input, and nothing of the daemon', async () => {
  const out = join(folder(), 'out')
  const program = `require('fs').writeFileSync(process.argv[1], process.argv[2] + '\\n' + require('fs').readFileSync(0) + Object.keys(process.env).sort())`
  const notifier = createNotifier({ PATH: process.env.PATH, DISPLAY: ':0', SIGNALBOX_HOME: '/x', DATABASE_URL: 'x', GITHUB_TOKEN: 'x' })
  await notifier.run([process.execPath, '-e', program, out, '$HOME; echo'], '{"a":1}\n', NEVER)
  expect(readFileSync(out, 'utf8')).toBe('$HOME; echo\n{"a":1}\nDISPLAY,PATH')
})

test('[M18] one that fails, or is not there, says so', async () => {
  const notifier = createNotifier(process.env)
  await expect(
    notifier.run([process.execPath, '-e', 'console.error("no bell"); process.exit(3)'], 'x'.repeat(1_000_000), NEVER),
  ).rejects.toThrow('The command ended with 3: no bell')
  await expect(notifier.run(['/nowhere/at-all'], '', NEVER)).rejects.toThrow('ENOENT')
})

test('[M18] one that takes too long ends with what it started', async () => {
  const out = join(folder(), 'pid')
  const inner = `require('fs').writeFileSync(${JSON.stringify(out)}, String(process.pid)); setInterval(() => {}, 1000)`
  const program = `require('child_process').spawn(process.execPath, ['-e', ${JSON.stringify(inner)}]); setInterval(() => {}, 1000)`
  const stop = new AbortController()
  const running = createNotifier(process.env).run([process.execPath, '-e', program], '', stop.signal)
  const ended = expect(running).rejects.toThrow('The command was ended')
  const pid = () => Number(readFileSync(out, { encoding: 'utf8', flag: 'a+' }))
  await until(() => pid() > 0)
  stop.abort()
  await ended
  await until(() => !isAlive(pid()))
  await expect(createNotifier(process.env, 50).run([process.execPath, '-e', 'setInterval(() => {}, 1000)'], '', NEVER)).rejects.toThrow(
    'ended',
  )
})

test('[M18] a webhook gets JSON with the key, and must take it itself', async () => {
  const seen: { body: string; key: unknown }[] = []
  const url = await server(async (request, response) => {
    seen.push({ body: await text(request), key: request.headers['idempotency-key'] })
    response.end('ok')
  })
  const notifier = createNotifier(process.env)
  await notifier.post(url, { a: 'ä' }, 'mail_1', NEVER)
  expect(seen).toEqual([{ body: '{"a":"ä"}', key: 'mail_1' }])
  const broken = await server((_request, response) => response.writeHead(500).end())
  await expect(notifier.post(broken, {}, 'x', NEVER)).rejects.toThrow('answered 500')
  const elsewhere = await server((_request, response) => response.writeHead(307, { location: url }).end())
  await expect(notifier.post(elsewhere, {}, 'x', NEVER)).rejects.toThrow()
  expect(seen).toHaveLength(1)
})

test('[M18] one that never answers is given up when its time is over, also when the collector ran meanwhile', async () => {
  const asked = new EventEmitter()
  const arrived = once(asked, 'request')
  const silent = await server(() => asked.emit('request'))
  const given = expect(createNotifier(process.env, 300).post(silent, {}, 'x', NEVER)).rejects.toThrow()
  await arrived
  collect()
  await given
})

/** On Node 20 a time limit that nothing but a combined signal holds goes with the garbage, and never comes. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let i = 0; i < 5; i++) gc()
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // One that nobody has taken leave of yet is dead all the same.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
