import { isDeepStrictEqual } from 'node:util'
import type { Caller, Fields, Outcome } from './callers.ts'
import { type Entry, type Intent, type Journal, WRITES, type Write } from './journal.ts'
import type { Mortal } from './mortal.ts'
import type { Random } from './random.ts'
import { pause } from './stop.ts'

export interface WriterPlan {
  name: string
  principal: string
  caller: Caller
  project: string
  may: readonly Write[]
  /** Tasks that it starts with: shared ones bring it into conflict with others. */
  tasks: string[]
  random: Random
  /** How long it pauses between two intents, in the mean. */
  thinkMs: number
}

/** A rule refused it, as it should when several writers meet on one task. */
const EXPECTED = ['CONFLICT', 'INVALID_TRANSITION']
/** Nothing was done, and asking again is right. */
const TURNED_AWAY = ['TRANSIENT_ERROR', 'SHUTTING_DOWN', 'RATE_LIMITED']
const MOST_LOST = 50
const OPEN = ['BACKLOG', 'IN_PROGRESS', 'REVIEW']

/** Writes until told to stop, keeps its journal, and repeats what was lost when it has a key for it. */
export class Writer {
  readonly plan: WriterPlan
  readonly #mortal: Mortal
  readonly #journal: Journal
  readonly #keyed: Entry[] = []
  readonly #status = new Map<string, string>()
  /** The daemon's deaths after which this client got an answer again. */
  readonly resumed = new Set<number>()
  #made = 0
  #ended = false
  #lostInARow = 0

  constructor(plan: WriterPlan, mortal: Mortal, journal: Journal) {
    this.plan = plan
    this.#mortal = mortal
    this.#journal = journal
  }

  get ended(): boolean {
    return this.#ended
  }

  async run(stop: AbortSignal): Promise<void> {
    const { random } = this.plan
    while (!stop.aborted && !this.#ended) {
      await pause(random.below(2 * this.plan.thinkMs + 1), stop)
      if (this.#keyed.length && random.chance(0.1)) await this.#replay(random.pick(this.#keyed))
      else await this.#perform(this.#next(random.pick(this.plan.may), random.chance(0.7)))
    }
    // The last word of each client, after the last death: it must get through on the connection that it began with.
    if (!this.#ended) await this.#perform(this.#next('decision_log', true))
  }

  async #perform(intent: Intent): Promise<void> {
    const { name: writer, principal, caller } = this.plan
    for (let sent = 1; ; sent++) {
      const outcome = await this.#send(intent)
      this.#lostInARow = outcome.kind === 'lost' ? this.#lostInARow + 1 : 0
      if (outcome.kind === 'lost') await this.#daemonBack(outcome.why)
      const again = outcome.kind === 'lost' || (outcome.kind === 'refusal' && TURNED_AWAY.includes(outcome.value.code))
      if (again && intent.key !== undefined && !this.#ended) continue
      const kind = outcome.kind === 'lost' || outcome.value.details?.written === 'unknown' ? 'unknown' : outcome.kind
      const value = outcome.kind === 'lost' ? { why: outcome.why } : outcome.value
      const entry: Entry = { ...intent, writer, principal, way: caller.way, outcome: kind, value, sent }
      this.#learn(entry)
      return this.#journal.add(entry)
    }
  }

  /** A connection that is broken for good fails without ever leaving this process: that must end the writer, not spin. */
  async #daemonBack(why: string): Promise<void> {
    if (this.#lostInARow > MOST_LOST) {
      this.#ended = true
      this.#journal.wrong.push(`${this.plan.name} (${this.plan.caller.way}) did not get through ${MOST_LOST} times: ${why}`)
    }
    await this.#mortal.up
    await new Promise((resolve) => setImmediate(resolve))
  }

  async #send(intent: Intent): Promise<Outcome> {
    const outcome = await this.plan.caller.call(intent.tool, sentAs(intent))
    if (outcome.kind !== 'lost') this.resumed.add(this.#mortal.deaths)
    return outcome
  }

  #learn(entry: Entry): void {
    const { outcome, value, input, key } = entry
    if (outcome === 'unknown') return
    if (key !== undefined && outcome !== 'refusal') this.#keyed.push(entry)
    if (outcome === 'refusal') return this.#refused(entry)
    if (value.task) this.#status.set(value.task_id, value.task.status)
    // Few enough that tasks collect a history, and many enough that not everything meets on them.
    if (entry.tool === 'task_create' && this.plan.tasks.length < 12) this.plan.tasks.push(value.task_id)
    if (entry.tool === 'task_move' && value.task.status !== input.status)
      this.#journal.wrong.push(`${entry.marker} answered another status`)
  }

  #refused({ marker, tool, value }: Entry): void {
    if (value.code === 'AUTH_STALE_TOKEN') this.#ended = true
    else if (![...EXPECTED, ...TURNED_AWAY].includes(value.code))
      this.#journal.wrong.push(`${marker} ${tool} was refused: ${value.code} ${value.message}`)
  }

  /** An acknowledged call, sent once more under its key, must give the first answer, however many restarts later. */
  async #replay(entry: Entry): Promise<void> {
    const altered = this.plan.random.chance(0.1) ? alteration(entry.tool) : undefined
    const outcome = await this.plan.caller.call(entry.tool, { ...sentAs(entry), ...altered })
    if (outcome.kind === 'lost') return void (await this.#daemonBack(outcome.why))
    if (outcome.value.code === 'AUTH_STALE_TOKEN') this.#ended = true
    if (this.#ended || (outcome.kind === 'refusal' && TURNED_AWAY.includes(outcome.value.code))) return
    this.#journal.replays++
    if (altered) {
      if (outcome.value.code !== 'IDEMPOTENCY_MISMATCH')
        this.#journal.wrong.push(`${entry.marker}: another input under its key gave ${JSON.stringify(outcome.value)}`)
    } else if (outcome.kind !== entry.outcome || !isDeepStrictEqual(outcome.value, entry.value))
      this.#journal.wrong.push(`${entry.marker}: a replay differs\n  ${JSON.stringify(entry.value)}\n  ${JSON.stringify(outcome.value)}`)
  }

  #next(tool: Write, withKey: boolean): Intent {
    const { random, project, name } = this.plan
    const marker = `[[${name}.${++this.#made}]]`
    const task = random.pick(this.plan.tasks)
    const filler = ' and so on'.repeat(random.chance(0.1) ? random.below(800) : random.below(20))
    const inputs: Record<Write, () => Fields> = {
      task_create: () => ({ title: marker, description: filler, project_id: project }),
      task_note: () => ({ task_id: task, body: marker + filler }),
      task_move: () => this.#move(task, marker),
      task_update: () => ({ task_id: task, description: marker + filler.slice(0, 5_000), priority: random.pick(['low', 'high']) }),
      decision_log: () => ({ title: marker, body: marker + filler, ...(random.chance(0.5) ? { task_id: task } : {}) }),
    }
    return { marker, tool, input: inputs[tool](), key: withKey ? `key-${marker}` : undefined }
  }

  #move(task: string, marker: string): Fields {
    const { random } = this.plan
    const known = this.#status.get(task)
    const status = known === 'BACKLOG' || known === 'REVIEW' ? 'IN_PROGRESS' : random.pick(OPEN.filter((other) => other !== known))
    return { task_id: task, status, reason: marker, ...(known && random.chance(0.3) ? { expected_status: known } : {}) }
  }
}

function sentAs({ input, key }: Intent): Fields {
  return key === undefined ? { ...input } : { ...input, idempotency_key: key }
}

/** Makes it another intent under the same key. */
function alteration(tool: Write): Fields | undefined {
  if (tool === 'task_move') return { reason: 'another' }
  return tool === 'task_note' || tool === 'decision_log' ? { body: 'another' } : undefined
}

export const ALL_WRITES = WRITES
export const WORKER_WRITES = WRITES.filter((tool) => tool !== 'task_create' && tool !== 'task_update')
