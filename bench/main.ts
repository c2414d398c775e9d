import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { World } from './ground.ts'
import { isMissed, type Row } from './harness.ts'
import { describeMachine, ROOT } from './machine.ts'
import { ENGINES, readOptions } from './options.ts'
import { asMarkdown, asTable } from './report.ts'
import { bootRows } from './rows/boot.ts'
import { growthRows } from './rows/growth.ts'
import { lineRows } from './rows/line.ts'
import { mailRows } from './rows/mail.ts'
import { readRows } from './rows/read.ts'
import { runRows } from './rows/runs.ts'
import { setupRows } from './rows/setup.ts'
import { stdioRows } from './rows/stdio.ts'
import { streamRows } from './rows/stream.ts'
import { waitRows } from './rows/wait.ts'
import { writeRows } from './rows/write.ts'

/** Boot first: what is idle then has done nothing yet. */
const FAMILIES: Record<string, (world: World) => Promise<Row[]>> = {
  boot: bootRows,
  read: readRows,
  write: writeRows,
  mail: mailRows,
  wait: waitRows,
  stream: streamRows,
  stdio: stdioRows,
  runs: runRows,
  setup: setupRows,
  line: lineRows,
  growth: growthRows,
}

const options = optionsOrExit(process.argv.slice(2))
const loadBefore = loadavg()
const world = new World(options)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void world.close().finally(() => process.exit(130)))
const rows: Row[] = []
const PERFORMANCE = join(ROOT, 'docs/performance.md')
const isForTheRecord = !options.quick && options.engines.length === ENGINES.length && !options.profile
try {
  for (const [name, measure] of Object.entries(FAMILIES)) {
    if (options.only.length && !options.only.includes(name)) continue
    const began = performance.now()
    const found = await measure(world)
    rows.push(...found)
    // Each time: a run that is cut off leaves what it has.
    if (isForTheRecord) await write(found)
    if (!options.json) console.log(`${asTable(found)}\n(${name}: ${Math.round((performance.now() - began) / 1_000)} s)\n`)
  }
  const machine = await describeMachine(world, loadBefore)
  if (options.json) console.log(JSON.stringify({ machine, rows: rows.map((row) => ({ ...row, missed: isMissed(row) })) }, null, 2))
  else summarise(machine)
} finally {
  await world.close()
}

async function write(family: Row[]): Promise<void> {
  const before = existsSync(PERFORMANCE) ? readFileSync(PERFORMANCE, 'utf8') : ''
  writeFileSync(PERFORMANCE, asMarkdown(before, Object.keys(FAMILIES), family, await describeMachine(world, loadBefore)))
}

function optionsOrExit(args: string[]) {
  try {
    return readOptions(args, Object.keys(FAMILIES))
  } catch (error) {
    console.error(`bench: ${(error as Error).message}`)
    process.exit(2)
  }
}

function summarise(machine: Record<string, string>): void {
  console.log(asTable(rows))
  console.log(
    Object.entries(machine)
      .map(([name, value]) => `${name}: ${value}`)
      .join('\n'),
  )
  console.log(`${rows.filter(isMissed).length} of ${rows.filter((row) => row.aim).length} aims missed`)
}
