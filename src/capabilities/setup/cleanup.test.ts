import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { EFFECT_TIMES } from '../../kernel/effect.ts'
import { redactText } from '../../kernel/redact.ts'
import { openTestApp } from '../../testing/app.ts'
import { until } from '../../testing/signals.ts'
import { CheckingRunner, type Work, WorkGround } from '../../testing/work.ts'
import { secretsIn } from './secrets.ts'

class Ground extends WorkGround {
  readonly runner: CheckingRunner
  /** Outside of every checkout: what a cleanup leaves there can be read afterwards. */
  readonly notes: string

  constructor(app: WorkGround['app'], runner: CheckingRunner) {
    super(app)
    this.runner = runner
    this.notes = join(app.folder, 'notes')
  }

  static async open(repo: Record<string, unknown> = {}): Promise<Ground> {
    const runner = new CheckingRunner()
    const app = await openTestApp({ ports: { runner }, effectTimes: { ...EFFECT_TIMES, backOffMs: 1 } })
    onTestFinished(() => app.close())
    const ground = await new Ground(app, runner).prepare()
    writeFileSync(join(ground.top, '.gitignore'), '.env*\n')
    ground.git(ground.top, 'add', '--all')
    ground.git(ground.top, 'commit', '-q', '-m', 'ignore')
    await ground.change(repo)
    return ground
  }

  change(fields: Record<string, unknown>) {
    return Object.keys(fields).length ? this.app.owner.call('repo_update', { repo_id: this.repo, ...fields }) : undefined
  }

  /** Its task is done, its agent gone: the worktree may be taken. */
  async over({ task }: Work): Promise<void> {
    await this.app.owner.call('task_close', { task_id: task.id, reason: 'Over.' })
    await until(async () => (await this.app.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'ended')
  }

  collect({ task }: Work) {
    return this.app.owner.call('work_collect', { task_id: task.id })
  }

  async cleaned() {
    return (await this.app.events({ type: 'setup.cleaned' })).map(({ data, task }): Record<string, unknown> => ({ ...data, task }))
  }

  get said(): string {
    return existsSync(this.notes) ? readFileSync(this.notes, 'utf8') : ''
  }
}

describe('the cleanup', () => {
  test('[SU16] of a worktree runs in it before it is taken away, with its name and its ports', async () => {
    const ground = await Ground.open()
    await ground.change({ cleanup: `pwd >> ${ground.notes}` })
    const work = await ground.begun()
    await ground.over(work)
    expect(ground.said).toBe('')
    await ground.collect(work)
    await until(() => !existsSync(work.path))
    expect(ground.said).toBe(`${work.path}\n`)
    const run = [...ground.runner.ran.keys()].find((name) => name.startsWith('cleanup_'))
    expect(ground.runner.ran.get(run as string)?.env).toMatchObject({
      PORT: '20000',
      SIGNALBOX_NAME: `web-${work.task.handle.toLowerCase()}`,
    })
    expect(await ground.cleaned()).toEqual([
      { handle: work.task.handle, work_id: expect.any(String), command: `pwd >> ${ground.notes}`, failure: null, task: work.task.id },
    ])
    expect(ground.runner.started.filter((name) => name.startsWith('cleanup'))).toEqual([])
  })

  test('[SU16] that fails is told, and the worktree goes all the same', async () => {
    const ground = await Ground.open({ cleanup: 'echo no such database; exit 3' })
    const work = await ground.begun()
    await ground.over(work)
    await ground.collect(work)
    await until(() => !existsSync(work.path))
    expect((await ground.cleaned())[0]?.failure).toBe('Cleanup failed: `echo no such database; exit 3` ended with 3.\nno such database')
  })

  test('[SU16] is not run where somebody has begun again, and who begins after it is set up anew', async () => {
    const ground = await Ground.open({ setup: 'true' })
    await ground.change({ setup: `echo setup >> ${ground.notes}`, cleanup: `echo cleanup >> ${ground.notes}; sleep 0.3` })
    const work = await ground.begun()
    await ground.over(work)
    await ground.collect(work)
    await until(() => ground.said.includes('cleanup'))
    await ground.app.owner.call('task_move', { task_id: work.task.id, status: 'BACKLOG' })
    await ground.app.owner.call('job_submit', { task_id: work.task.id, action: 'start_agent', harness: 'fake' })
    await until(async () => (await ground.app.owner.call('run_list', { task_id: work.task.id })).runs[0]?.state === 'running')
    expect(ground.said.split('\n').filter(Boolean)).toEqual(['setup', 'cleanup', 'setup'])
  })

  test('[SU16] is told of a setup that had passed: it did not fail', async () => {
    const ground = await Ground.open({ setup: 'true', cleanup: 'true' })
    const work = await ground.begun()
    await ground.over(work)
    await ground.collect(work)
    await until(() => !existsSync(work.path))
    const { setup } = await ground.app.owner.call('setup_get', { task_id: work.task.id })
    expect(setup).toMatchObject({ state: 'cleaned_up', reason: 'Its cleanup was run.' })
  })

  test.each([
    ['that pass', 'true', 'merged'],
    ['that fail', 'test ! -e one.txt', 'sent_back'],
  ])('[SU16] of checks runs in their checkout after checks %s', async (_, checks) => {
    const ground = await Ground.open()
    await ground.change({ checks, cleanup: `ls one.txt >> ${ground.notes}; exit 1` })
    const work = await ground.handedIn('one.txt')
    await ground.app.owner.call('review_decide', { task_id: work.task.id, decision: 'approve' })
    await until(() => ground.said !== '')
    const expected = checks === 'true' ? 1 : 3
    await until(async () => (await ground.cleaned()).length === expected)
    expect((await ground.cleaned())[0]).toMatchObject({ handle: 'web', work_id: null, failure: expect.stringContaining('ended with 1.') })
    const { task } = await ground.app.owner.call('task_get', { task_id: work.task.id })
    expect(task.status).toBe(checks === 'true' ? 'DONE' : 'IN_PROGRESS')
    expect(ground.runner.started.filter((name) => name.startsWith('cleanup') || name.startsWith('check-'))).toEqual([])
  })
})

describe('what a setup prints', () => {
  test('[SU17] is read while it runs and waited for, and stays when it has failed; not by another task’s agent', async () => {
    const ground = await Ground.open()
    await ground.change({ setup: `echo one; until test -e ${ground.notes}; do sleep 0.02; done; echo two; exit 4` })
    const task = await ground.app.task()
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    const get = (more: object = {}) => ground.app.owner.call('setup_get', { task_id: task.id, ...more })
    await until(async () => (await get()).setup?.log === 'one\n')
    expect(await get()).toMatchObject({
      setup: { state: 'running', log: 'one\n', how: null, reason: null, ended_at: null, mark: expect.any(Number) },
      ports: { first: 20_000, last: 20_009 },
      name: `web-${task.handle.toLowerCase()}`,
    })
    const waiting = get({ after: (await get()).setup.mark })
    writeFileSync(ground.notes, '')
    const { setup } = await waiting
    expect(setup.log).toContain('two')
    await until(async () => (await get()).setup.state === 'failed')
    expect((await get()).setup).toMatchObject({ log: 'one\ntwo\n', mark: null, reason: expect.stringContaining('ended with 4.\none\ntwo') })
    const stranger = await ground.app.worker((await ground.app.task()).id)
    expect((await stranger.refused('setup_get', { task_id: task.id })).code).toBe('PERMISSION_DENIED')
  })

  test('[SU17] of a task without a worktree is nothing', async () => {
    const ground = await Ground.open()
    const task = await ground.app.task()
    expect(await ground.app.owner.call('setup_get', { task_id: task.id })).toEqual({ setup: null, ports: null, name: null })
  })
})

describe('secrets in copied files', () => {
  test('[SU18] are found in a file of a single line without holding up the daemon', () => {
    const before = performance.now()
    for (const part of ['a', 'a.', 'a:', '"a":', 'a://', 'a\\n']) secretsIn(part.repeat((256 * 1_024) / part.length))
    expect(performance.now() - before).toBeLessThan(5_000)
  })

  const SECRET = 'hunter2-hunter2'

  test('[SU18] stand in no log, no transcript and no audit, also of a daemon that was started later', async () => {
    const ground = await Ground.open()
    writeFileSync(join(ground.top, '.env'), `DB_PASSWORD="${SECRET}"\nMODE=development\n`)
    await ground.change({ files: ['.env'], setup: 'cat .env; exit 1' })
    const task = await ground.app.task({ description: `Use ${SECRET}.` })
    await ground.app.owner.call('setting_update', { key: 'runs.max_lives', value: 1 })
    await ground.app.owner.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'fake' })
    await until(async () => (await ground.app.owner.call('setup_get', { task_id: task.id })).setup?.state === 'failed')
    const { setup } = await ground.app.owner.call('setup_get', { task_id: task.id })
    expect(setup.log).toBe('DB_PASSWORD="[redacted]"\nMODE=development\n')
    expect(setup.reason).not.toContain(SECRET)
    await ground.app.owner.call('task_note', { task_id: task.id, body: `It is ${SECRET}` })
    const { calls } = await ground.app.owner.call('audit_tail', { limit: 20 })
    expect(JSON.stringify(calls)).toContain('It is [redacted]')
    expect(JSON.stringify(calls.slice(0, 3))).not.toContain(SECRET)
    writeFileSync(join(ground.top, '.env'), 'DB_PASSWORD=another-hunter\n')
    await ground.app.reopen()
    expect(redactText('another-hunter')).toBe('[redacted]')
  })

  test.each([
    ['API_KEY=abcdefgh', ['abcdefgh']],
    ["export AWS_SECRET='a b c d e f'", ['a b c d e f']],
    ['DATABASE_URL=postgres://me:pass%40word@localhost:5432/shop', ['pass%40word', 'pass@word']],
    ['  "clientSecret": "0123456789",', ['0123456789']],
    ['SESSION=9f86d081884c7d659a2feaa0c55ad015', ['9f86d081884c7d659a2feaa0c55ad015']],
    ['API_KEY=abcdefgh # for tests', ['abcdefgh']],
    ['API_KEY="abcdefgh" # for tests', ['abcdefgh']],
    [
      '{"api_key":"abcdefgh","password":"with \\"quotes\\"","url":"https://me:12345678@localhost"}',
      ['12345678', 'abcdefgh', 'with \\"quotes\\"', 'with "quotes"'],
    ],
    ['{ user: me, password: 12345678, host: localhost }', ['12345678, host: localhost }', '12345678']],
    ['//registry.test/:_authToken=abcdefgh', ['abcdefgh']],
    ['KEY="-----BEGIN KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQ==\\n-----END KEY-----"', ['MIIEvQIBADANBgkqhkiG9w0BAQ==']],
    ['MIIEvQIBADANBgkqhkiG9w0BAQEFAASC', ['MIIEvQIBADANBgkqhkiG9w0BAQEFAASC']],
    ['# API_KEY=abcdefgh', ['abcdefgh']],
    ['# The token: ask the one who made it', []],
    ['CACHE=/var/lib/web-shop2/cache/of/packages', []],
    ['FEATURE_FLAGS_OF_VERSION_2_ENABLED=true', []],
    ['NODE_ENV=development', []],
    ['HOST=http://localhost:3000/some/path/that/is/long', []],
    ['PASSWORD=short', []],
    ['# a comment about the token', []],
    ['', []],
  ])('[SU18] are what is called or looks like one: %s', (line, secrets) => {
    expect(secretsIn(line)).toEqual(secrets)
  })
})
