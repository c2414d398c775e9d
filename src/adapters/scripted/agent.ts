import { readFileSync } from 'node:fs'
import { Ears } from './ears.ts'
import { ENV, type Printed } from './protocol.ts'
import { defaultReview, defaultScript, parseScript, type ScriptStep, scriptIn } from './script.ts'
import { type Life, Over, perform } from './steps.ts'
import { type Fields, Tools } from './tools.ts'
import { Worktree } from './worktree.ts'

/** How a program ends that was interrupted. */
const EXIT_INTERRUPTED = 130

class Agent {
  #inTurn = false
  #interrupt = new AbortController()
  readonly #ears = new Ears(process.stdin)

  async run(): Promise<number> {
    this.#ears.onInterrupt = () => this.#interrupt.abort(new Error('interrupted'))
    process.on('SIGINT', () => this.#ears.onInterrupt())
    const tools = new Tools({ url: required(ENV.url), token: readFileSync(required(ENV.tokenFile), 'utf8').trim() })
    const worktree = new Worktree(process.cwd())
    const [me] = await Promise.all([ask(tools, 'agent_me', {}), worktree.rememberLocks()])
    const taskId = process.env[ENV.task] || me.task_id
    const task = taskId ? (await ask(tools, 'task_context', { task_id: taskId })).task : undefined
    const life: Life = {
      me: { id: me.id, handle: me.handle, name: me.name },
      task: task && { id: task.id, handle: task.handle, title: task.title },
      resumed: process.env[ENV.resumed] !== undefined,
      tools,
      worktree,
      ears: this.#ears,
      saved: {},
      print,
      turn: (is) => this.#turn(is),
    }
    const script = readScript(worktree, task, me.role === 'reviewer')
    print({ type: 'ready', session: life.task?.id ?? life.me.id })
    return this.#play(life, script)
  }

  async #play(life: Life, script: ScriptStep[]): Promise<number> {
    this.#turn('started')
    for (const step of script) {
      try {
        await perform(life, step, this.#interrupt.signal)
      } catch (error) {
        if (error instanceof Over) return this.#over(error.code)
        if (!this.#interrupt.signal.aborted) throw error
      }
      if (this.#interrupt.signal.aborted && !(await this.#resumedByMessage())) return EXIT_INTERRUPTED
    }
    return this.#over(0)
  }

  /** An interrupt ends the turn and the step; the script goes on with the next one when somebody writes. */
  async #resumedByMessage(): Promise<boolean> {
    this.#turn('ended', 'interrupted')
    this.#interrupt = new AbortController()
    const message = await this.#ears.next(this.#interrupt.signal).catch(() => undefined)
    if (message === undefined) return false
    this.#turn('started')
    return true
  }

  #over(code: number): number {
    this.#turn('ended', code === 0 ? 'completed' : 'failed')
    return code
  }

  #turn(is: 'started' | 'ended', how: 'completed' | 'interrupted' | 'failed' = 'completed'): void {
    if (this.#inTurn === (is === 'started')) return
    this.#inTurn = is === 'started'
    print(is === 'started' ? { type: 'turn_started' } : { type: 'turn_ended', how })
  }

  failed(error: unknown): number {
    print({ type: 'failed', reason: error instanceof Error ? error.message : String(error) })
    return this.#over(1)
  }
}

function readScript(worktree: Worktree, task: Fields | undefined, reviews: boolean): ScriptStep[] {
  const given = process.env[ENV.script]
  if (given) return parseScript(readFileSync(given, 'utf8'))
  const file = process.env[ENV.file]
  if (file) return parseScript(worktree.read(file))
  if (!task) throw new Error('There is neither a script nor a task.')
  const block = scriptIn(task.description)
  if (block !== undefined) return parseScript(block)
  return reviews ? defaultReview() : defaultScript(task as { handle: string; title: string })
}

/** Only reads: what is asked before the script is known. */
async function ask(tools: Tools, name: string, input: Fields): Promise<Fields> {
  const answer = await tools.call(name, input)
  if (!answer.ok) throw new Error(`${name} answered ${answer.code}: ${answer.value.error?.message ?? ''}`)
  return answer.value
}

function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set. Signalbox starts this program; it is not meant to be run by hand.`)
  return value
}

function print(line: Printed): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

const agent = new Agent()
const code = await agent.run().catch((error) => agent.failed(error))
process.stdout.write('', () => process.exit(code))
