import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capabilities } from '../../src/capabilities/index.ts'
import { VERSION } from '../../src/daemon/version.ts'
import { dialects } from '../../src/dialects/index.ts'
import { Registry } from '../../src/kernel/registry.ts'
import { openApi } from '../../src/surfaces/openapi.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, send } from './support.ts'

const registry = new Registry(capabilities, dialects)
const description = JSON.parse(JSON.stringify(openApi(registry, VERSION)))
const ajv = new Ajv2020({ strict: false, validateFormats: false }).addSchema(description, 'api')
const tools = registry.tools.filter((tool) => !tool.internal)
/** Described and answered with something else than JSON. */
const PLAIN = ['/api/events', '/metrics']

let daemon: TestDaemon
beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web shop' })
  for (const title of ['one', 'two']) await daemon.call('task_create', { title })
  await daemon.call('agent_invite', { role: 'worker', name: 'Ann' })
})
afterAll(() => daemon.remove())

const pointer = (...words: (string | number)[]) =>
  words.map((word) => `/${encodeURIComponent(String(word).replaceAll('~', '~0').replaceAll('/', '~1'))}`).join('')

/** The schema that the description gives for this answer; it must name the status. */
function describedAs(path: string, method: 'get' | 'post', status: number): ValidateFunction {
  const response = description.paths[path][method].responses[status]
  if (!response) throw new Error(`${method} ${path} answered ${status}, which is not described`)
  const at = response.$ref ?? `#${pointer('paths', path, method, 'responses', status)}`
  return ajv.compile({ $ref: `api${at}${pointer('content', 'application/json', 'schema')}` })
}

function expectToFit(path: string, method: 'get' | 'post', status: number, body: unknown): void {
  const fits = describedAs(path, method, status)
  expect({ path, status, fits: fits(body), errors: fits.errors }).toEqual({ path, status, fits: true, errors: null })
}

describe('what the daemon answers', () => {
  test('[DOC3] it gives its description to whoever has a token', async () => {
    const { status, json } = await send(daemon.url, { path: '/api/openapi.json', headers: bearer(daemon.token) })
    expect([status, json]).toEqual([200, description])
    expect((await send(daemon.url, { path: '/api/openapi.json' })).status).toBe(401)
  })

  test.for(tools.map((tool) => [tool.name, tool] as const))(
    '[DOC4] %s, called as in its example, answers as described',
    async ([name, tool]) => {
      const shortened = 'timeout_seconds' in (tool.inputJson.properties as object) ? { timeout_seconds: 0.001 } : {}
      const { status, ...body } = await daemon.post(name, { ...tool.example, ...shortened })
      expectToFit(`/api/tools/${name}`, 'post', status, body)
    },
  )

  test('[DOC4] a call that does not fit, has no token or no right is refused as described', async () => {
    const { token } = await daemon.call('agent_invite', { role: 'worker' })
    for (const [input, secret, expected] of [
      [{ nonsense: true }, daemon.token, 400],
      [{}, 'nobody', 401],
      [{ name: 'x' }, token, 403],
    ] as const) {
      const { status, ...body } = await daemon.post('project_create', input, secret)
      expect(status).toBe(expected)
      expectToFit('/api/tools/project_create', 'post', status, body)
    }
  })

  test('[DOC4] so does everything that can be got, with a token and without', async () => {
    const paths = Object.keys(description.paths).filter((path) => 'get' in description.paths[path])
    expect(paths.length).toBeGreaterThan(3)
    for (const path of paths) {
      const without = await send(daemon.url, { path })
      expectToFit(path, 'get', without.status, without.json)
      expect(without.status).toBe(description.paths[path].get.security?.length === 0 ? 200 : 401)
      if (PLAIN.includes(path)) continue
      const { status, json } = await send(daemon.url, { path, headers: bearer(daemon.token) })
      expect(status).toBe(200)
      expectToFit(path, 'get', status, json)
    }
  })

  test('[DOC4] what is no JSON is of the type that is described', async () => {
    for (const path of PLAIN) {
      const given = new AbortController()
      const response = await fetch(`${daemon.url}${path}`, { headers: { authorization: `Bearer ${daemon.token}` }, signal: given.signal })
      const [type] = Object.keys(description.paths[path].get.responses[200].content)
      expect([response.status, response.headers.get('content-type')?.split(';')[0]]).toEqual([200, type])
      given.abort()
    }
    const bad = await send(daemon.url, { path: '/api/events?after=nonsense', headers: bearer(daemon.token) })
    expectToFit('/api/events', 'get', bad.status, bad.json)
    const lost = await send(daemon.url, { path: '/api/events?task=T-999', headers: bearer(daemon.token) })
    expectToFit('/api/events', 'get', lost.status, lost.json)
  })
})
