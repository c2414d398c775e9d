import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import type { RunnerState, RunSpec } from '../../ports/runner.ts'
import { openTestApp, type TestApp } from '../../testing/app.ts'
import { FakeRunner } from '../../testing/fakes/runs.ts'
import { depend, pack } from '../../testing/packages.ts'
import { SetupGround } from '../../testing/setup-ground.ts'
import { deferred, until } from '../../testing/signals.ts'
import { CheckingRunner } from '../../testing/work.ts'
import { lineHolder } from './ports.ts'
import { setupStore } from './store.ts'

/** Setups note that they began, and go on when they are let go. */
class Gate extends SetupGround {
  static override async open(repo = {}, runner = new CheckingRunner(), options: { hostName?: string } = {}): Promise<Gate> {
    const ground = Object.setPrototypeOf(await SetupGround.open(repo, runner, options), Gate.prototype) as Gate
    await ground.change({ setup: `echo x >> begun.txt; until test -e '${ground.go}'; do sleep 0.05; done` })
    return ground
  }

  get go(): string {
    return join(this.app.folder, 'go')
  }

  letGo(): void {
    writeFileSync(this.go, '')
  }

  async setup(task: string): Promise<{ state: string; reason: string | null } | null> {
    return (await this.app.owner.call('setup_get', { task_id: task, wait_seconds: 0 })).setup
  }

  async stop(task: string): Promise<void> {
    await this.app.owner.call('job_submit', { task_id: task, action: 'stop_agent' })
    await until(async () => (await this.job(task)).state !== 'running')
  }

  /** A task whose setup waits behind that of another. */
  async two(): Promise<[string, string]> {
    const first = await this.start()
    // Begun at once, either of them could be the one that waits.
    await until(() => this.runner.setups === 1)
    const second = await this.start()
    await until(async () => (await this.setup(second.id))?.state === 'running')
    return [first.id, second.id]
  }
}

describe('a setup that waits for its turn', () => {
  test('[SU5] is ended at once when its agent is stopped, and never begins; the next one begins in its turn', async () => {
    const ground = await Gate.open()
    const [first, second] = await ground.two()
    await ground.stop(second)
    await until(async () => (await ground.setup(second))?.state === 'failed')
    expect([(await ground.setup(first))?.state, (await ground.attention(second))[0]]).toEqual(['running', 'human'])
    await ground.app.owner.call('job_submit', { task_id: second, action: 'resume_agent' })
    await until(async () => (await ground.setup(second))?.state === 'running')
    ground.letGo()
    await ground.running(first)
    await ground.running(second)
    expect(readFileSync(join(await ground.place(second), 'begun.txt'), 'utf8')).toBe('x\n')
    expect(ground.runner.setups).toBe(2)
  })

  test('[SU5] is ended also when the stop comes between the launch and the setup', async () => {
    const [looked, letLook] = [deferred(), deferred()]
    /** The first look at a run stands still, when it is already read that nobody has stopped it. */
    class Slow extends CheckingRunner {
      override async look(run: string): Promise<RunnerState> {
        if (run.startsWith('run_')) {
          looked.resolve()
          await letLook.promise
        }
        return super.look(run)
      }
    }
    const ground = await Gate.open({}, new Slow())
    const task = await ground.start()
    await looked.promise
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
    letLook.resolve()
    await until(async () => (await ground.setup(task.id))?.state === 'failed')
    await until(() => ground.runner.living.length === 0)
    expect(ground.agents).toEqual([])
  })

  test('[SU5] goes on for whoever else waits for it', async () => {
    const ground = await Gate.open({ dev: 'sleep 60' })
    const [first, second] = await ground.two()
    void ground.app.owner.call('preview_start', { task_id: second }).catch(() => {})
    const setups = setupStore(ground.app.app.engine.view)
    await until(async () => JSON.parse((await setups.running([second]))[0]?.waiting ?? '[]').length === 2)
    await ground.stop(second)
    ground.letGo()
    await ground.running(first)
    await until(() => ground.runner.started.some((run) => run.startsWith('preview')))
    expect([ground.runner.setups, (await ground.app.events({ type: 'setup.started' })).length]).toEqual([2, 2])
  })

  test('[SU5] of a preview is ended when that is stopped', async () => {
    const ground = await Gate.open({ dev: 'sleep 60' })
    const [first, second] = await ground.two()
    await ground.stop(second)
    void ground.app.owner.call('preview_start', { task_id: second }).catch(() => {})
    await until(async () => (await ground.setup(second))?.state === 'running')
    await ground.app.owner.call('preview_stop', { task_id: second })
    await until(async () => (await ground.setup(second))?.state === 'failed')
    expect((await ground.setup(first))?.state).toBe('running')
  })

  test('[SU5] of a terminal is ended when that is closed', async () => {
    const ground = await Gate.open()
    const first = await ground.start()
    await until(() => ground.runner.setups === 1)
    await ground.app.owner.call('setting_update', { key: 'runs.default_harness', value: 'fake' })
    const pair = await ground.app.task({ task_type: 'PAIR' })
    const opening = ground.app.owner.call('session_open', { task_id: pair.id }).catch(() => {})
    await until(async () => (await ground.setup(pair.id))?.state === 'running')
    await ground.app.owner.call('session_close', { task_id: pair.id })
    await until(async () => (await ground.setup(pair.id))?.state === 'failed')
    await opening
    expect([(await ground.setup(first.id))?.state, ground.runner.setups]).toEqual(['running', 1])
  })

  test('[SU4] [SU5] one whose daemon is gone when it is stopped is ended by the next daemon', async () => {
    const ground = await Gate.open()
    const task = await ground.start()
    await until(() => ground.runner.setups === 1)
    const { runner } = ground
    const setup = runner.started.find((run) => run.startsWith('setup')) as string
    const stop = runner.stop.bind(runner)
    // Killed between the word that it is ended and the end of its process.
    runner.stop = async (run, why) => (run === setup ? new Promise(() => {}) : stop(run, why))
    await ground.stop(task.id)
    await until(async () => (await ground.setup(task.id))?.state === 'failed')
    expect(runner.living).toEqual([setup])
    await ground.app.reopen(() => {
      runner.stop = stop
    })
    await until(() => runner.living.length === 0)
    await until(() => !runner.runs.has(setup))
  })
})

describe('a setup that cannot be run', () => {
  /** As on a full disk, so many times. */
  class Broken extends CheckingRunner {
    tries = 0
    readonly fails: number

    constructor(fails: number) {
      super()
      this.fails = fails
    }

    override async start(run: string, spec: RunSpec) {
      if (run.startsWith('setup') && ++this.tries <= this.fails) throw new Error('no space left')
      return super.start(run, spec)
    }
  }

  test('[SU3] is tried again, and given up after six failures: its job says why', async () => {
    const runner = new Broken(Number.POSITIVE_INFINITY)
    const ground = await SetupGround.open({ setup: 'true' }, runner)
    const task = await ground.start()
    await until(async () => (await ground.job(task.id))?.state === 'failed')
    expect((await ground.job(task.id)).reason).toContain('The setup could not be run: no space left')
    expect([runner.tries, ground.agents]).toEqual([6, []])
  })

  test('[SU3] that left no room for what it prints has failed: begun again, it would fill the disk again', async () => {
    class Full extends CheckingRunner {
      tries = 0
      override async start(run: string, spec: RunSpec) {
        if (!run.startsWith('setup')) return super.start(run, spec)
        this.tries++
        const started = await FakeRunner.prototype.start.call(this, run, spec)
        this.exit(run, null, { reason: 'spool_failed', detail: 'What it printed could not be kept: ENOSPC' })
        return started
      }
    }
    const runner = new Full()
    const ground = await SetupGround.open({ setup: 'true' }, runner)
    const task = await ground.start()
    await until(async () => (await ground.job(task.id))?.state === 'failed')
    expect((await ground.job(task.id)).reason).toContain('could not go on: What it printed could not be kept: ENOSPC')
    expect(runner.tries).toBe(1)
  })

  test('[SU3] five times is run at the sixth', async () => {
    const runner = new Broken(5)
    const ground = await SetupGround.open({ setup: 'true' }, runner)
    const task = await ground.start()
    await ground.running(task.id)
    expect(runner.tries).toBe(6)
  })
})

describe('files brought below a package folder', () => {
  test('[SU8] [SU9] are in no kept packages, and kept packages do not take their place', async () => {
    // Other than `npm ci` it leaves what is there.
    const setup = 'npm install --offline --no-audit --no-fund'
    const ground = await SetupGround.open({ setup })
    pack(ground.top, 'greet')
    depend(ground.top, 'greet')
    execFileSync('sh', ['-c', setup], { cwd: ground.top, stdio: 'ignore' })
    ground.commit(ground.top, '.gitignore', 'node_modules\n')
    writeFileSync(join(ground.top, 'node_modules/.key'), 'secret')
    const kept = async () => (await ground.app.owner.call('setup_kept', {})).kept.length
    const begun = async () => {
      const task = await ground.start()
      await ground.running(task.id)
      return ['.key', 'greet/index.js'].map(async (file) => existsSync(join(await ground.place(task.id), 'node_modules', file)))
    }
    await ground.change({ files: ['node_modules/.key'] })
    expect(await Promise.all(await begun())).toEqual([true, true])
    expect(await kept()).toBe(0)
    await ground.change({ files: [] })
    expect(await Promise.all(await begun())).toEqual([false, true])
    expect(await kept()).toBe(1)
    await ground.change({ files: ['node_modules/.key'] })
    expect(await Promise.all(await begun())).toEqual([true, true])
  })
})

describe('a machine', () => {
  test('[SU4] of another name goes on with its setups', async () => {
    const options = { hostName: 'before' }
    const ground = await Gate.open({}, new CheckingRunner(), options)
    const task = await ground.start()
    await until(() => ground.runner.setups === 1)
    await ground.app.reopen(() => {
      options.hostName = 'after'
    })
    ground.letGo()
    await ground.running(task.id)
    expect(ground.runner.setups).toBe(1)
  })

  test.runIf(inject('postgres'))('[SU4] that is gone keeps its own setups waiting, and nobody else’s', async () => {
    const gone = await Gate.open({}, new CheckingRunner(), { hostName: 'gone:/a' })
    const [first] = await gone.two()
    await gone.app.leave()
    const runner = new CheckingRunner()
    const here = await another(gone.app, { hostName: 'here:/a', runner })
    const task = await here.task()
    await here.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    await until(() => runner.setups === 1)
    gone.letGo()
    await until(async () => (await here.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'running')
    // Of the other one nothing was touched.
    expect(runner.ran.size).toBe(1)
    await here.leave()
    await gone.app.reopen()
    await gone.running(first)
  })
})

describe.runIf(inject('postgres'))('ports of daemons that share a database', () => {
  test('[SU14] are never alike on one machine, whoever asks first; another machine has ports of its own', async () => {
    const one = await SetupGround.open({ setup: 'true' }, new CheckingRunner(), { hostName: 'laptop:/one' })
    const runner = new CheckingRunner()
    const two = await another(one.app, { hostName: 'laptop:/two', runner })
    const ask = async ({ app }: TestApp, n: number) => {
      const input = { machine: 'laptop', taken: [], holder: lineHolder(one.repo, `release-${n}`), name: 'x' }
      const answer = await app.kernel.invoke({ tool: 'setup_ports', input, credential: 'system', surface: 'daemon' })
      if (!answer.ok) throw new Error(JSON.stringify(answer.error))
      return (answer.value as { port: number }).port
    }
    const asked = await Promise.all(Array.from({ length: 20 }, (_, n) => ask(n % 2 ? one.app : two, n)))
    expect([...asked].sort()).toEqual(Array.from({ length: 20 }, (_, n) => 20_000 + 10 * n))

    const begun = async (app: TestApp, { ran }: CheckingRunner) => {
      const task = await app.task()
      await app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
      await until(async () => (await app.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'running')
      return [...ran.values()].map(({ env }) => env.PORT)
    }
    // One alone serves, so that it is the one that leases.
    await one.app.leave()
    expect(await begun(two, runner)).toEqual(['20200'])
    await two.leave()
    const there = new CheckingRunner()
    expect(await begun(await another(one.app, { hostName: 'server:/one', runner: there }), there)).toEqual(['20000'])
  })
})

describe.runIf(inject('postgres'))('kept packages of daemons that share a database', () => {
  test('[SU13] are deleted on the machine on which that was asked for', async () => {
    const one = await SetupGround.open({}, new CheckingRunner(), { hostName: 'laptop:/one' })
    await another(one.app, { hostName: 'server:/one' })
    const folder = join(one.app.folder, 'packages', 'a'.repeat(40))
    const manifest = { command: 'npm ci', madeIn: '/x', paths: [], naming: { files: [], links: [] }, bytes: 1, kept_at: 1 }
    // Whichever of the two takes it up.
    for (let i = 0; i < 6; i++) {
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest))
      await one.app.owner.call('setup_forget', i % 2 ? {} : { key: 'a'.repeat(40) })
      await until(async () => (await one.app.owner.call('setup_kept', {})).kept.length === 0)
    }
  })
})

/** A daemon on the same database, with a disk of its own. */
async function another(app: TestApp, { hostName, runner }: { hostName: string; runner?: CheckingRunner }): Promise<TestApp> {
  const other = await openTestApp({ database: app.database, hostName, ...(runner ? { ports: { runner } } : {}) })
  onTestFinished(() => other.close())
  return other
}
