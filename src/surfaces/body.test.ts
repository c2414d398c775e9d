import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { jsonBody } from './body.ts'

const sent = (...chunks: Buffer[]) =>
  Object.assign(Readable.from(chunks), { headers: { 'content-type': 'application/json' } }) as unknown as IncomingMessage

test('[E1] a character may be cut between two chunks', async () => {
  const bytes = Buffer.from('{"title":"日本"}')
  expect(await jsonBody(sent(bytes.subarray(0, 11), bytes.subarray(11)))).toEqual({ title: '日本' })
})

test('[E1] what is not UTF-8 is refused, not stored as something else', async () => {
  const refused = jsonBody(sent(Buffer.concat([Buffer.from('{"title":"'), Buffer.from([0xff]), Buffer.from('"}')])))
  await expect(refused).rejects.toMatchObject({ body: { code: 'INVALID_INPUT', message: 'The body is not UTF-8.' } })
})
