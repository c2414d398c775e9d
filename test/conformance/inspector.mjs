// The official Inspector as a client of the shipped daemon, once for each protocol era.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const STRICT_ERRORS = 6
const LIMIT_MS = 60_000

/** `shows` is what a right answer must hold: an exit code of 0 alone would also stand for an empty one. */
const CALLS = [
  { method: 'tools/list', args: ['--strict'], shows: ({ tools }) => tools.some(({ name }) => name === 'task_create') },
  {
    method: 'tools/call',
    args: ['--tool-name', 'agent_me'],
    shows: ({ structuredContent, isError }) => !isError && structuredContent.kind === 'person',
  },
  { method: 'resources/list', args: [], shows: ({ resources }) => resources.some(({ uri }) => uri === 'signalbox://me') },
  { method: 'prompts/list', args: [], shows: ({ prompts }) => prompts.some(({ name }) => name === 'worker') },
]

/** @returns {Promise<{ passed: number, failed: string[], expected: number }>} */
export async function inspect(era, tools, { url, token }) {
  const home = mkdtempSync(join(tmpdir(), 'signalbox-inspector-'))
  const verdict = { passed: 0, failed: [], expected: 0 }
  try {
    for (const { method, args, shows } of CALLS) {
      const { code, out, errors } = await call(era, tools, home, url, token, ['--method', method, ...args])
      const problem = code === 0 ? problemWith(out, shows) : code === STRICT_ERRORS ? 'schemas that are not portable' : `exit code ${code}`
      if (!problem) verdict.passed++
      else verdict.failed.push(`${method}: ${problem}\n${errors.split('\n').slice(-20).join('\n')}`)
      const summary = /^\d+ errors?, \d+ warnings? across .*$/m.exec(errors)?.[0]
      if (summary) console.log(`  ${method} --strict: ${summary}`)
    }
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
  return verdict
}

async function call(era, { node, inspector }, home, url, token, args) {
  const fixed = ['--transport', 'http', '--header', `Authorization: Bearer ${token}`, '--protocol-era', era, '-q', '--format', 'json']
  const child = spawn(node, [inspector, '--cli', `${url}/mcp`, ...fixed, ...args], {
    env: { ...process.env, HOME: home },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: LIMIT_MS,
  })
  let out = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text))
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text))
  const [code, signal] = await once(child, 'close')
  return { code: code ?? signal, out, errors }
}

function problemWith(out, shows) {
  try {
    return shows(JSON.parse(out).result) ? undefined : `not the answer that was expected: ${out.slice(0, 300)}`
  } catch (error) {
    return `no readable answer (${error.message}): ${out.slice(0, 300)}`
  }
}
