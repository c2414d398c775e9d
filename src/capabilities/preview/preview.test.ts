import { existsSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EFFECT_TIMES } from '../../kernel/effect.ts'
import { openTestApp } from '../../testing/app.ts'
import { FakeListeners } from '../../testing/fakes/listeners.ts'
import { FakeRunner } from '../../testing/fakes/runs.ts'
import { until } from '../../testing/signals.ts'
import { type Work, WorkGround } from '../../testing/work.ts'

/** Ports on which somebody answers. */
class Ground extends WorkGround {
  readonly runner: FakeRunner
  readonly listeners: FakeListeners

  constructor(app: WorkGround['app'], runner: FakeRunner, listeners: FakeListeners) {
    super(app)
    this.runner = runner
    this.listeners = listeners
  }

  static async open(dev: string | null = 'npm run dev'): Promise<Ground> {
    const [runner, listeners] = [new FakeRunner(), new FakeListeners()]
    const app = await openTestApp({ ports: { runner, listeners }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
    onTestFinished(() => app.close())
    const ground = await new Ground(app, runner, listeners).prepare()
    if (dev) await app.owner.call('repo_update', { repo_id: ground.repo, dev })
    return ground
  }

  start({ task }: Pick<Work, 'task'>) {
    return this.app.owner.call('preview_start', { task_id: task.id })
  }

  /** Started, and its program too. */
  async starting(work: Work): Promise<{ id: string; answer: Promise<unknown> }> {
    const answer = this.app.owner.invoke('preview_start', { task_id: work.task.id })
    const id = await found(() => this.previews.at(-1))
    return { id, answer: answer.then((told) => (told.ok ? told.value : told.error)) }
  }

  /** One that answers. */
  async ready(work: Work): Promise<string> {
    const { id, answer } = await this.starting(work)
    this.listeners.open.add(20_000)
    await answer
    return id
  }

  /** Programs of previews that were started. */
  get previews(): string[] {
    return this.runner.started.filter((run) => run.startsWith('preview_'))
  }

  async now({ task }: Work, more: object = {}) {
    return this.app.owner.call('preview_get', { task_id: task.id, ...more })
  }

  async is(work: Work, state: string) {
    await until(async () => (await this.now(work)).preview?.state === state)
    return (await this.now(work)).preview
  }
}

async function found<T>(look: () => T | undefined): Promise<T> {
  await until(() => look() !== undefined)
  return look() as T
}

describe('a preview', () => {
  test('[PV1] is the dev command in the worktree; its link is there as soon as it answers', async () => {
    const ground = await Ground.open('npm run dev -- --port "$PORT"')
    const work = await ground.begun()
    const { id, answer } = await ground.starting(work)
    expect(ground.runner.runs.get(id)?.spec).toMatchObject({
      argv: ['/bin/sh', '-c', 'npm run dev -- --port "$PORT"'],
      cwd: work.path,
      repo: ground.top,
      env: { PORT: '20000', SIGNALBOX_NAME: `web-${work.task.handle.toLowerCase()}`, BROWSER: 'none' },
      stdin: 'open',
    })
    expect(ground.runner.runs.get(id)?.spec?.env).not.toHaveProperty('CI')
    expect((await ground.now(work)).preview).toMatchObject({ state: 'starting', url: null })
    ground.listeners.open.add(20_003)
    expect(await answer).toMatchObject({
      message: `${work.task.handle} is shown at http://localhost:20003/`,
      created: true,
      preview: { state: 'ready', url: 'http://localhost:20003/', reason: null, ended_at: null },
    })
    expect(await ground.app.owner.call('preview_list', {})).toMatchObject({
      previews: [{ handle: work.task.handle, url: 'http://localhost:20003/' }],
      next: null,
    })
  })

  test('[PV1] begins after the setup of its worktree; one that fails is told in its place', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    await ground.app.owner.call('repo_update', { repo_id: ground.repo, setup: 'make deps' })
    const answer = ground.app.owner.refused('preview_start', { task_id: work.task.id })
    const setup = await found(() => ground.runner.started.find((run) => run.startsWith('setup_')))
    expect(ground.previews).toEqual([])
    ground.runner.tell(setup, 'no rule for deps\n')
    ground.runner.exit(setup, 2)
    expect((await answer).message).toBe('Setup failed: `make deps` ended with 2.\nno rule for deps')
    expect(ground.previews).toEqual([])
  })

  test('[PV2] whose program ends has failed, and says so with what it printed last', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const { id, answer } = await ground.starting(work)
    ground.runner.tell(id, 'port taken\n')
    ground.runner.exit(id, 1)
    expect(await answer).toMatchObject({
      code: 'INVALID_AGENT_STATE',
      message: '`npm run dev` ended with 1.\nport taken',
      hint: 'Mend that, then start it again.',
    })
    expect(await ground.now(work)).toMatchObject({ preview: { state: 'failed' }, log: 'port taken\n', mark: null })
    await until(() => !ground.runner.runs.has(id))
  })

  test('[PV2] [PV6] that never answers is ended, and says on which ports it should have listened, with what it printed', async () => {
    const ground = await Ground.open()
    await ground.app.owner.call('setting_update', { key: 'preview.answer_minutes', value: 0.01 })
    const work = await ground.begun()
    const { id, answer } = await ground.starting(work)
    ground.runner.tell(id, 'listening on 3000\n')
    expect(await answer).toMatchObject({
      message: '`npm run dev` did not answer in time on any port from 20000 to 20009. Let it listen on $PORT.\nlistening on 3000',
    })
    expect(await ground.now(work)).toMatchObject({ log: 'listening on 3000\n' })
    await until(() => ground.previews.length === 0)
  })

  test('[PV2] is nothing that somebody else shows on its port', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    ground.listeners.open.add(20_002)
    expect((await ground.app.owner.refused('preview_start', { task_id: work.task.id })).message).toContain(
      'A program answers on port 20002 already, which belongs to this worktree.',
    )
    expect(ground.previews).toEqual([])
  })

  test('[PV3] [PV6] ends when somebody stops it; what it printed stays', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const id = await ground.ready(work)
    ground.runner.tell(id, 'GET /\n')
    expect(await ground.app.owner.call('preview_stop', { task_id: work.task.id })).toMatchObject({
      stopped: true,
      preview: { state: 'ended', reason: 'It was stopped.', url: null },
    })
    await until(() => !ground.runner.runs.has(id))
    expect(await ground.now(work)).toMatchObject({ log: 'GET /\n' })
    expect(await ground.app.owner.refused('preview_stop', { task_id: work.task.id })).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
      message: `No preview of ${work.task.handle} is running.`,
    })
  })

  test('[PV3] that is stopped while its worktree is set up starts nothing afterwards', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    await ground.app.owner.call('repo_update', { repo_id: ground.repo, setup: 'make deps' })
    const answer = ground.app.owner.refused('preview_start', { task_id: work.task.id })
    const setup = await found(() => ground.runner.started.find((run) => run.startsWith('setup_')))
    await ground.app.owner.call('preview_stop', { task_id: work.task.id })
    expect((await answer).message).toBe('It was stopped.')
    ground.runner.exit(setup, 0)
    await until(async () => (await ground.app.events({ type: 'setup.ended' })).length === 1)
    await ground.app.owner.call('repo_update', { repo_id: ground.repo, setup: null })
    const { answer: next } = await ground.starting(work)
    ground.listeners.open.add(20_000)
    await next
    expect(ground.previews).toHaveLength(1)
  })

  test.each(['task_close', 'task_delete'])('[PV3] ends with its task: %s', async (tool) => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const id = await ground.ready(work)
    await ground.app.owner.call(tool, { task_id: work.task.id, ...(tool === 'task_close' && { reason: 'Not needed.' }) })
    await until(() => !ground.runner.runs.has(id))
    const [ended] = await ground.app.events({ type: 'preview.ended' })
    expect(ended?.data).toMatchObject({ state: 'ended', reason: 'It was stopped.' })
  })

  test('[PV3] ends with its worktree, before that is taken away', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const id = await ground.ready(work)
    ground.runner.exit(ground.runner.started.find((run) => run.startsWith('run_')) as string)
    const wasThere: boolean[] = []
    const stop = ground.runner.stop.bind(ground.runner)
    ground.runner.stop = (run, why) => {
      if (run === id) wasThere.push(existsSync(work.path))
      return stop(run, why)
    }
    await ground.app.owner.call('repo_remove', { repo_id: ground.repo, close_tasks: true })
    await until(() => !existsSync(work.path))
    expect(wasThere[0]).toBe(true)
    expect(ground.previews).toEqual([])
  })

  test('[PV4] goes on without the daemon; the next one sees it answer and sees it end', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const { id } = await ground.starting(work)
    await until(async () => (await ground.app.events({ type: 'preview.started' })).length === 1)
    await ground.app.reopen()
    ground.listeners.open.add(20_000)
    await ground.is(work, 'ready')
    expect(ground.previews).toEqual([id])
    await ground.app.reopen(() => ground.runner.exit(id, null, { reason: 'runner_lost', detail: 'It was killed.' }))
    expect((await ground.is(work, 'failed')).reason).toMatch(/could not go on: It was killed\.(?!\.)/)
  })

  test('[PV4] whose process is not there any more is told as failed', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const id = await ground.ready(work)
    await ground.app.reopen(() => ground.runner.runs.delete(id))
    expect((await ground.is(work, 'failed')).reason).toBe('Its process is gone.')
  })

  test('[PV5] is one of a task, however often it is asked for', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    await ground.ready(work)
    const [one, other] = await Promise.all([ground.start(work), ground.start(work)])
    expect([one.created, other.created, one.preview.id === other.preview.id]).toEqual([false, false, true])
    expect(ground.previews).toHaveLength(1)
  })

  test('[PV5] needs a worktree and a dev command, and says what to do', async () => {
    const ground = await Ground.open(null)
    const task = await ground.app.task()
    expect(await ground.app.owner.refused('preview_start', { task_id: task.id })).toMatchObject({
      message: `There is no worktree yet: nothing of ${task.handle} can be shown.`,
      next_tool: 'job_submit',
    })
    const work = await ground.begun()
    expect(await ground.app.owner.refused('preview_start', { task_id: work.task.id })).toMatchObject({
      message: 'web has no dev command.',
      hint: expect.stringContaining('signalbox repo update web --dev "npm run dev"'),
    })
    expect(await ground.now(work)).toEqual({ preview: null, log: '', mark: null, dev: null, worktree: true })
  })

  test('[PV6] is read while it runs, and waited for; another task’s agent may not', async () => {
    const ground = await Ground.open()
    const work = await ground.begun()
    const id = await ground.ready(work)
    ground.runner.tell(id, 'one\n')
    const { log, mark } = await ground.now(work)
    expect(log).toBe('one\n')
    const more = ground.now(work, { after: mark })
    ground.runner.tell(id, 'two\n')
    expect((await more).log).toBe('one\ntwo\n')
    expect((await ground.now(work, { after: (await more).mark, wait_seconds: 0 })).log).toBe('one\ntwo\n')
    const stranger = await ground.app.worker((await ground.app.task()).id)
    expect((await stranger.refused('preview_get', { task_id: work.task.id })).code).toBe('PERMISSION_DENIED')
    expect((await stranger.refused('preview_start', { task_id: work.task.id })).code).toBe('PERMISSION_DENIED')
  })
})
