import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { INITIALIZE } from '../mcp/raw.ts'

test('[S17] the pipe sends its token into no folder that others can write to', async () => {
  const daemon = new TestDaemon()
  const planted = mkdtempSync(join(tmpdir(), 'planted-'))
  const folder = join(planted, `signalbox-${userInfo().uid}`)
  mkdirSync(folder)
  chmodSync(folder, 0o777)
  const hello = JSON.stringify({ jsonrpc: '2.0', id: 1, ...INITIALIZE })
  const { stdout, stderr } = await daemon.cli(['mcp', '--no-start'], `${hello}\n`, {
    XDG_RUNTIME_DIR: planted,
    SIGNALBOX_TOKEN: 'sbx_person_x',
  })
  expect(stderr).toContain('does not send its token there')
  expect(JSON.parse(stdout)).toMatchObject({ id: 1, error: { message: expect.stringContaining('not a folder of yours alone') } })
  rmSync(planted, { recursive: true })
  await daemon.remove()
})

test('[S12] when no daemon of ours runs, whoever has its port hears no token', async () => {
  const daemon = await TestDaemon.start()
  const port = Number(new URL(daemon.url).port)
  await daemon.end('SIGKILL')
  const heard: unknown[] = []
  const stranger = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.end('{"ok":true,"result":{}}')
  })
  await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve))
  const { code, stderr } = await daemon.cli(['task', 'list'])
  expect([code, heard]).toEqual([7, []])
  expect(stderr).toContain('No Signalbox answers')
  stranger.close()
  await daemon.remove()
})

/** Two daemons, and the shell of an agent of the first: its environment names that one, the state folder the other. */
async function shellOfTheFirst() {
  const [first, second] = [await TestDaemon.start(), await TestDaemon.start()]
  const { token, agent_id } = await first.call('agent_invite', { role: 'worker', name: 'ann' })
  const env = { SIGNALBOX_URL: `${first.url}/mcp`, SIGNALBOX_TOKEN: token }
  const remove = () => Promise.all([first.remove(), second.remove()])
  return { first, second, env, agent_id, remove }
}

test('[E57] in the shell of an agent the CLI calls the daemon of SIGNALBOX_URL, with the token of that environment', async () => {
  const { second, env, agent_id, remove } = await shellOfTheFirst()
  const { HOME } = process.env
  const alone = await second.cli(['agent', 'me', '--json'], '', { ...env, SIGNALBOX_HOME: '', HOME: HOME ?? '/' })
  expect([alone.code, JSON.parse(alone.stdout).id]).toEqual([0, agent_id])
  const tokenFile = join(second.home, 'token-of-ann')
  writeFileSync(tokenFile, `${env.SIGNALBOX_TOKEN}\n`, { mode: 0o600 })
  const fromFile = { SIGNALBOX_URL: env.SIGNALBOX_URL, SIGNALBOX_TOKEN_FILE: tokenFile, SIGNALBOX_HOME: '', HOME: HOME ?? '/' }
  expect(JSON.parse((await second.cli(['agent', 'me', '--json'], '', fromFile)).stdout).id).toBe(agent_id)
  const gone = await second.cli(['agent', 'me'], '', { ...fromFile, SIGNALBOX_TOKEN_FILE: `${tokenFile}.gone` })
  expect([gone.code, gone.stderr]).toEqual([2, expect.stringContaining('There is no token in')])
  await remove()
})

test("[E57] an agent's token is sent to no other daemon, neither by the CLI nor by the pipe", async () => {
  const { first, second, env, remove } = await shellOfTheFirst()
  const heard: unknown[] = []
  const stranger = createServer((request, response) => {
    heard.push(request.headers.authorization)
    response.end('{"ok":true,"result":{}}')
  })
  await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve))
  const { port } = stranger.address() as { port: number }
  const byPort = await first.cli(['task', 'list'], '', { ...env, SIGNALBOX_PORT: String(port) })
  expect([byPort.code, heard]).toEqual([7, []])
  expect(byPort.stderr).toContain(`SIGNALBOX_URL names ${first.url}`)
  expect(byPort.stderr).toContain('SIGNALBOX_PORT')
  const byHome = await second.cli(['task', 'list'], '', env)
  expect([byHome.code, byHome.stderr]).toEqual([7, expect.stringContaining('SIGNALBOX_HOME')])
  const hello = JSON.stringify({ jsonrpc: '2.0', id: 1, ...INITIALIZE })
  const pipe = await second.cli(['mcp', '--no-start'], `${hello}\n`, env)
  expect(pipe.stderr).toContain(`SIGNALBOX_URL names ${first.url}`)
  expect(pipe.stdout).not.toContain('"result"')
  const ours = await first.cli(['mcp', '--no-start'], `${hello}\n`, env)
  expect(JSON.parse(ours.stdout)).toMatchObject({ id: 1, result: { serverInfo: { name: 'signalbox' } } })
  stranger.close()
  await remove()
})

test("[E57] without a token in it, an environment that names a daemon gets the owner's only for the owner's own daemon", async () => {
  const { first, second, remove } = await shellOfTheFirst()
  expect(await first.cli(['project', 'list'], '', { SIGNALBOX_URL: `${first.url}/mcp` })).toMatchObject({ code: 0 })
  const other = await second.cli(['project', 'list'], '', { SIGNALBOX_URL: `${first.url}/mcp` })
  expect([other.code, other.stdout]).toEqual([7, ''])
  await remove()
})

test('[F25] a stream that resumes with a cursor from before a restore gets what came after it', async () => {
  const daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
  await daemon.call('task_create', { title: 'One' })
  const backup = join(daemon.home, 'b.db')
  expect((await daemon.cli(['db', 'backup', backup])).code).toBe(0)
  for (let i = 0; i < 5; i++) await daemon.call('task_note', { task_id: 'T-1', body: 'lost by the restore' })
  const { cursor } = await daemon.call('task_list')
  await daemon.end()
  expect((await daemon.cli(['db', 'restore', backup])).code).toBe(0)
  await daemon.start()
  const ending = new AbortController()
  const headers = { authorization: `Bearer ${daemon.token}`, 'last-event-id': cursor }
  const response = await fetch(`${daemon.url}/api/events`, { headers, signal: ending.signal })
  await daemon.call('task_note', { task_id: 'T-1', body: 'after it' })
  let heard = ''
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    heard += Buffer.from(chunk).toString()
    if (heard.includes('task.noted')) break
  }
  expect(heard.match(/^event: /gm)).toHaveLength(1)
  ending.abort()
  await daemon.remove()
})

test('[E5] an optional list is a flag that can be repeated, a folder may be relative, and a noun explains itself', async () => {
  const daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
  await daemon.call('task_create', { title: 'One' })
  const waited = await daemon.cli(['task', 'wait', 'T-1', '--wait-for-status', 'REVIEW', '--wait-for-status', 'BACKLOG', '--json'])
  expect(JSON.parse(waited.stdout)).toMatchObject({ code: 'ALREADY_AT_STATUS' })
  expect((await daemon.cli(['repo', 'add', '.'])).stderr).not.toContain('absolute')
  expect((await daemon.cli(['task', '--help'])).stdout).toContain('signalbox task create')
  expect((await daemon.cli(['task', 'create'])).stderr).toContain('title: is missing')
  await daemon.remove()
})
