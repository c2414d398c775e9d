import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { leftBehind, survivors } from '../../src/testing/survivors.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { databaseOf, rows, until } from './support.ts'

type Any = ReturnType<typeof JSON.parse>

const hasNamespaces = spawnSync('unshare', ['--user', '--map-root-user', '--mount', 'mount', '-t', 'tmpfs', 'x', '/mnt']).status === 0
if (!hasNamespaces) console.warn('NOT RUN: [E65] what an agent in a namespace does not see (needs unshare without root)')

const ASKING = ['node', join(import.meta.dirname, '../../src/adapters/acp/agent.mjs'), '{"always":"permit"}']

/** A real daemon, a real repository, real processes. */
class Site {
  readonly daemon = new TestDaemon({ env: { ANTHROPIC_API_KEY: 'sk-ant-not-for-agents-0123456789' } })
  readonly repo = repository()
  project = ''

  static async open(settings: Record<string, unknown> = {}): Promise<Site> {
    const site = new Site()
    await site.daemon.start()
    const quick = {
      'runs.back_off_seconds': 0,
      'runs.linger_seconds': 2,
      'runs.quota_least_seconds': 0,
      'runs.max_per_host': 40,
      'runs.max_per_project': 40,
      ...settings,
    }
    for (const [key, value] of Object.entries(quick)) await site.daemon.call('setting_update', { key, value })
    site.project = (await site.daemon.call('project_create', { name: 'Web' })).project_id
    await site.daemon.call('repo_add', { path: site.repo, project_id: site.project, checks: 'test -f a.txt' })
    return site
  }

  async task(script: unknown[], more: object = {}): Promise<string> {
    const description = `\`\`\`signalbox\n${JSON.stringify(script)}\n\`\`\`\n`
    return (await this.daemon.call('task_create', { project_id: this.project, title: 'Do it', description, ...more })).task_id
  }

  async start(task_id: string, given: object = {}): Promise<string> {
    return (await this.daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted', ...given })).job_id
  }

  async begin(script: unknown[]): Promise<{ task: string; job: string }> {
    const task = await this.task(script)
    return { task, job: await this.start(task) }
  }

  async over(job_id: string): Promise<Any> {
    // Twice: a dozen that start at once take their time on a busy machine.
    let answer = await this.daemon.call('job_wait', { job_id, timeout_seconds: 40 })
    if (answer.code === 'WAIT_TIMEOUT') answer = await this.daemon.call('job_wait', { job_id, timeout_seconds: 40 })
    expect(answer.code).toBe('JOB_ENDED')
    return answer.job
  }

  async get(task_id: string): Promise<Any> {
    return (await this.daemon.call('task_get', { task_id })).task
  }

  /** When the transcript has it. */
  async said(task_id: string, words: string): Promise<void> {
    const found = async () => (await this.daemon.call('transcript_search', { task_id, words })).entries.length > 0
    await until(found, `"${words}" in the transcript of ${task_id}: ${this.daemon.log}`)
  }

  async runs(task_id: string): Promise<Any[]> {
    return (await this.daemon.call('run_list', { task_id })).runs
  }

  async message(task_id: string, message: string): Promise<string> {
    return (await this.daemon.call('job_submit', { task_id, action: 'message_agent', message })).job_id
  }

  survivors(): string[] {
    return survivors(this.daemon.home).map(({ argv }) => argv)
  }

  async close(): Promise<void> {
    await this.daemon.remove()
    rmSync(this.repo, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** The soak has thirty and ten. */
const STARTS = Number(process.env.SIGNALBOX_STARTS ?? 12)
const ADOPTED = Number(process.env.SIGNALBOX_ADOPTED ?? 4)
const DONE = { review: { summary: 'done' } }

describe('an agent at work', () => {
  let site: Site
  beforeAll(async () => {
    site = await Site.open()
  })
  afterAll(() => site.close())

  test('[E60] works in its own worktree and hands it in; the checkout of the user is not touched', async () => {
    writeFileSync(join(site.repo, 'mine.txt'), 'not committed')
    const { task, job } = await site.begin([
      { write: { path: 'a.txt', text: 'a\n' } },
      { commit: { message: 'add a' } },
      { note: { text: 'added' } },
      DONE,
    ])
    expect(await site.over(job)).toMatchObject({ state: 'succeeded', lives: 1 })
    expect(await site.get(task)).toMatchObject({ status: 'REVIEW', notes: [{ body: 'added' }] })
    expect(readdirSync(site.repo).sort()).toEqual(['.git', 'mine.txt'])
    const checks = (await site.daemon.call('job_submit', { task_id: task, action: 'run_checks' })).job_id
    expect(await site.over(checks)).toMatchObject({ state: 'succeeded' })
  })

  test.skipIf(!hasNamespaces)('[E65] finds neither the token of the owner nor the database, by whatever way', async () => {
    const [run, home] = [(path: string) => ({ run: { argv: ['cat', path], expect_code: 1 } }), site.daemon.home]
    expect(existsSync(join(home, 'owner.token'))).toBe(true)
    const { job } = await site.begin([run(join(home, 'owner.token')), run('../../../owner.token'), run(databaseOf(site.daemon)), DONE])
    expect(await site.over(job)).toMatchObject({ state: 'succeeded' })
  })

  test.skipIf(!hasNamespaces)('[E66] has its own worktree and no other, and its git forgets none of the others', async () => {
    const first = await site.begin([DONE])
    await site.over(first.job)
    const other = (await site.daemon.call('work_get', { task_id: first.task })).work.path as string
    const git = (...argv: string[]) => ({ run: { argv: ['git', ...argv] } })
    const second = await site.begin([
      { run: { argv: ['test', '-e', join(other, 'a.txt')], expect_code: 1 } },
      { run: { argv: ['sh', '-c', '! umount -l "$0"', site.daemon.home] } },
      git('worktree', 'prune', '--expire=now'),
      git('-c', 'gc.worktreePruneExpire=now', 'gc', '--quiet'),
      git('status'),
      DONE,
    ])
    expect(await site.over(second.job)).toMatchObject({ state: 'succeeded' })
    expect(spawnSync('git', ['status', '--porcelain'], { cwd: other })).toMatchObject({ status: 0 })
    expect(spawnSync('git', ['worktree', 'list'], { cwd: site.repo }).stdout.toString()).toContain(other)
  })

  test('[E61] a message arrives in the middle of its work, once', async () => {
    const { task, job } = await site.begin([
      { say: 'READY' },
      { wait_message: { save: 'heard' } },
      { say: 'They said {{heard.text}}.' },
      DONE,
    ])
    await site.said(task, 'READY')
    expect(await site.over(await site.message(task, 'use tabs'))).toMatchObject({ state: 'succeeded' })
    await site.said(task, 'They said use tabs.')
    expect(await site.over(job)).toMatchObject({ state: 'succeeded' })
  })

  test('[F13] a stop leaves nobody behind, whatever they did to get away, and loses no line', async () => {
    const away = ['sh', '-c', '(setsid sleep 600 & setsid sh -c "sleep 601 & sleep 602" &) ; sleep 603']
    const { task, job } = await site.begin([
      { write: { path: 'half.txt', text: 'not committed' } },
      { spawn: { argv: away } },
      { say: 'READY' },
      { sleep: { ms: 600_000 } },
    ])
    await site.said(task, 'READY')
    // The agent has started the shell; the shell may still be starting the others.
    await expect.poll(() => site.survivors().filter((argv) => argv.includes('sleep')).length).toBeGreaterThan(2)
    const stop = (await site.daemon.call('job_submit', { task_id: task, action: 'stop_agent' })).job_id
    expect(await site.over(stop)).toMatchObject({ state: 'succeeded' })
    expect(await site.over(job)).toMatchObject({ state: 'cancelled' })
    expect(await leftBehind(site.daemon.home)).toEqual([])
    expect(await site.get(task)).toMatchObject({ status: 'BACKLOG' })
    const { files } = await site.daemon.call('diff_get', { task_id: task })
    expect(files).toMatchObject([{ path: 'half.txt' }])
  })

  test('[F6] one that dies between its last commit and its report is replaced, and the work moves on', async () => {
    const { task, job } = await site.begin([
      { write: { path: 'a.txt', text: 'a\n' } },
      { commit: { message: 'add a' } },
      { if_resumed: { steps: [DONE, { exit: {} }] } },
      { crash: { signal: 'SIGKILL' } },
    ])
    expect(await site.over(job)).toMatchObject({ state: 'succeeded', lives: 2 })
    expect(await site.get(task)).toMatchObject({ status: 'REVIEW' })
    const [second, first] = await site.runs(task)
    expect(second.agent_id).toBe(first.agent_id)
  })

  test('[F7] one whose task is closed is ended and not started again', async () => {
    const { task, job } = await site.begin([{ say: 'READY' }, { sleep: { ms: 600_000 } }])
    await site.said(task, 'READY')
    await site.daemon.call('task_close', { task_id: task, reason: 'done by hand' })
    expect(await site.over(job)).toMatchObject({ state: 'cancelled' })
    expect(await site.runs(task)).toHaveLength(1)
    expect(await site.get(task)).toMatchObject({ status: 'DONE' })
  })

  test('[F15] one that dies at its start again and again ends with the reason', async () => {
    const { task, job } = await site.begin([{ crash: { code: 7 } }])
    const over = await site.over(job)
    expect(over).toMatchObject({ state: 'failed', lives: 2 })
    expect(await site.get(task)).toMatchObject({
      status: 'BACKLOG',
      attention: 'human',
      attention_detail: expect.stringContaining(over.reason),
    })
    const missing = await site.task([])
    const none = (
      await site.daemon.call('job_submit', {
        task_id: missing,
        action: 'start_agent',
        harness: 'command',
        options: { command: ['/no/such/program'] },
      })
    ).job_id
    expect(await site.over(none)).toMatchObject({ state: 'failed', reason: expect.stringMatching(/no\/such\/program/) })
    expect(await leftBehind(site.daemon.home)).toEqual([])
  })

  test('[E62] what the provider refuses until a time waits for it; a limit that is reached ends the run', async () => {
    const quota = await site.begin([
      { if_resumed: { steps: [DONE, { exit: {} }] } },
      { limit: { message: 'Usage limit reached.', resets_in_seconds: 2 } },
    ])
    expect(await site.over(quota.job)).toMatchObject({ state: 'succeeded' })
    // As the log has it: whoever looks at the task may be too late.
    const { events } = await site.daemon.call('event_list', { types: ['job.queued'], task_id: quota.task })
    expect(events).toMatchObject([{ data: { reason: expect.stringContaining('Usage limit reached.'), not_before: expect.any(String) } }])
    const task = await site.task([
      { usage: { input_tokens: 600 } },
      { turn: {} },
      { usage: { input_tokens: 600 } },
      { sleep: { ms: 600_000 } },
    ])
    const job = await site.start(task, { limits: { tokens: 1_000 } })
    expect(await site.over(job)).toMatchObject({ state: 'failed', code: 'BUDGET_EXHAUSTED' })
    const long = await site.start(await site.task([{ sleep: { ms: 600_000 } }]), { limits: { minutes: 0.02 } })
    expect(await site.over(long)).toMatchObject({ state: 'failed', code: 'BUDGET_EXHAUSTED', reason: expect.stringContaining('time') })
  })

  test('[E64] what it asks waits while the daemon is dead, and the answer reaches it once, also when that dies again', async () => {
    const task = await site.task([])
    const job = await site.start(task, { harness: 'acp', options: { command: ASKING, approvals: 'ask' } })
    const asked = async () => (await site.daemon.call('approval_list', { task_id: task })).approvals
    await until(async () => (await asked()).length === 1, 'it asks')
    const [{ id: approval_id }] = await asked()
    await site.daemon.end('SIGKILL')
    await site.daemon.start()
    expect(await asked()).toMatchObject([{ id: approval_id, state: 'pending' }])
    await site.daemon.call('approval_decide', { approval_id, decision: 'allow' })
    await site.daemon.end('SIGKILL')
    await site.daemon.start()
    await site.said(task, 'it was the-allow_once')
    expect(await asked()).toEqual([])
    // It has nothing to hand in.
    expect(await site.over(job)).toMatchObject({ state: 'failed', lives: 1 })
    const { entries } = await site.daemon.call('transcript_search', { task_id: task, words: 'it was the' })
    expect(entries).toHaveLength(1)
  })

  test('[S12] it has its own token and nobody else’s, and that is in no argv, log, audit or transcript', async () => {
    const { task, job } = await site.begin([
      { run: { argv: ['sh', '-c', 'env; cat "$SIGNALBOX_TOKEN_FILE"; echo READY'] } },
      { say: 'NOW' },
      { wait_message: {} },
      DONE,
    ])
    await site.said(task, 'NOW')
    const [run] = await site.runs(task)
    const secret = readFileSync(join(site.daemon.home, 'runs', run.id, 'token'), 'utf8').trim()
    expect(secret.length).toBeGreaterThan(40)
    const agents = survivors(site.daemon.home)
    for (const { pid, argv } of agents) {
      expect(argv).not.toContain(secret)
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
      for (const other of [site.daemon.token, 'sk-ant-not-for-agents']) expect(environment).not.toContain(other)
    }
    await site.message(task, 'go on')
    await site.over(job)
    const { entries } = await site.daemon.call('transcript_read', { task_id: task, limit: 200 })
    expect(JSON.stringify(entries)).toContain('[redacted]')
    expect(JSON.stringify(entries)).not.toContain(secret)
    expect(site.daemon.log).not.toContain(secret)
    for (const table of ['calls', 'events', 'effects', 'runs', 'jobs', 'transcript_entries', 'run_inputs'])
      expect(JSON.stringify(rows(databaseOf(site.daemon), `SELECT * FROM ${table}`))).not.toContain(secret)
    expect((await site.daemon.post('agent_me', {}, secret)).status).toBe(401)
  })

  test('[S11] what it writes into its worktree changes neither its tools, nor its checks, nor its limits', async () => {
    const { task, job } = await site.begin([
      { write: { path: '.mcp.json', text: '{"mcpServers":{"signalbox":{"command":"false"}}}' } },
      { write: { path: '.signalbox/checks', text: 'true' } },
      { write: { path: 'package.json', text: '{"scripts":{"test":"true"}}' } },
      { commit: { message: 'my own rules' } },
      { call: { tool: 'setting_update', arguments: { key: 'runs.max_lives', value: 100 }, expect: 'PERMISSION_DENIED' } },
      { call: { tool: 'budget_set', arguments: { task_id: '{{task.id}}', turns: 5 }, expect: 'PERMISSION_DENIED' } },
      { call: { tool: 'job_submit', arguments: { task_id: '{{task.id}}', action: 'run_checks' }, expect: 'PERMISSION_DENIED' } },
      DONE,
    ])
    expect(await site.over(job)).toMatchObject({ state: 'succeeded' })
    const checks = (await site.daemon.call('job_submit', { task_id: task, action: 'run_checks' })).job_id
    expect(await site.over(checks)).toMatchObject({ state: 'failed' })
  })
})

describe('many of them', () => {
  test('[E63] many that start at once all begin and end, and nothing is left', async () => {
    const site = await Site.open()
    onTestFinished(() => site.close())
    const tasks = await Promise.all(
      Array.from({ length: STARTS }, () => site.task([{ write: { path: 'a.txt', text: 'a' } }, { commit: { message: 'a' } }, DONE])),
    )
    const jobs = await Promise.all(tasks.map((task) => site.start(task)))
    const over = await Promise.all(jobs.map((job) => site.over(job)))
    expect(over.filter((job) => job.state !== 'succeeded' || job.lives !== 1)).toEqual([])
    expect(await leftBehind(site.daemon.home)).toEqual([])
    expect(git(site.repo, 'for-each-ref', 'refs/heads/signalbox').split('\n')).toHaveLength(STARTS)
  }, 240_000)

  test('[F27] several that outlive the daemon are adopted; their next calls succeed', async () => {
    const site = await Site.open()
    onTestFinished(() => site.close())
    const script = [{ say: 'READY' }, { wait_message: {} }, { note: { text: 'after the restart' } }, DONE]
    const begun = await Promise.all(Array.from({ length: ADOPTED }, () => site.begin(script)))
    for (const { task } of begun) await site.said(task, 'READY')
    const before = site.survivors().length
    const began = performance.now()
    expect(await site.daemon.end('SIGTERM')).toBe(0)
    expect(performance.now() - began).toBeLessThan(30_000)
    expect(site.survivors()).toHaveLength(before)
    await site.daemon.start()
    await site.daemon.end('SIGKILL')
    await site.daemon.start()
    const messages = await Promise.all(begun.map(({ task }) => site.message(task, 'go on')))
    for (const message of messages) expect(await site.over(message)).toMatchObject({ state: 'succeeded' })
    for (const { task, job } of begun) {
      expect(await site.over(job)).toMatchObject({ state: 'succeeded', lives: 1 })
      expect((await site.get(task)).notes).toMatchObject([{ body: 'after the restart' }])
    }
    expect(await leftBehind(site.daemon.home)).toEqual([])
    expect(existsSync(join(site.daemon.home, 'runs'))).toBe(true)
  }, 240_000)
})
