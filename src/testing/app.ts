import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test as base, inject } from 'vitest'
import { capabilities } from '../capabilities/index.ts'
import { type App, type AppOptions, createApp } from '../daemon/app.ts'
import type { Capability } from '../kernel/capability.ts'
import type { ErrorBody } from '../kernel/error.ts'
import type { LoggedEvent } from '../kernel/event.ts'
import type { Answer, Request } from '../kernel/invoke.ts'
import { type Answering, answer, type Point } from '../kernel/point.ts'
import { Clones, migratedFile } from './databases.ts'
import { testSurroundings } from './ports.ts'
import { until, written } from './signals.ts'

type Fields = Record<string, unknown>

/** All capabilities, of which none answers at this point but the test. */
export function onlyAnswering<A extends Answering>(point: Point<A>, ...answering: A[]): Capability[] {
  const others = capabilities.map((one) => ({ ...one, answers: one.answers?.filter((given) => given.point !== point) }))
  return [...others, { name: 'test', tools: [], answers: answering.map((one) => answer(point, one)) }]
}

/** One identity, calling through the only door, as a surface would. */
export class Caller {
  readonly #app: App
  readonly secret: string
  readonly id: string
  readonly handle: string

  constructor(app: App, secret: string, id: string, handle: string) {
    this.#app = app
    this.secret = secret
    this.id = id
    this.handle = handle
  }

  invoke(tool: string, input: unknown, more: Partial<Request> = {}): Promise<Answer> {
    return this.#app.kernel.invoke({ tool, input, credential: { secret: this.secret }, surface: 'http', ...more })
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
  async call(tool: string, input: Fields = {}, more: Partial<Request> = {}): Promise<any> {
    const answer = await this.invoke(tool, input, more)
    if (!answer.ok) throw new Error(`${tool} was refused: ${JSON.stringify(answer.error)}`)
    return answer.value
  }

  async refused(tool: string, input: unknown = {}, more: Partial<Request> = {}): Promise<ErrorBody> {
    const answer = await this.invoke(tool, input, more)
    if (answer.ok) throw new Error(`${tool} was expected to be refused, but answered ${JSON.stringify(answer.value)}`)
    return answer.error
  }
}

export interface TestApp {
  app: App
  folder: string
  /** The file's path, or the address of the database. */
  database: string
  owner: Caller
  agent(role: string, options?: Fields): Promise<Caller>
  worker(taskId: string): Promise<Caller>
  project(): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: see call
  task(fields?: Fields): Promise<any>
  events(filter?: { type?: string; subject?: string }): Promise<LoggedEvent[]>
  /** Its daemon serves no more; what it kept stays. */
  leave(): Promise<void>
  /** The same database, opened again, as after a crash or restart. */
  reopen(whileClosed?: () => void): Promise<void>
  close(): Promise<void>
}

type TestOptions = Partial<Omit<AppOptions, 'ports'>> & { ports?: Partial<AppOptions['ports']> }

export async function openTestApp(options: TestOptions = {}): Promise<TestApp> {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-test-'))
  const clones = options.database ? undefined : clonesHere()
  const database = options.database ?? (await clones?.take()) ?? (await newFile(join(folder, 'signalbox.db'), options.capabilities))
  // The same over a reopening: what was started goes on without the app.
  const surroundings = testSurroundings(folder)
  const open = async (ownerSecrets: string[]) => {
    const app = await createApp({
      database,
      ...surroundings,
      onDefect: () => {},
      ...options,
      ports: { ...surroundings.ports, ...options.ports },
      ownerSecrets,
    })
    const write = app.engine.write.bind(app.engine)
    app.engine.write = (job) => write(job).finally(written)
    return app
  }
  const state = { app: await open([]) }
  let serves = true
  const ownerOf = async (app: App) => {
    const found = await app.identity.authenticate(app.engine.view, app.ownerToken)
    if (!found) throw new Error('the owner is not known')
    return new Caller(app, app.ownerToken, found.principal.id, 'owner')
  }
  const self: TestApp = {
    app: state.app,
    folder,
    database,
    owner: await ownerOf(state.app),
    async agent(role, more = {}) {
      const invited = await self.owner.call('agent_invite', { role, ...more })
      return new Caller(self.app, invited.token, invited.agent_id, invited.handle)
    },
    async worker(taskId) {
      const worker = await self.agent('worker')
      await self.owner.call('task_assign', { task_id: taskId, agent_id: worker.id })
      return worker
    },
    async project() {
      const { projects } = await self.owner.call('project_list')
      return projects[0]?.id ?? (await self.owner.call('project_create', { name: 'Web' })).project_id
    },
    async task(fields = {}) {
      const project_id = await self.project()
      return (await self.owner.call('task_create', { project_id, title: 'Do it', ...fields })).task
    },
    events: async ({ type, subject } = {}) => {
      const { ledger, view } = self.app.engine
      // On PostgreSQL an older transaction that is still open, as a heartbeat, hides for a moment what was committed after it began.
      await until(async () => !(await ledger.news(view, await ledger.head(view), 1)).heldBack)
      const all = await self.app.feed.read(
        { kind: 'system', id: 'system', name: '', handle: '', profile: 'maintainer', scope: {} },
        undefined,
        { subject, types: type ? [type] : undefined },
        10_000,
      )
      return all
    },
    async leave() {
      if (serves) await self.app.close()
      serves = false
    },
    async reopen(whileClosed) {
      const secret = self.app.ownerToken
      await self.leave()
      whileClosed?.()
      self.app = await open([secret])
      serves = true
      self.owner = await ownerOf(self.app)
    },
    async close() {
      await self.leave()
      clones?.drop(database)
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    },
  }
  return self
}

async function newFile(path: string, own: AppOptions['capabilities']): Promise<string> {
  if (!own) await migratedFile(path)
  return path
}

let ofThisProcess: Clones | undefined

/** None on SQLite. */
function clonesHere(): Clones | undefined {
  const server = inject('postgres')
  if (server) ofThisProcess ??= new Clones(server)
  return ofThisProcess
}

/** A fresh app per test; capability suites are written against this alone, so that they run on every engine. */
export const test = base.extend<{ app: TestApp }>({
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
  app: async ({}, use) => {
    const app = await openTestApp()
    await use(app)
    await app.close()
  },
})
