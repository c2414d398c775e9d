// A daemon without surfaces, to be killed: the real app on a real database. What it is to do comes as lines of JSON on its input.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { sql } from 'kysely'
import pg from 'pg'
import { Connection } from '../../../src/db/sqlite-connection.ts'
import { tables } from '../../../src/db/tables.ts'
import { openMarkApp, type Setup, settled, want } from './app.ts'
import { type Wanted, World } from './world.ts'

export interface Orders extends Setup {
  /** Dies at the n-th statement after it was ready. */
  death?: { at: number; when: 'before' | 'sent' | 'after' }
  /** Calls to make one after the other; then it waits until nothing is open, and ends. */
  script?: Wanted[][]
}

const orders = JSON.parse(process.argv[2] as string) as Orders
const world = new World(orders.world)
let statements = 0
let counting = false

function onStatement(text: string, when: 'before' | 'sent' | 'after', number: number): void {
  if (number !== orders.death?.at || when !== orders.death.when) return
  writeFileSync(join(orders.world, 'last-words'), text)
  process.kill(process.pid, 'SIGKILL')
}

function textOf(query: unknown): string {
  return typeof query === 'string' ? query : ((query as { text?: string; sql?: string }).text ?? (query as { sql: string }).sql)
}

/** Every statement of either driver passes here. */
function counted(prototype: object, method: string): void {
  const methods = prototype as Record<string, (...args: unknown[]) => unknown>
  const original = methods[method] as (...args: unknown[]) => unknown
  methods[method] = function (this: unknown, ...args: unknown[]) {
    if (!counting) return original.apply(this, args)
    const number = ++statements
    const text = textOf(args[0])
    onStatement(text, 'before', number)
    const result = original.apply(this, args)
    onStatement(text, 'sent', number)
    if (!(result instanceof Promise)) onStatement(text, 'after', number)
    else result.then(() => onStatement(text, 'after', number)).catch(() => {})
    return result
  }
}

counted(Connection.prototype, 'executeQuery')
counted(Connection.prototype, 'exec')
counted(pg.Client.prototype, 'query')

const app = await openMarkApp(orders)
counting = true
const say = (line: unknown) => process.stdout.write(`${JSON.stringify(line)}\n`)

if (orders.script) {
  for (const marks of orders.script) {
    await want(app, marks)
    world.append({ what: 'acked', names: marks.map((mark) => mark.name) })
  }
  await settled(app, 60_000)
  say({ statements })
  process.exit(0)
}

say({ ready: true })
for await (const line of createInterface({ input: process.stdin })) {
  const { marks, clock } = JSON.parse(line) as { marks?: Wanted[]; clock?: true }
  if (marks) {
    await want(app, marks)
    world.append({ what: 'acked', names: marks.map((mark) => mark.name) })
    say({ acked: true })
  }
  if (clock) {
    const { rows } = await sql<{ now: number }>`SELECT ${app.engine.facts.nowMs()} AS now`.execute(tables(app.engine.view))
    say({ process: Date.now(), database: Number(rows[0]?.now) })
  }
}
await app.close()
process.exit(0)
