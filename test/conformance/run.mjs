// Official MCP conformance and the official Inspector, both protocol revisions, in one command:
//
//   node test/conformance/run.mjs            everything
//   node test/conformance/run.mjs --verbose  and what the suite itself prints
//
// Leg A is the shipped daemon, judged against a reviewed baseline (baseline-<revision>.yml): the suite asks for tools that no
// product has. Leg B is the same edge, authentication, transport and session store with those tools behind it, and no baseline.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT, seconds } from '../../scripts/bootstrap.mjs'
import { inspect } from './inspector.mjs'
import { judge, PASS_AGAINST_NOTHING, passing, readBaseline, readResults } from './judge.mjs'
import { startDaemon, startFixture } from './servers.mjs'
import { ensureTools } from './tools.mjs'

const REVISIONS = ['2025-11-25', '2026-07-28']
/** Nothing listens on the discard port. */
const NOBODY = 'http://127.0.0.1:9'
const LIMIT_MS = 180_000
const verbose = process.argv.includes('--verbose')
// What was started ends with this process, however it ends.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))

const tools = await ensureTools()
const { parse, stringify } = await import(pathToFileURL(join(tools.module('yaml'), 'dist/index.js')).href).then(({ default: yaml }) => yaml)
const requirements = Object.fromEntries(
  REVISIONS.map((revision) => [revision, parse(readFileSync(join(tools.requirements, `${revision}.yaml`), 'utf8'))]),
)
const work = mkdtempSync(join(tmpdir(), 'signalbox-conformance-'))
const rows = []
try {
  // Side by side: each has a server of its own, and none of them keeps more than one core busy.
  await Promise.all([
    leg('A daemon', startDaemon, (revision) => join(ROOT, `test/conformance/baseline-${revision}.yml`), inspectBoth),
    control().then(() => leg('B fixture', startFixture, () => join(ROOT, 'test/conformance/there-is-no-baseline.yml'))),
  ])
} finally {
  rmSync(work, { recursive: true, force: true })
}
summarise()

async function leg(name, start, baselineFile, more) {
  const server = await start()
  try {
    for (const revision of REVISIONS) {
      const baseline = readBaseline(baselineFile(revision), parse)
      const started = Date.now()
      const { results, code } = await conformance(`${name[0]}-${revision}`, `${server.proxied}/mcp`, revision, baseline)
      const verdict = judge(results, requirements[revision], baseline)
      // The suite's own verdict over the required scenarios must agree with ours.
      if (code !== 0) verdict.failed.push(`the suite itself ended with code ${code}`)
      record(name, revision, verdict)
      console.log(`  not counted: ${verdict.notCounted} checks that pass for any server, or without having tested anything`)
      console.log(`  not offered and not required: ${verdict.notOffered.passed} passed, ${verdict.notOffered.failed} failed`)
      console.log(`  ${seconds(started)}`)
    }
    await more?.(server)
  } finally {
    await server.stop()
  }
}

async function inspectBoth(server) {
  for (const era of ['legacy', 'modern']) {
    const started = Date.now()
    record('Inspector', era, await inspect(era, tools, server))
    console.log(`  ${seconds(started)}`)
  }
}

/** What passes although nobody answers must be exactly what is left out of every count. */
async function control() {
  const found = new Set()
  for (const revision of REVISIONS) {
    const { results } = await conformance(`nobody-${revision}`, `${NOBODY}/mcp`, revision, { failures: {} })
    for (const scenario of passing(results)) found.add(scenario)
  }
  const [now, known] = [[...found].sort().join(', '), PASS_AGAINST_NOTHING.join(', ')]
  const failed = now === known ? [] : [`these scenarios pass against a dead server: ${now}; never counted are: ${known}`]
  record('Control', 'no server', { passed: failed.length ? 0 : found.size, failed, expected: 0 })
}

async function conformance(name, url, revision, baseline) {
  const output = join(work, name)
  const expected = `${output}.yml`
  const required = new Set(requirements[revision].server)
  writeFileSync(expected, stringify({ server: Object.keys(baseline.failures).filter((key) => required.has(key.split(':')[0])) }))
  const child = spawn(
    tools.node,
    [tools.conformance, 'server', '--url', url, '--requirements', revision, '--expected-failures', expected, '-o', output],
    { stdio: ['ignore', 'pipe', 'pipe'], timeout: LIMIT_MS, cwd: work },
  )
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (printed += text))
  const [code, signal] = await once(child, 'close')
  if (verbose) console.log(printed)
  return { results: readResults(output, requirements[revision]), code: code ?? signal }
}

function record(leg, what, verdict) {
  rows.push({ leg, what, ...verdict })
  console.log(`${leg}, ${what}: ${verdict.passed} passed, ${verdict.failed.length} failed, ${verdict.expected} expected to fail`)
  for (const line of verdict.failed) console.error(`  UNEXPECTED ${line}`)
}

function summarise() {
  const line = (...cells) => cells.map((cell, i) => (i < 2 ? String(cell).padEnd(12) : String(cell).padStart(9))).join('')
  console.log(`\n${line('leg', 'revision', 'passed', 'failed', 'expected')}`)
  for (const { leg, what, passed, failed, expected } of rows) console.log(line(leg, what, passed, failed.length, expected))
  process.exitCode = rows.some(({ failed }) => failed.length > 0) ? 1 : 0
}
