import { type ChildProcess, fork } from 'node:child_process'
import type { Command, Exec, Ran } from './exec.ts'

export interface Asked {
  id: number
  /** None: the one that was asked for before is to be stopped. */
  command?: Command
}

export interface Answered {
  id: number
  ran: Ran
}

/**
 * Git started by a small process that does nothing else. To fork copies the tables of all memory and stops the event loop meanwhile: in a
 * daemon of 150 MB that takes longer than most of what git does. It begins with the first command, and ends with us, however we end.
 */
export function startedBeside(entry: string): Exec {
  const waiting = new Map<number, (ran: Ran) => void>()
  let child: ChildProcess | undefined
  let last = 0

  const began = (): ChildProcess => {
    const one = fork(entry, [], {
      cwd: '/',
      env: {},
      execArgv: ['--max-semi-space-size=1'],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const lost = () => {
      if (child !== one) return
      child = undefined
      // What became of a command is not known. Whoever asked for it looks again, as after a death of our own.
      for (const id of [...waiting.keys()]) answer({ id, ran: { stdout: Buffer.alloc(0), failed: 'the process that starts git is gone' } })
    }
    one.on('message', (answered) => answer(answered as Answered))
    one.on('error', lost)
    one.on('exit', lost)
    return one
  }
  const answer = ({ id, ran }: Answered) => {
    waiting.get(id)?.(ran)
    waiting.delete(id)
    if (!waiting.size && child) holdOpen(child, false)
  }

  return (command, signal) =>
    new Promise((resolve) => {
      child ??= began()
      holdOpen(child, true)
      const [id, by] = [++last, child]
      signal?.addEventListener('abort', () => waiting.has(id) && by.send({ id } satisfies Asked, () => {}), { once: true })
      waiting.set(id, resolve)
      // That it could not be sent is told by its exit.
      child.send({ id, command } satisfies Asked, () => {})
    })
}

/** Idle, it must not keep our own process from ending. */
function holdOpen(child: ChildProcess, open: boolean): void {
  if (open) {
    child.ref()
    child.channel?.ref()
  } else {
    child.unref()
    child.channel?.unref()
  }
}
