import { type Refusal, refuse } from '../kernel/error.ts'
import type { LookContext } from '../kernel/tool.ts'
import type { Harness } from '../ports/harness.ts'

type Settings = Pick<LookContext, 'setting'>

/** What a person has chosen for all who do not say which. */
export function defaultProgram(ctx: Settings): string | undefined {
  return ctx.setting<string>('runs.default_harness') || undefined
}

/**
 * The agent program to be started: the one that is named, else that of the setting, else the only one that is installed and logged in.
 * Never one without a model: its work would be taken for that of an agent.
 */
export async function programFor(
  ctx: LookContext,
  named: string | undefined,
  options?: Record<string, unknown>,
): Promise<Harness | Refusal> {
  const { harnesses } = ctx.ports
  const name = named ?? defaultProgram(ctx)
  if (name === undefined) return onlyProgram(ctx)
  const harness = harnesses.get(name)
  if (!harness) return refuse('INVALID_INPUT', `There is no harness "${name}".`, { suggestions: harnesses.names() })
  const found = await harness.probe(options)
  if (found.found) return harness
  return refuse('INVALID_INPUT', `${harness.title} cannot be used here: ${found.why}`, { hint: `Install it: ${found.install}` })
}

/** Where it has to be known, and nobody can be asked which are here. */
export function unnamedProgram(): Refusal {
  return refuse('INVALID_INPUT', 'It is not known which agent program to start.', {
    hint: 'A person names one with the setting runs.default_harness.',
    next_tool: 'setting_update',
    next_arguments: { key: 'runs.default_harness', value: 'claude' },
  })
}

interface Seen {
  harness: Harness
  /** How to get it; undefined when it is installed. */
  install: string | undefined
  /** How to log in; undefined when somebody has. */
  login: string | undefined
}

/** The names of those that are installed and logged in. */
export async function readyPrograms(ctx: Pick<LookContext, 'ports'>): Promise<string[]> {
  const ready = (await seenPrograms(ctx)).filter(({ install, login }) => install === undefined && login === undefined)
  return ready.map(({ harness }) => harness.name)
}

async function seenPrograms({ ports: { harnesses } }: Pick<LookContext, 'ports'>): Promise<Seen[]> {
  const known = harnesses.names().flatMap((name) => harnesses.get(name) ?? [])
  return (await Promise.all(known.map(look))).filter((one) => one !== undefined)
}

async function onlyProgram(ctx: LookContext): Promise<Harness | Refusal> {
  const seen = await seenPrograms(ctx)
  const installed = seen.filter(({ install }) => install === undefined)
  const ready = installed.filter(({ login }) => login === undefined)
  const [only, another] = ready
  if (only && !another) return only.harness
  const suggestions = (only ? ready : installed).map(({ harness }) => harness.name)
  const choose = 'Give harness; or name one for good with the setting runs.default_harness.'
  if (only)
    return refuse('INVALID_INPUT', `Which agent program? These are installed and logged in: ${inWords(ready)}.`, {
      hint: choose,
      suggestions,
    })
  if (installed.length)
    return refuse('INVALID_INPUT', `No agent program is logged in here. Installed: ${inWords(installed)}.`, {
      hint: `${installed.map(({ harness, login }) => `${harness.title}: ${login}`).join(' ')} Where one is logged in all the same: ${choose}`,
      suggestions,
    })
  const how = seen.map(({ harness, install }) => `${harness.title}: ${install}`)
  return refuse('INVALID_INPUT', 'No agent program is installed here.', {
    hint: [...how, 'To try Signalbox without a model, give harness scripted.'].join('. '),
  })
}

/** Undefined: it is only ever started by its name. */
async function look(harness: Harness): Promise<Seen | undefined> {
  if (!harness.account) return undefined
  const [found, account] = await Promise.all([harness.probe(), harness.account()])
  return { harness, install: found.found ? undefined : found.install, login: account.signedIn ? undefined : account.how }
}

function inWords(seen: Seen[]): string {
  return seen.map(({ harness: { title, name } }) => `${title} (${name})`).join(', ')
}
