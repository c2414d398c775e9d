import { databaseOf, rows } from '../e2e/support.ts'
import { Mortal } from './mortal.ts'
import { Random } from './random.ts'
import { heardByAll, pause } from './stop.ts'

export interface MailReport {
  seed: number
  agents: number
  kills: number
  /** Letters that their senders know to be stored. */
  letters: number
  answers: number
  /** Sent again after a death, under the same key. */
  repeated: number
  /** Sent again although they were acknowledged, to compare the answers. */
  replays: number
  lettersPerSecond: number
  p99Ms: number
  /** What was lost, doubled, not read, read twice, or never heard of. */
  wrong: string[]
}

interface MailPlan {
  seed: number
  agents: number
  forMs: number
  kills: number
  /** How long a writer thinks between two letters, at the most. */
  thinkMs?: number
}

/** How long readers may take to hear of the last letters once everybody has stopped writing. */
const DRAIN_MS = 90_000
const LIMITS = ['limits.agent_calls_per_second', 'limits.agent_burst', 'mail.per_minute', 'mail.burst']

/**
 * So many agents that write to each other, to all workers and to the human, each with a reader that hears of its letters by
 * event_wait alone; meanwhile the daemon is killed and started again. Then everything is compared.
 */
export async function mailUnderLoad({ seed, agents, forMs, kills, thinkMs = 20 }: MailPlan): Promise<MailReport> {
  const random = new Random(seed)
  const mortal = await Mortal.start()
  try {
    for (const key of LIMITS) await mortal.daemon.call('setting_update', { key, value: 1_000_000 })
    const { project_id } = await mortal.daemon.call('project_create', { name: 'Post' })
    const post = new Post(mortal)
    const people: Correspondent[] = []
    for (let i = 0; i < agents; i++) {
      const { agent_id, token } = await mortal.daemon.call('agent_invite', { role: 'worker', project_id })
      people.push(new Correspondent(post, agent_id, token, random.fork()))
    }
    const { id: owner } = await mortal.daemon.call('agent_me')
    const human = new Correspondent(post, owner, mortal.daemon.token, random.fork())
    const all = [...people, human]

    const [stop, over] = [heardByAll(), heardByAll()]
    // Before anybody writes: of a letter from before its cursor a reader never hears.
    const { cursor } = await mortal.daemon.call('event_list', { limit: 1 })
    const began = performance.now()
    const reading = all.map((one) => one.read(cursor, over.signal))
    const writing = people.map((one) => one.write(people, thinkMs, stop.signal))
    for (let i = 0; i < kills; i++) {
      await pause((forMs / (kills + 1)) * (0.5 + random.next()))
      await mortal.end('SIGKILL')
      await mortal.start()
    }
    await pause(forMs - (performance.now() - began))
    stop.abort()
    await Promise.all(writing)
    const seconds = (performance.now() - began) / 1_000

    const drained = performance.now() + DRAIN_MS
    // Whoever is still at a letter may be about to answer it.
    const open = () => post.atWork > 0 || all.reduce((n, one) => n + one.letters.size, 0) < post.sent.size
    while (performance.now() < drained && open()) await pause(50)
    over.abort()
    await Promise.all(reading)
    const took = post.took.toSorted((a, b) => a - b)
    return {
      seed,
      agents,
      kills: mortal.deaths,
      letters: post.sent.size,
      answers: all.reduce((n, one) => n + one.answered, 0),
      repeated: post.repeated,
      replays: post.replays,
      lettersPerSecond: Math.round(post.sent.size / seconds),
      p99Ms: Math.round(took[Math.floor(took.length * 0.99)] ?? 0),
      wrong: [...post.wrong, ...compare(databaseOf(mortal.daemon), post, all)],
    }
  } finally {
    await mortal.remove()
  }
}

// biome-ignore lint/suspicious/noExplicitAny: the answers of several tools, read by name
type Any = any

/** The way to the daemon, over its deaths, and what is known to have been stored. */
class Post {
  /** By id, what was written. */
  readonly sent = new Map<string, string>()
  readonly took: number[] = []
  repeated = 0
  replays = 0
  /** Letters that are being read, acknowledged or answered. */
  atWork = 0
  /** Answers that were others the second time. */
  readonly wrong: string[] = []
  readonly #mortal: Mortal

  constructor(mortal: Mortal) {
    this.#mortal = mortal
  }

  /** Until there is an answer: whoever does not know whether it was done asks again. */
  async call(token: string, tool: string, input: object): Promise<Any> {
    for (;;) {
      await this.#mortal.up
      try {
        const response = await fetch(`${this.#mortal.url}/api/tools/${tool}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify(input),
        })
        const answer = (await response.json()) as Any
        if (answer.ok) return answer.result
        if (!['SHUTTING_DOWN', 'DISCONNECTED', 'TRANSIENT_ERROR'].includes(answer.error.code))
          throw new Refused(`${tool}: ${JSON.stringify(answer.error)}`)
      } catch (error) {
        if (error instanceof Refused) throw error
      }
      if (tool === 'mail_send' || tool === 'mail_reply') this.repeated++
      await pause(5)
    }
  }

  async send(
    token: string,
    tool: 'mail_send' | 'mail_reply',
    input: { body: string; idempotency_key: string },
    again = false,
  ): Promise<void> {
    const began = performance.now()
    const { mail_ids } = await this.call(token, tool, input)
    this.took.push(performance.now() - began)
    for (const id of mail_ids as string[]) this.sent.set(id, input.body)
    if (!again) return
    this.replays++
    const { mail_ids: same } = await this.call(token, tool, input)
    if (String(same) !== String(mail_ids)) this.wrong.push(`${mail_ids} sent again is ${same}`)
  }
}

class Refused extends Error {}

interface Told {
  mail_id: string
  to_agent_id: string | null
  is_for_human: boolean
}

/** Somebody who writes and reads. */
class Correspondent {
  readonly id: string
  readonly token: string
  /** What was read, by id. */
  readonly letters = new Map<string, string>()
  answered = 0
  readonly #post: Post
  readonly #random: Random
  #written = 0

  constructor(post: Post, id: string, token: string, random: Random) {
    this.#post = post
    this.id = id
    this.token = token
    this.#random = random
  }

  async write(all: Correspondent[], thinkMs: number, stop: AbortSignal): Promise<void> {
    const others = all.filter((one) => one !== this)
    while (!stop.aborted) {
      const to = this.#random.chance(0.02)
        ? { to_role: 'worker' }
        : this.#random.chance(0.1)
          ? { to_human: true }
          : { to_agent_id: this.#random.pick(others).id }
      await this.#post.send(this.token, 'mail_send', { ...to, subject: 'Soak', ...this.#unlike() } as never, this.#random.chance(0.1))
      await pause(this.#random.below(thinkMs), stop)
    }
  }

  /** Looks only when it was told: a letter of which nobody tells it is never found. */
  async read(from: string, over: AbortSignal): Promise<void> {
    let cursor = from
    while (!over.aborted) {
      const waited = await this.#post.call(this.token, 'event_wait', { cursor, types: ['mail.sent'], timeout_seconds: 1 })
      cursor = waited.cursor
      // People hear of every letter.
      const own = (waited.events as { data: Told }[]).filter(({ data }) => data.is_for_human || data.to_agent_id === this.id)
      for (const { data } of own) {
        this.#post.atWork++
        await this.#take(data.mail_id).finally(() => this.#post.atWork--)
      }
    }
  }

  async #take(mail_id: string): Promise<void> {
    const { letter } = await this.#post.call(this.token, 'mail_read', { mail_id })
    this.letters.set(mail_id, letter.body)
    await this.#post.call(this.token, 'mail_ack', { mail_id })
    if (letter.subject.startsWith('Re: ') || !this.#random.chance(0.2)) return
    this.answered++
    await this.#post.send(this.token, 'mail_reply', { mail_id, ...this.#unlike() } as never)
  }

  #unlike(): { body: string; idempotency_key: string } {
    const name = `${this.id} ${++this.#written}`
    return { body: `Letter ${name}`, idempotency_key: name }
  }
}

/** Stored once, told once, read once by its receiver, acknowledged once: of each letter. */
function compare(database: string, { sent }: Post, all: Correspondent[]): string[] {
  const wrong: string[] = []
  const stored = rows(database, 'SELECT id, to_id, body, read_at, acked_at FROM letters') as Any[]
  const byId = new Map(stored.map((row) => [row.id as string, row]))
  for (const [id, body] of sent) if (byId.get(id)?.body !== body) wrong.push(`lost: ${id}`)
  for (const { id } of stored) if (!sent.has(id)) wrong.push(`doubled: ${id}`)
  for (const [what, n] of counted(stored.map((row) => `${row.to_id} ${row.body}`))) if (n > 1) wrong.push(`doubled: ${what}`)
  for (const { id, read_at, acked_at } of stored) if (read_at === null || acked_at === null) wrong.push(`not read and acknowledged: ${id}`)
  const readers = counted(all.flatMap((one) => [...one.letters.keys()]))
  for (const { id, to_id } of stored) {
    if (readers.get(id) !== 1) wrong.push(`read by ${readers.get(id) ?? 0}: ${id}`)
    const reader = all.find((one) => one.letters.has(id))
    if (reader && to_id !== 'human' && to_id !== reader.id) wrong.push(`read by another: ${id}`)
    if (reader && reader.letters.get(id) !== sent.get(id)) wrong.push(`another text: ${id}`)
  }
  for (const type of ['mail.sent', 'mail.read', 'mail.acked']) {
    const told = counted((rows(database, 'SELECT subject FROM events WHERE type = ?', type) as Any[]).map((row) => row.subject))
    for (const id of byId.keys()) if (told.get(id) !== 1) wrong.push(`${type} ${told.get(id) ?? 0} times: ${id}`)
  }
  return wrong.slice(0, 20)
}

function counted(items: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) counts.set(item, (counts.get(item) ?? 0) + 1)
  return counts
}
