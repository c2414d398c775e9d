// Bundled and run as a process of its own, which can be killed: `node migrating.mjs <location> <migrations> [statement at which it dies]`.
// The migrations come as a file, so that it begins at once: it need not load what else a capability is.
import { readFileSync } from 'node:fs'
import { openEngine } from '../../src/db/open.ts'

/** Statements of closed sets of values may be repeated. They are many: a death drawn among all would seldom come between two others. */
const OF_A_SET = /^(DROP|CREATE) TRIGGER|(DROP|ADD) CONSTRAINT/
const [location = '', file = '', dieAt] = process.argv.slice(2)
const sets = JSON.parse(readFileSync(file, 'utf8')) as { owner: string; migrations: { name: string; statements: string[] }[] }[]
let statements = 0

function* mortal(all: string[]): Generator<string> {
  for (const statement of all) {
    yield statement
    // Behind a statement: in front of the next one, or between the last one and the commit.
    if (!OF_A_SET.test(statement) && String(statements++) === dieAt) process.kill(process.pid, 'SIGKILL')
  }
}

console.log('begins')
const engine = await openEngine(
  location,
  sets.map(({ owner, migrations }) => ({
    owner,
    migrations: migrations.map(({ name, statements: all }) => ({ name, up: () => mortal(all) as Iterable<string> as string[] })),
  })),
)
await engine.close()
console.log(`${statements} statements`)
