import { closeSync, createReadStream, existsSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type ExportPage, endLine, headerLine, verifyExport } from '../db/audit-export.ts'
import { headOf, parseHead, type Seal } from '../db/seal.ts'
import type { Verdict } from '../db/verify.ts'
import { Refusal, UsageError } from '../kernel/error.ts'
import { callTool, show } from '../surfaces/cli.ts'
import { cliCommand, reach } from './cli-command.ts'

const HELP: Record<string, string> = {
  verify: `signalbox audit verify: check the log and the audit against their seals. Exits with 1 when something does not fit.

  --expect HEAD    a head that was noted elsewhere: also finds a chain that was rewritten or cut
  --file FILE      check an export instead, without a daemon
  --json           print JSON
`,
  export: `signalbox audit export: write the sealed log and audit as JSON lines, secrets left out; docs/audit.md tells how to verify them.

  --out FILE       where to; it appears when it is whole and never overwrites (default: audit-<time>.jsonl here; - is stdout)
  --after N        only what was sealed after seal N
`,
}

/** The verbs that need more than one call or a file; the others are plain tools. */
export async function auditCommand(args: string[]): Promise<void> {
  const [verb = '', ...rest] = args
  const help = HELP[verb]
  if (!help) return cliCommand(['audit', ...args])
  if (rest.includes('--help') || rest.includes('-h')) return void process.stdout.write(help)
  return verb === 'verify' ? verify(rest) : exportTo(rest)
}

async function verify(args: string[]): Promise<void> {
  const options = { expect: { type: 'string' }, file: { type: 'string' }, json: { type: 'boolean' } } as const
  const { expect, file, json = false } = parseArgs({ args, options }).values
  const verdict = file === undefined ? await callTool(reach, 'audit_verify', { expect }, json) : await verifyFile(resolve(file), expect)
  show(verdict as Record<string, unknown>, json)
  if (!verdict.ok) process.exitCode = 1
}

async function verifyFile(path: string, expect: string | undefined): Promise<Verdict> {
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`)
  try {
    return await verifyExport(createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }), expect)
  } catch (error) {
    throw new UsageError(error instanceof Refusal ? `${error.body.message} ${error.body.hint}` : `${path}: ${(error as Error).message}`)
  }
}

async function exportTo(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { out: { type: 'string' }, after: { type: 'string' } } })
  const after = Number(values.after ?? 0)
  if (!Number.isSafeInteger(after) || after < 0) throw new UsageError('--after takes the number of a seal.')
  if (values.out === '-') {
    stopWithTheReader()
    return void (await writeExport(after, print))
  }
  const path = resolve(values.out ?? `audit-${new Date().toISOString().replace(/[:.]/g, '-')}.jsonl`)
  const head = await inOneStep(path, (write) => writeExport(after, write))
  process.stdout.write(
    `Exported to ${path}\nIts head: ${head ?? 'none, nothing is sealed yet'}\nVerify it with: signalbox audit verify --file ${path}\n`,
  )
}

type Write = (text: string) => void | Promise<void>

/** Up to where the chain ends now: reading it is audited too, so a moving end could be chased for ever. */
async function writeExport(after: number, write: Write): Promise<string | null> {
  let page = await exportPage(after)
  const goal = parseHead(page.head ?? '')?.number ?? 0
  await write(`${headerLine(after, page.previous)}\n`)
  let seal: string | undefined
  for (;;) {
    for (const line of page.lines) await write(`${line}\n`)
    seal = page.lines.at(-1) ?? seal
    if (page.last >= goal || !page.lines.length) break
    page = await exportPage(page.last)
  }
  const { number, hash } = seal ? (JSON.parse(seal) as { seal: Seal }).seal : {}
  const head = number && hash ? headOf({ number, hash }) : null
  await write(`${endLine(head)}\n`)
  return head
}

async function exportPage(after: number): Promise<ExportPage> {
  return (await callTool(reach, 'audit_export', { after }, false)) as unknown as ExportPage
}

/** Ours alone to read, and under its name only when it is whole and on disk. */
async function inOneStep<T>(path: string, fill: (write: Write) => Promise<T>): Promise<T> {
  if (existsSync(path)) throw new UsageError(`${path} is already there; an export never overwrites.`)
  const partial = `${path}.partial-${process.pid}`
  process.once('exit', () => rmSync(partial, { force: true }))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
  try {
    const file = openSync(partial, 'wx', 0o600)
    const value = await fill((text) => void writeSync(file, text))
    fsyncSync(file)
    closeSync(file)
    linkSync(partial, path)
    return value
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code ? new UsageError(`Nothing was exported: ${(error as Error).message}.`) : error
  }
}

function print(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

/** Whoever reads may have heard enough, or the disk behind it may be full. */
function stopWithTheReader(): void {
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') process.stderr.write(`signalbox: the export could not be written: ${error.message}\n`)
    process.exit(error.code === 'EPIPE' ? 0 : 1)
  })
}
