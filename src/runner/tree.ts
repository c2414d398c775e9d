import { MARKER } from './spec.ts'
import { isThere, type Process, processes, withInEnvironment } from './system.ts'

/** Nobody is told when a process that is not its own child has gone, so while a tree is being ended it is looked at this often. */
const LOOK_MS = 25
/** What is stuck in the kernel cannot be ended by anyone. */
const GIVE_UP_MS = 15_000

export interface Tree {
  run: string
  /** Its root, as long as we know that it is the one we started. */
  root?: Pick<Process, 'pid' | 'started'>
}

/** TERM to each, KILL to what is there when its time is over, until nothing is. Resolves with what could not be ended. */
export async function endTree(tree: Tree, killAt: () => number): Promise<Process[]> {
  const asked = new Set<string>()
  const known = new Map<number, Process>()
  for (;;) {
    const found = await members(tree, known)
    const overdue = performance.now() - killAt()
    if (found.length === 0 || overdue > GIVE_UP_MS) return found
    for (const one of found) await (overdue >= 0 ? signal(one, 'SIGKILL') : askOnce(one, asked))
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

async function askOnce(one: Process, asked: Set<string>): Promise<void> {
  const name = `${one.pid} ${one.started}`
  if (!asked.has(name)) await signal(one, 'SIGTERM')
  asked.add(name)
}

/** Nothing is sent to a pid that has become somebody else's. */
export async function signal(one: Pick<Process, 'pid' | 'started'>, name: NodeJS.Signals): Promise<boolean> {
  if (!(await isThere(one))) return false
  try {
    return process.kill(one.pid, name)
  } catch {
    return false
  }
}

/** What lives of a tree: what descends from it, what did when we last looked, and what bears its marker wherever it has gone. */
async function members({ run, root }: Tree, known: Map<number, Process>): Promise<Process[]> {
  const all = (await processes()).filter((one) => one.pid !== process.pid)
  const marked = await withInEnvironment(`${MARKER}=${run}`, all)
  const ours = all.filter((one) => isSame(one, root) || isSame(one, known.get(one.pid)))
  const found = new Map([...marked, ...ours].map((one) => [one.pid, one]))
  let grown = -1
  while (grown !== found.size) {
    grown = found.size
    for (const one of all) if (found.has(one.parent)) found.set(one.pid, one)
  }
  known.clear()
  for (const [pid, one] of found) known.set(pid, one)
  return [...found.values()]
}

function isSame(one: Process, other: Pick<Process, 'pid' | 'started'> | undefined): boolean {
  return one.pid === other?.pid && one.started === other.started
}
