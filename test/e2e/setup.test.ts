import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { depend, INSTALL, pack } from '../../src/testing/packages.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from './support.ts'

/** Uses a package and a file that git does not carry. */
const WORKS = [
  { run: { argv: ['node', '-e', "if (require('greet') !== 'greet') process.exit(1); require('fs').readFileSync('.env')"] } },
  { write: { path: '{{task.handle}}.txt', text: 'x' } },
  { commit: { message: 'Work' } },
  { review: { summary: 'Done.' } },
]

/** A real daemon, a real npm project. */
class Site {
  readonly daemon = new TestDaemon()
  readonly repo = repository()
  #project = ''
  repoId = ''

  static async open(repo: Record<string, unknown>): Promise<Site> {
    const site = new Site()
    onTestFinished(async () => {
      await site.daemon.remove()
      for (const path of [site.repo, `${site.repo}.go`]) rmSync(path, { recursive: true, force: true })
    })
    await site.daemon.start()
    for (const [key, value] of Object.entries({ 'runs.back_off_seconds': 0.05, 'runs.max_per_host': 20, 'runs.max_per_project': 20 }))
      await site.daemon.call('setting_update', { key, value })
    pack(site.repo, 'greet', 'leave')
    depend(site.repo, 'greet')
    writeFileSync(join(site.repo, '.gitignore'), 'node_modules\n.env*\n')
    writeFileSync(join(site.repo, 'test.js'), "if (require('greet') !== 'greet') process.exit(1)\n")
    for (const name of ['.env', '.env.test']) writeFileSync(join(site.repo, name), 'A=1\n')
    git(site.repo, 'add', '--all')
    git(site.repo, 'commit', '--quiet', '--message=shop')
    site.#project = (await site.daemon.call('project_create', { name: 'Web' })).project_id
    const added = await site.daemon.call('repo_add', {
      path: site.repo,
      project_id: site.#project,
      files: ['.env'],
      check_files: ['.env.test'],
      ...repo,
    })
    site.repoId = added.repo_id
    return site
  }

  async start(): Promise<string> {
    const description = `\`\`\`signalbox\n${JSON.stringify(WORKS)}\n\`\`\`\n`
    const { task_id } = await this.daemon.call('task_create', { project_id: this.#project, title: 'Work', description })
    await this.daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
    return task_id
  }

  async is(task_id: string, status: string): Promise<void> {
    const now = () =>
      this.daemon.call('task_get', { task_id }).then(
        ({ task }) => task.status === status,
        () => false,
      )
    await until(now, async () => `${status}: ${JSON.stringify((await this.daemon.call('job_list', { task_id })).jobs)} ${this.daemon.log}`)
  }

  async ended(): Promise<{ state: string; how: string | null }[]> {
    const { events } = await this.daemon.call('event_list', { types: ['setup.ended'], limit: 200 })
    return events.map(({ data }: { data: { state: string; how: string | null } }) => data)
  }

  /** Commands of setups that are at work, by the files of their runners. */
  setupsAtWork(): string[] {
    const runs = join(this.daemon.home, 'runs')
    return existsSync(runs) ? readdirSync(runs).filter((name) => name.startsWith('setup')) : []
  }
}

describe('a project with packages', () => {
  test('[SU2] [SU6] [SU8] [SU9] is worked in by ten at once, and what they did lands with npm test as its checks', async () => {
    const site = await Site.open({ checks: 'npm test', setup: INSTALL })
    const tasks = await Promise.all(Array.from({ length: 10 }, () => site.start()))
    for (const task of tasks) await site.is(task, 'REVIEW')
    const ended = await site.ended()
    expect([ended.length, ended.filter(({ how }) => how === 'made').length]).toEqual([10, 1])
    for (const task_id of tasks.slice(0, 2)) {
      expect(await site.daemon.call('review_decide', { task_id, decision: 'approve' })).toMatchObject({ merged: true })
      expect((await site.daemon.call('diff_get', { task_id: tasks[2] })).files).toHaveLength(1)
    }
    expect(git(site.repo, 'status', '--porcelain')).toBe('')
    expect(site.setupsAtWork()).toEqual([])
  })

  test('[SU4] daemon and runner are killed in the middle of the setup, and everything goes on', async () => {
    const site = await Site.open({ checks: 'npm test' })
    const go = `${site.repo}.go`
    const setup = `echo x >> .env.begun; until test -e ${go}; do sleep 0.05; done; ${INSTALL}`
    await site.daemon.call('repo_update', { repo_id: site.repoId, setup })
    const task = await site.start()
    const begun = async () => {
      const { work } = await site.daemon.call('work_get', { task_id: task })
      return work.path && existsSync(join(work.path, '.env.begun')) ? readFileSync(join(work.path, '.env.begun'), 'utf8') : ''
    }
    await until(async () => (await begun()) === 'x\n', 'the setup begins')
    await site.daemon.end('SIGKILL')
    await site.daemon.start()
    // The setup went on without its daemon. Without its runner it begins anew.
    expect(await begun()).toBe('x\n')
    execFileSync('pkill', ['-KILL', '-f', `${site.daemon.home}/runs/setup_`])
    await until(async () => (await begun()) === 'x\nx\n', 'it begins anew')
    writeFileSync(go, '')
    await site.is(task, 'REVIEW')
    expect(await site.daemon.call('review_decide', { task_id: task, decision: 'approve' })).toMatchObject({ merged: true })
  })

  test('[SU3] whose setup fills the disk that it may use, or fails, starts nobody and says why', async () => {
    const site = await Site.open({ setup: 'ulimit -f 1; head -c 9000000 /dev/zero > node_modules.tar' })
    await site.daemon.call('setting_update', { key: 'runs.max_lives', value: 1 })
    const task = await site.start()
    await until(async () => (await site.daemon.call('job_list', { task_id: task })).jobs[0].state === 'failed', 'it fails')
    expect((await site.daemon.call('job_list', { task_id: task })).jobs[0].reason).toMatch(
      /Setup failed: `ulimit -f 1; .*` ended with SIGXFSZ/,
    )
  })
})
