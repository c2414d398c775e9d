import { randomUUID } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { TestDaemon } from '../src/testing/daemon.ts'
import { type Cluster, createDatabase, startCluster } from '../src/testing/databases.ts'
import { Child } from './child.ts'
import { answerOf, RawClient, toolCall } from './client.ts'
import { CLIENTS } from './harness.ts'
import type { EngineName, Options } from './options.ts'
import { letterTo } from './rows/mail.ts'

/** A real daemon on one engine, with a project, as many agents as there are clients, and a task for each. */
export interface Ground {
  engine: EngineName
  daemon: TestDaemon
  project: string
  /** From before the first task. */
  cursor: string
  agents: { id: string; token: string; task: string }[]
}

const MOST_CLIENTS = Math.max(...CLIENTS)
const LIMITS = [
  'limits.agent_calls_per_second',
  'limits.agent_burst',
  'limits.person_calls_per_second',
  'limits.person_burst',
  'mail.per_minute',
  'mail.burst',
]

/** What several families share, made when first asked for and removed at the end. */
export class World {
  readonly options: Options
  readonly #closing: (() => Promise<unknown>)[] = []
  #cluster: Promise<Cluster> | undefined
  #grounds: Promise<Ground[]> | undefined
  #echo: Promise<Child> | undefined
  #databases = 0

  constructor(options: Options) {
    this.options = options
  }

  /** Commits are durable, as in real life. */
  cluster(): Promise<Cluster> {
    this.#cluster ??= startCluster({ durable: true }).then((cluster) => {
      this.#closing.push(() => cluster.remove())
      return cluster
    })
    return this.#cluster
  }

  grounds(): Promise<Ground[]> {
    this.#grounds ??= inOrder(this.options.engines, async (engine) => prepare(engine, await this.daemon(engine)))
    return this.#grounds
  }

  async daemon(engine: EngineName, env: Record<string, string> = {}): Promise<TestDaemon> {
    const daemon = await TestDaemon.start({ env: { ...(await this.#databaseOf(engine)), ...env }, wrapper: this.#profiling(engine) })
    this.#closing.push(async () => {
      if (this.options.profile) await daemon.end()
      await daemon.remove()
    })
    return daemon
  }

  async #databaseOf(engine: EngineName): Promise<Record<string, string>> {
    if (engine === 'sqlite') return {}
    return { SIGNALBOX_DATABASE_URL: await createDatabase((await this.cluster()).folder, `bench_${++this.#databases}`) }
  }

  /** Node takes these options on its command line only. */
  #profiling(engine: EngineName): string[] | undefined {
    if (!this.options.profile) return undefined
    const folder = join(this.options.profile, engine)
    mkdirSync(folder, { recursive: true })
    return ['sh', '-c', `node=$1; shift; exec "$node" --cpu-prof --cpu-prof-interval=200 --cpu-prof-dir="${folder}" "$@"`, 'sh']
  }

  /** Knows the tools of the daemon, and answers as it does. */
  echo(): Promise<Child> {
    this.#echo ??= this.#startEcho()
    return this.#echo
  }

  async #startEcho(): Promise<Child> {
    const echo = await Child.start('sdk-echo', { BENCH_SCRIPT: await this.echoScript() })
    this.#closing.push(() => echo.end())
    return echo
  }

  async echoScript(): Promise<string> {
    const [ground] = await this.grounds()
    const path = join((ground as Ground).daemon.home, 'echo.json')
    writeFileSync(path, JSON.stringify(await script(ground as Ground)))
    return path
  }

  async bareHttp(env: Record<string, string> = {}): Promise<Child> {
    const child = await Child.start('bare-http', env)
    this.#closing.push(() => child.end())
    return child
  }

  async close(): Promise<void> {
    for (const close of this.#closing.reverse()) await close()
  }
}

export async function prepare(engine: EngineName, daemon: TestDaemon): Promise<Ground> {
  for (const key of LIMITS) await daemon.call('setting_update', { key, value: 1_000_000 })
  const { project_id: project } = await daemon.call('project_create', { name: 'Bench' })
  const { cursor } = await daemon.call('task_list', { limit: 1 })
  const agents = await inOrder(Array.from({ length: MOST_CLIENTS }), async () => {
    const { agent_id: id, token } = await daemon.call('agent_invite', { role: 'orchestrator' })
    const { task_id: task } = await daemon.call('task_create', { ...NEW_TASK, project_id: project })
    await daemon.call('task_note', { task_id: task, body: 'The first half is done; the parser is next.' })
    return { id: id as string, token: token as string, task: task as string }
  })
  return { engine, daemon, project, cursor, agents }
}

/** Of a usual size. */
export const NEW_TASK = {
  title: 'Read the configuration once',
  description: 'At present every request reads it again. Keep it in memory and read it anew when the file changes.',
  acceptance_criteria: ['One read at the start', 'A change is noticed within a second'],
}

async function script({ daemon, project, cursor, agents: [agent, other] }: Ground) {
  const { token, task } = agent as Ground['agents'][number]
  const client = new RawClient(daemon.url)
  const ask = async (tool: string, args: object) => answerOf(await client.send(toolCall(client, token, tool, args)))
  const answers = {
    task_get: await ask('task_get', { task_id: task }),
    task_create: await ask('task_create', { ...NEW_TASK, project_id: project }),
    mail_send: await ask('mail_send', letterTo((other as Ground['agents'][number]).id, randomUUID())),
    hold: await ask('event_wait', { task_id: task, cursor, limit: 1 }),
    release: await ask('task_note', { task_id: task, body: 'x' }),
  }
  client.close()
  const list = await fetch(`${daemon.url}/api/tools`, { headers: { authorization: `Bearer ${token}` } })
  const { tools } = (await list.json()) as { tools: Record<string, unknown>[] }
  return {
    tools: tools.map(({ name, title, description, input, output }) => ({
      name,
      title,
      description,
      inputSchema: input,
      outputSchema: output,
    })),
    answers,
  }
}

export async function inOrder<A, B>(items: A[], step: (item: A) => Promise<B>): Promise<B[]> {
  const out: B[] = []
  for (const item of items) out.push(await step(item))
  return out
}
