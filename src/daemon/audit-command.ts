import { closeSync, createReadStream, existsSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { type ExportPage, endLine, headerLine, verifyExport } from '../db/audit-export.ts'
import { headOf, parseHead, type Seal } from '../db/seal.ts'
import type { Verdict } from '../db/verify.ts'
import { Refusal, UsageError } from '../kernel/error.ts'
import { call, type Reach, type Row } from '../surfaces/cli/call.ts'
import { asksForHelp } from '../surfaces/cli/flags.ts'
import { helpFor } from '../surfaces/cli/help.ts'
import { answering, callTool, runCli, showAnswer } from '../surfaces/cli/index.ts'
import { find } from '../surfaces/cli/names.ts'
import { withProgress } from '../surfaces/cli/progress.ts'
import { asJson } from '../surfaces/cli/show.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'

/** What these verbs take beside the flags of their tool. */
const MORE: Record<string, [string, string][]> = {
  verify: [['--file FILE', 'check an export instead, without a daemon']],
  export: [['--out FILE', 'where to; it appears when it is whole and never overwrites (default: audit-<time>.jsonl here; - is stdout)']],
}

interface Context {
  reach: Reach
  terminal: Terminal
}

/** The verbs that need more than one call or a file; the others are plain tools. Returns the exit code. */
export async function auditCommand(args: string[], context: Context): Promise<number> {
  const { reach, terminal } = context
  const [verb = '', ...rest] = args
  const more = Object.hasOwn(MORE, verb) ? MORE[verb] : undefined
  if (!more) return runCli(['audit', ...args], reach, terminal)
  if (asksForHelp(rest)) {
    terminal.out(helpFor(find('audit', verb), terminal, more))
    return 0
  }
  return answering(rest.includes('--json'), terminal, () => (verb === 'verify' ? verify(rest, context) : exportTo(rest, context)))
}

async function verify(args: string[], { reach, terminal }: Context): Promise<number> {
  const options = { expect: { type: 'string' }, file: { type: 'string' }, json: { type: 'boolean' } } as const
  const { expect, file, json = false } = parseArgs({ args, options }).values
  const check = () => verifyFile(resolve(file as string), expect) as Promise<unknown> as Promise<Row>
  const verdict = await (file === undefined
    ? callTool(reach, 'audit_verify', { expect }, terminal)
    : withProgress(terminal, `Verify ${file}`, check))
  await showAnswer('audit_verify', verdict, json, reach, terminal)
  return verdict.ok ? 0 : 1
}

async function verifyFile(path: string, expect: string | undefined): Promise<Verdict> {
  if (!existsSync(path)) throw new UsageError(`There is no file ${path}.`)
  try {
    return await verifyExport(createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }), expect)
  } catch (error) {
    throw new UsageError(error instanceof Refusal ? `${error.body.message} ${error.body.hint}` : `${path}: ${(error as Error).message}`)
  }
}

async function exportTo(args: string[], { reach, terminal }: Context): Promise<number> {
  const { values } = parseArgs({ args, options: { out: { type: 'string' }, after: { type: 'string' }, json: { type: 'boolean' } } })
  const after = Number(values.after ?? 0)
  if (!Number.isSafeInteger(after) || after < 0) throw new UsageError('--after takes the number of a seal.')
  const toStdout = values.out === '-'
  const path = resolve(values.out ?? `audit-${new Date().toISOString().replace(/[:.]/g, '-')}.jsonl`)
  const head = await withProgress(terminal, 'Export the audit', () =>
    toStdout ? writeExport(reach, after, print) : inOneStep(path, (write) => writeExport(reach, after, write)),
  )
  if (toStdout) return 0
  if (values.json) terminal.out(asJson({ file: path, head }, true))
  else
    terminal.out(
      `Exported to ${path}\nIts head: ${head ?? 'none, nothing is sealed yet'}\nVerify it with: signalbox audit verify --file ${path}\n`,
    )
  return 0
}

type Write = (text: string) => void | Promise<void>

/** Up to where the chain ends now: reading it is audited too, so a moving end could be chased for ever. */
async function writeExport(reach: Reach, after: number, write: Write): Promise<string | null> {
  let page = await exportPage(reach, after)
  const goal = parseHead(page.head ?? '')?.number ?? 0
  await write(`${headerLine(after, page.previous)}\n`)
  let seal: string | undefined
  for (;;) {
    for (const line of page.lines) await write(`${line}\n`)
    seal = page.lines.at(-1) ?? seal
    if (page.last >= goal || !page.lines.length) break
    page = await exportPage(reach, page.last)
  }
  const { number, hash } = seal ? (JSON.parse(seal) as { seal: Seal }).seal : {}
  const head = number && hash ? headOf({ number, hash }) : null
  await write(`${endLine(head)}\n`)
  return head
}

async function exportPage(reach: Reach, after: number): Promise<ExportPage> {
  return (await call(reach, 'audit_export', { after })) as unknown as ExportPage
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
