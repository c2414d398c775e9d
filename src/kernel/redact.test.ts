import { describe, expect, test } from 'vitest'
import { fc } from '../testing/property.ts'
import { auditJson, redact, redactScreen, redactText, withoutSecrets } from './redact.ts'
import { canonicalJson } from './text.ts'

test('[K7] a secret that a terminal wraps at its edge is one too', () => {
  const secret = `sbx_agent_${'a'.repeat(40)}`
  expect(redactScreen(`${'.'.repeat(50)} ${secret.slice(0, 9)}\n${secret.slice(9)} ok`, 60)).toBe(`${'.'.repeat(50)} [redacted] ok`)
  expect(redactScreen(`${'.'.repeat(60)}\nnext\n${secret}`, 60)).toBe(`${'.'.repeat(60)}\nnext\n[redacted]`)
})

describe('redaction', () => {
  test.for([
    ['ours', `sbx_person_${'a'.repeat(43)}`],
    ['a bearer header', `Bearer ${'b'.repeat(20)}`],
    ['an OpenAI or Anthropic key', `sk-ant-${'c'.repeat(30)}`],
    ['a GitHub token', `ghp_${'d'.repeat(36)}`],
    ['a fine-grained GitHub token', `github_pat_${'e'.repeat(40)}`],
    ['an AWS key', 'AKIAABCDEFGHIJKLMNOP'],
    ['a Google key', `AIza${'f'.repeat(35)}`],
    ['a Slack token', `xoxb-${'1'.repeat(12)}`],
  ] as const)('[K7] %s is taken out of any text', ([, secret]) => {
    expect(redactText(`before ${secret} after`)).toBe('before [redacted] after')
    expect(JSON.stringify(redact({ a: [{ b: `x ${secret}` }] }))).not.toContain(secret)
  })

  test('[K7] a field that is called a secret is one, in every casing', () => {
    const keys = [
      'token',
      'access_token',
      'accessToken',
      'API_KEY',
      'apiKey',
      'x-api-key',
      'password',
      'clientSecret',
      'Authorization',
      'privateKey',
    ]
    for (const key of keys) expect({ key, value: redact({ [key]: 'hunter2' }) }).toEqual({ key, value: { [key]: '[redacted]' } })
    const kept = { token_id: 'token_1', title: 'the token', idempotency_key: 'k', tokens: 3, task_id: 'T-1' }
    expect(redact(kept)).toEqual(kept)
  })

  test('[K10] what a replay may show has null where the secret was', () => {
    expect(withoutSecrets({ agent_id: 'a', token: 's', nested: [{ secret: 's' }] })).toEqual({
      agent_id: 'a',
      token: null,
      nested: [{ secret: null }],
    })
  })

  test('[K7] the audit is valid JSON and capped, whatever it is given', () => {
    fc.assert(
      fc.property(fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary', maxLength: 20_000 })), (value) => {
        const text = auditJson(value)
        JSON.parse(text)
        expect(text.length).toBeLessThan(8_300)
      }),
    )
    for (const text of ['x', '"', '\\', '\n', '🙂']) expect(auditJson(text.repeat(50_000)).length).toBeLessThan(8_300)
    expect(auditJson(undefined)).toBe('null')
  })
})

test('[K9] the same input in another order is the same input', () => {
  const shuffled = fc.dictionary(fc.string(), fc.jsonValue()).chain((object) => {
    const entries = Object.entries(object)
    return fc.tuple(fc.constant(object), fc.shuffledSubarray(entries, { minLength: entries.length }))
  })
  fc.assert(
    fc.property(shuffled, ([object, entries]) => {
      expect(canonicalJson(Object.fromEntries(entries))).toBe(canonicalJson(object))
    }),
  )
})
