import { type EXITS, Refusal, UsageError } from '../../kernel/error.ts'
import type { Tool } from '../../kernel/tool.ts'
import { SHORT } from './built-in.ts'
import { call, callUntilAnswered, type Reach, type Row, report } from './call.ts'
import { complete } from './complete.ts'
import { completionScript } from './completion.ts'
import { confirmed } from './confirm.ts'
import { printEvents } from './events.ts'
import { asksForHelp, type Given, parseFlags } from './flags.ts'
import { generalHelp, helpFor, helpForNoun, listOfTools } from './help.ts'
import { commandOf, find, named, toolsOf, verbOf } from './names.ts'
import { withProgress } from './progress.ts'
import { commandLine } from './shell.ts'
import { asJson, asText, lookFor } from './show.ts'
import type { Terminal } from './terminal.ts'
import { watch } from './watch.ts'

/** `signalbox <noun> <verb>`: flags, help, tables and exit codes all derive from the tool's declaration. Returns the exit code. */
export async function runCli(args: string[], reach: Reach, terminal: Terminal): Promise<number> {
  const [noun = '', verb = '', ...rest] = spelledOut(args)
  const command = Object.hasOwn(COMMANDS, noun) ? COMMANDS[noun] : undefined
  if (command) return command(args.slice(1), reach, terminal)
  if (toolsOf(noun).length && (!verb || asksForHelp([verb]))) return print(terminal, helpForNoun(noun, terminal))
  const tool = find(noun, verb)
  if (asksForHelp(rest)) return print(terminal, helpFor(tool, terminal))
  const given = await parseFlags(tool, rest, terminal.stdin)
  return answering(given.json, terminal, () => runTool(tool, given, reach, terminal), `See: signalbox ${commandOf(tool)} --help`)
}

function spelledOut([first = '', ...rest]: string[]): string[] {
  // `preview stop` is no `preview start stop`.
  const isVerb =
    toolsOf(first).length > 0 && (rest.length === 0 || asksForHelp(rest) || toolsOf(first).some((tool) => verbOf(tool) === rest[0]))
  return Object.hasOwn(SHORT, first) && !isVerb ? [...(SHORT[first]?.means ?? []), ...rest] : [first, ...rest]
}

/** Runs it, and turns a refusal into what the reader sees and the exit code. */
export async function answering(json: boolean, terminal: Terminal, work: () => Promise<number>, help?: string): Promise<number> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof Refusal) return report(error, json, terminal, help)
    throw error
  }
}

async function runTool(tool: Tool, given: Given, reach: Reach, terminal: Terminal): Promise<number> {
  const { input, json, actFor } = given
  if (tool.impact === 'destructive' && !given.yes && !(await confirmed(tool, input, reach, terminal))) return 1
  const ask = () => callUntilAnswered(reach, tool, input, { actFor })
  const draw = async (result: Row) => asText(tool, input, result, await lookFor(result, reach, terminal))
  if (given.watch) return watch({ title: commandLine(tool, input), look: ask, draw, json: json || !terminal.tty.out }, reach, terminal)
  const result = await withProgress(terminal, tool.title, ask)
  terminal.out(json || !terminal.tty.out ? asJson(result, json) : await draw(result))
  return OUTCOMES[tool.outcome?.(result) ?? 'done']
}

const OUTCOMES = { done: 0, failed: 1, pending: 8 } as const satisfies Record<string, keyof typeof EXITS>

/** An answer to a tool that another command called. */
export async function showAnswer(name: string, result: Row, json: boolean, reach: Reach, terminal: Terminal): Promise<void> {
  const tool = named(name)
  if (json || !terminal.tty.out || !tool) terminal.out(asJson(result, json))
  else terminal.out(asText(tool, {}, result, await lookFor(result, reach, terminal)))
}

/** For commands made of several calls; a refusal is thrown. */
export function callTool(reach: Reach, name: string, input: Row, terminal: Terminal): Promise<Row> {
  return withProgress(terminal, named(name)?.title ?? name, () => call(reach, name, input))
}

type Command = (args: string[], reach: Reach, terminal: Terminal) => Promise<number>

const COMMANDS: Record<string, Command> = {
  tools: helped('signalbox tools: list every verb with what it does.', async (_, __, terminal) => print(terminal, listOfTools(terminal))),
  events: helped(
    'signalbox events: follow what happens, one line an event, until Ctrl-C; JSON with --json or in a pipe. It survives a restart of the daemon.',
    (args, reach, terminal) => answering(false, terminal, () => printEvents(reach, terminal, args.includes('--json'))),
    ['--json'],
  ),
  completion: helped(
    'signalbox completion bash|zsh|fish: print a script for your shell; its first lines say where it goes.',
    async ([shell], _, terminal) => print(terminal, completionScript(shell)),
  ),
  complete: async (args, reach, terminal) => print(terminal, await complete(args[0] === '--' ? args.slice(1) : args, reach)),
  help: async (_, __, terminal) => print(terminal, generalHelp(terminal)),
}

function helped(text: string, run: Command, flags: string[] = []): Command {
  return async (args, reach, terminal) => {
    if (asksForHelp(args)) return print(terminal, `${text}\n`)
    const flag = args.find((arg) => arg.startsWith('-') && !flags.includes(arg))
    if (flag) throw new UsageError(`There is no flag ${flag} here. ${text}`)
    return run(args, reach, terminal)
  }
}

function print(terminal: Terminal, text: string): number {
  terminal.out(text)
  return 0
}
