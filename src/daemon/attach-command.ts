import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'
import { UsageError } from '../kernel/error.ts'
import { call, type Reach } from '../surfaces/cli/call.ts'
import { answering, runCli } from '../surfaces/cli/index.ts'
import type { Terminal } from '../surfaces/cli/terminal.ts'
import type { Env } from './cli-command.ts'

const HELP = `signalbox attach T-1: show the terminal of a PAIR task in this one. Leave it with C-b d; it goes on.
Of an AUTO task, whose agent has no terminal, its transcript is shown as it grows. Leave it with C-c; it goes on.

  --print    only print the command that does it
`

/** Of the answer of `session_exists`. */
interface Found {
  exists: boolean
  session: { state: string; reason: string | null; attach: string | null; attach_argv: string[] | null } | null
}

export async function attachCommand(
  args: string[],
  { reach, terminal, env }: { reach: Reach; terminal: Terminal; env: Env },
): Promise<number> {
  const options = { print: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } as const
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
  const [task, ...more] = positionals
  if (values.help) {
    terminal.out(HELP)
    return 0
  }
  if (!task || more.length) throw new UsageError('Name one task: signalbox attach T-1')
  return answering(false, terminal, async () => {
    const { exists, session } = (await call(reach, 'session_exists', { task_id: task })) as unknown as Found
    const { attach, attach_argv: argv } = session ?? {}
    if (!exists && (await isAuto(reach, task))) return follow(task, reach, terminal, values.print === true)
    if (!exists || !attach || !argv) throw new UsageError(`${task} has no open terminal. Open it: signalbox session open --task-id ${task}`)
    if (!values.print && terminal.tty.in && terminal.tty.out) return show(argv, env)
    terminal.out(`${attach}\n`)
    return 0
  })
}

async function isAuto(reach: Reach, task: string): Promise<boolean> {
  const { task: found } = (await call(reach, 'task_get', { task_id: task, notes: 0 })) as { task: { task_type: string } }
  return found.task_type === 'AUTO'
}

/** Nobody keeps a terminal for it: the view is made when somebody wants to see it. */
async function follow(task: string, reach: Reach, terminal: Terminal, printOnly: boolean): Promise<number> {
  const args = ['transcript', 'read', '--task-id', task, '--watch']
  if (!printOnly && terminal.tty.in && terminal.tty.out) return runCli(args, reach, terminal)
  terminal.out(`signalbox ${args.join(' ')}\n`)
  return 0
}

/** In whichever terminal this is, also in one of another tmux, which would take it for its own. */
function show([program = 'tmux', ...args]: string[], { TMUX: _, ...env }: Env): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', env })
  return new Promise((resolve, reject) => {
    child.once('error', (error) => reject(new UsageError(`${program} could not be started: ${error.message}`)))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
