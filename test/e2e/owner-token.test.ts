import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { databaseOf, exchange, Line, Mcp, rows, Stream, socketOf } from './support.ts'

let daemon: TestDaemon
let owner: { token: string; token_id: string }

beforeAll(async () => {
  daemon = await TestDaemon.start()
})
afterAll(() => daemon.remove())
beforeEach(async () => {
  const { tokens } = await daemon.call('token_list')
  const current = tokens.filter((token: { status: string }) => token.status === 'active')
  expect(current).toHaveLength(1)
  owner = { token: daemon.token, token_id: current[0].id }
})

const staged = () => join(daemon.home, 'owner.token.next')
const accepted = async (token: string) => (await daemon.post('agent_me', {}, token)).status === 200
const living = () => rows(databaseOf(daemon), `SELECT id FROM tokens WHERE kind = 'person' AND ended_at IS NULL`)

test("[S2] rotating the owner's token replaces the file at once and ends the old token everywhere", async () => {
  const stream = await Stream.open(daemon)
  const mcp = await Mcp.begin(daemon)
  const line = await Line.begin(daemon, socketOf(daemon))
  const rotated = JSON.parse((await daemon.cli(['token', 'rotate', owner.token_id, '--yes', '--json'])).stdout)
  expect(rotated.token).not.toBe(owner.token)
  expect(readFileSync(join(daemon.home, 'owner.token'), 'utf8')).toBe(`${rotated.token}\n`)
  expect(existsSync(staged())).toBe(false)
  const old = await daemon.post('agent_me', {}, owner.token)
  expect([old.status, old.error.code]).toEqual([401, 'AUTH_STALE_TOKEN'])
  expect(old.error.message).toContain('rotated')
  expect((await mcp.rpc('tools/list')).status).toBe(401)
  expect((await line.rpc('tools/call', { name: 'agent_me', arguments: {} })).result.structuredContent.error.code).toBe('AUTH_STALE_TOKEN')
  await stream.ended
  expect((await daemon.cli(['agent', 'me'])).code).toBe(0)
  expect(await daemon.cli(['agent', 'me'], '', { SIGNALBOX_TOKEN: owner.token })).toMatchObject({
    code: 3,
    stderr: expect.stringContaining('AUTH_STALE_TOKEN'),
  })
})

test('[S2] the CLI that read the old token just before it was rotated finds the new one, and asks again', async () => {
  const { token } = await daemon.call('token_rotate', { token_id: owner.token_id })
  // As it is between the commit and the new file.
  writeFileSync(join(daemon.home, 'owner.token'), `${owner.token}\n`)
  writeFileSync(staged(), `${token}\n`, { mode: 0o600 })
  expect(await daemon.cli(['agent', 'me', '--json'])).toMatchObject({ code: 0, stderr: '' })
  writeFileSync(staged(), `sbx_person_${'n'.repeat(43)}\n`)
  expect(await daemon.cli(['agent', 'me'])).toMatchObject({ code: 3, stderr: expect.stringContaining('AUTH_STALE_TOKEN') })
  rmSync(staged())
  writeFileSync(join(daemon.home, 'owner.token'), `${token}\n`)
})

test('[S2] a rotation that crashed before its commit leaves the old token in force, and nothing behind', async () => {
  await daemon.end('SIGKILL')
  writeFileSync(staged(), `sbx_person_${'n'.repeat(43)}\n`, { mode: 0o600 })
  await daemon.start()
  expect(daemon.token).toBe(owner.token)
  expect(await accepted(owner.token)).toBe(true)
  expect(await accepted(`sbx_person_${'n'.repeat(43)}`)).toBe(false)
  expect(existsSync(staged())).toBe(false)
  expect(living()).toHaveLength(1)
})

test('[S2] a rotation that crashed after its commit is completed at the next start', async () => {
  const { token } = await daemon.call('token_rotate', { token_id: owner.token_id })
  await daemon.end('SIGKILL')
  writeFileSync(join(daemon.home, 'owner.token'), `${owner.token}\n`)
  writeFileSync(staged(), `${token}\n`, { mode: 0o600 })
  await daemon.start()
  expect(daemon.token).toBe(token)
  expect(await accepted(token)).toBe(true)
  expect(await accepted(owner.token)).toBe(false)
  expect(existsSync(staged())).toBe(false)
})

test('[S2] of rotations at the same time one wins, and the file has the token that holds', async () => {
  // On one connection and in one packet, so that the daemon takes them all up before the first has committed.
  const body = JSON.stringify({ token_id: owner.token_id })
  const head = `POST /api/tools/token_rotate HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${owner.token}\r\n`
  const request = (last: boolean) =>
    `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\nconnection: ${last ? 'close' : 'keep-alive'}\r\n\r\n${body}`
  const answers = await exchange(daemon, [0, 1, 2, 3].map((i) => request(i === 3)).join(''))
  const won = [...answers.matchAll(/"token":"(sbx_person_[\w-]+)"/g)].map((match) => match[1])
  expect(answers.match(/HTTP\/1.1 \d+/g)?.sort()).toEqual(['HTTP/1.1 200', ...Array(3).fill(expect.stringMatching(/ 401$| 409$/))])
  expect(won).toEqual([daemon.token])
  expect(await accepted(daemon.token)).toBe(true)
  expect(living()).toHaveLength(1)
  await daemon.end('SIGKILL')
  await daemon.start()
  expect([daemon.token]).toEqual(won)
})

test('[S2] a rotation repeated with its key changes nothing more', async () => {
  const first = await daemon.call('token_rotate', { token_id: owner.token_id, idempotency_key: 'k' })
  const again = await daemon.call('token_rotate', { token_id: owner.token_id, idempotency_key: 'k' }, first.token)
  expect(again).toEqual({ token: null, token_id: first.token_id })
  expect(daemon.token).toBe(first.token)
  await daemon.end()
  await daemon.start()
  expect(daemon.token).toBe(first.token)
})

test('[S2] a lost or foreign token file is replaced by a new token, and the old one ends', async () => {
  await daemon.end()
  writeFileSync(join(daemon.home, 'owner.token'), 'sbx_person_not-ours\n')
  await daemon.start()
  expect(daemon.token).toMatch(/^sbx_person_[\w-]{43}$/)
  expect(daemon.token).not.toBe(owner.token)
  expect(await accepted(daemon.token)).toBe(true)
  expect(await accepted(owner.token)).toBe(false)
})
