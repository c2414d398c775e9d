import { EXPLANATIONS } from './explanations.ts'
import { isMissed, type Row } from './harness.ts'

const HEADINGS = ['what', 'engine', 'clients', 'measured', 'limit', 'limit is', 'ratio', 'aim', '']

export function asTable(rows: Row[]): string {
  const lines = [HEADINGS, ...rows.map(cells)]
  const widths = HEADINGS.map((_, i) => Math.max(...lines.map((line) => (line[i] as string).length)))
  return lines.map((line) => line.map((cell, i) => pad(cell, widths[i] as number, i)).join('  ')).join('\n')
}

function pad(cell: string, width: number, column: number): string {
  return [2, 3, 4, 6].includes(column) ? cell.padStart(width) : cell.padEnd(width)
}

function cells(row: Row): string[] {
  return [
    row.what,
    row.engine,
    row.clients === undefined ? '' : String(row.clients),
    `${figure(row.measured)} ${row.unit}`,
    row.limit === undefined ? '' : `${figure(row.limit)} ${row.unit}`,
    row.limitOf,
    ratioOf(row),
    row.aim === undefined ? '' : `${row.aim.text}: ${isMissed(row) ? 'MISSED' : 'met'}`,
    row.note,
  ]
}

function ratioOf({ ratio, family }: Row): string {
  if (ratio === undefined) return ''
  return family === 'read' || family === 'write' ? `${Math.round(ratio * 100)} %` : `${ratio.toFixed(2)} ×`
}

function figure(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en-US')
  return value.toFixed(value >= 10 ? 1 : 2)
}

const FIGURES = '## Figures'
const PROFILING = '## What was found by profiling'

/** The document with one family as measured now. The others stay as an earlier run left them: each says where it was measured. */
export function asMarkdown(before: string, order: string[], rows: Row[], machine: Record<string, string>): string {
  const sections = sectionsOf(before)
  const [{ family }] = rows as [Row]
  sections.set(family, sectionOf(family, rows, machine))
  return [
    '# Performance',
    '',
    'Written by `npm run bench`; what explains it is in `bench/explanations.ts`. Do not edit it here.',
    '',
    '## How to read it',
    '',
    HOW_TO_READ,
    '',
    FIGURES,
    '',
    ...order.flatMap((family) => sections.get(family) ?? []),
    PROFILING,
    '',
    EXPLANATIONS.profile ?? '',
    '',
  ].join('\n')
}

/** By family, as `asMarkdown` has left them. */
function sectionsOf(document: string): Map<string, string> {
  const figures = document.split(`\n${FIGURES}\n`)[1]?.split(`\n${PROFILING}\n`)[0] ?? ''
  const found = figures.split(/^(?=### )/m).flatMap((text) => {
    const family = /^### (.+)\n/.exec(text)?.[1]
    return family === undefined ? [] : [[family, `${text.trimEnd()}\n`] as const]
  })
  return new Map(found)
}

function sectionOf(family: string, rows: Row[], machine: Record<string, string>): string {
  const table = [HEADINGS, HEADINGS.map((_, i) => ([2, 3, 4, 6].includes(i) ? '---:' : '---')), ...rows.map(cells)]
  const where = Object.entries(machine).map(([name, value]) => `${name} ${value}`)
  const explained = explanationOf(family, rows)
  return [
    `### ${family}`,
    '',
    `Measured on: ${where.join('; ')}.`,
    '',
    ...table.map((line) => `| ${line.join(' | ')} |`),
    '',
    ...(explained ? [explained, ''] : []),
  ].join('\n')
}

function explanationOf(family: string, rows: Row[]): string {
  const names = rows.filter(isMissed).map((row) => `${row.what}, ${row.engine}${row.clients ? `, ${row.clients} clients` : ''}`)
  const missed = names.length ? `**Missed: ${names.join('; ')}.** ` : ''
  return missed + (EXPLANATIONS[family] ?? (missed && 'Not explained yet.'))
}

const HOW_TO_READ = `Each figure stands beside its limit: what a program can reach at all that does only that one thing, on this machine, in this run.
Both were measured in short turns, one after the other, again and again, and the median is shown; so the **ratio** holds on another
machine, and while something else runs on this one, far better than the figures do. Each family of figures names the commit and the
machine of the run that measured it last: \`npm run bench -- --only setup\` measures one, and leaves the others as they are.

- *SDK echo*: the official MCP SDK's low-level server with as many tools, which answers with as many bytes from a table in memory. It
  knows no token, no permission, no database and no audit.
- *bare fsync loop*: a page written and forced to the disk, by one program that does nothing else.
- *bare node:http*: Node's own server without anything on top of it.

The daemon is the built one in a process of its own. Tool calls are MCP over HTTP as Claude Code sends them (2026-07-28), from as many
kept connections and under as many tokens as there are clients. The client is a few lines over a socket that send ready-made bytes, on
the second core: it is not the limit. PostgreSQL runs on the same two cores as the daemon and the client, so its figures are what one
small machine gives, not what a database server of its own would.

A durable write has been forced to the disk when its answer comes. Latencies are from the moment at which the change is sent to the
moment at which the waiting client has read its answer, so they hold the write itself.`
