import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { TestDaemon } from '../../src/testing/daemon.ts'
import { inOrder, type World } from '../ground.ts'
import { type Aim, type Row, row } from '../harness.ts'
import type { EngineName } from '../options.ts'
import { git, repository, timed } from './runs.ts'

const AIM: Aim = { text: '≤ 1.5 ×', met: ({ ratio }) => ratio !== undefined && ratio <= 1.5 }
const CHECKS = 'true'
const run = promisify(execFile)

/** Approved branches of one file each, from the first that is put into the line until the last has landed. */
export async function lineRows(world: World): Promise<Row[]> {
  return inOrder(world.options.engines, (engine) => throughLine(world, engine, world.options.quick ? 20 : 100))
}

async function throughLine(world: World, engine: EngineName, branches: number): Promise<Row> {
  const daemon = await world.daemon(engine)
  const repo = repository(200)
  const { project_id } = await daemon.call('project_create', { name: 'Line' })
  await daemon.call('repo_add', { path: repo, project_id, checks: CHECKS })
  const tasks = await handedIn(daemon, project_id, branches)
  const copy = mkdtempSync(join(tmpdir(), 'sbx-bench-bare-'))
  cpSync(repo, copy, { recursive: true })
  const heads = git(copy, 'for-each-ref', '--format=%(objectname)', 'refs/heads/signalbox').split('\n').filter(Boolean)
  const bare = await timed(() => byHand(copy, heads))
  const { cursor } = await daemon.call('task_list', { limit: 1 })
  const ours = await timed(async () => {
    for (const task_id of tasks) await daemon.call('merge_submit', { task_id })
    await allLanded(daemon, cursor, branches)
  })
  const landed = git(repo, 'rev-list', '--count', '--grep=^Signalbox-Task: ', 'main').trim()
  if (Number(landed) !== branches) throw new Error(`${landed} of ${branches} are on the branch`)
  for (const folder of [repo, copy]) rmSync(folder, { recursive: true, force: true })
  return row({
    family: 'line',
    what: `${branches} approved branches through the merge line`,
    engine,
    clients: undefined,
    unit: 'ms each',
    measured: ours / branches,
    limit: bare / heads.length,
    limitOf: 'a loop of bare git',
    aim: AIM,
  })
}

async function handedIn(daemon: TestDaemon, project_id: string, branches: number): Promise<string[]> {
  const jobs: { task_id: string; job_id: string }[] = []
  for (let n = 0; n < branches; n++) {
    const { task_id } = await daemon.call('task_create', { project_id, title: `Branch ${n}` })
    const command = ['/bin/sh', '-c', `echo ${n} > new-${n}.txt && git add -A && git commit -qm "work ${n}"`]
    const { job_id } = await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'command', options: { command } })
    jobs.push({ task_id, job_id })
  }
  for (const { job_id } of jobs) {
    const { job } = await daemon.call('job_wait', { job_id, timeout_seconds: 300 })
    if (job.state !== 'succeeded') throw new Error(`${job.handle} of the bench is ${job.state}: ${job.reason}`)
  }
  return jobs.map(({ task_id }) => task_id)
}

async function allLanded(daemon: TestDaemon, since: string, branches: number): Promise<void> {
  let cursor = since
  for (let landed = 0; landed < branches; ) {
    const answer = await daemon.call('event_wait', { cursor, types: ['merge.landed'], timeout_seconds: 60, limit: 200 })
    if (!answer.events.length) throw new Error(`only ${landed} of ${branches} have landed`)
    landed += answer.events.length
    cursor = answer.cursor
  }
}

/** The same merges, checkouts and spawns of the check, one after the other, and nothing written down. */
async function byHand(repo: string, heads: string[]): Promise<void> {
  const scratch = join(repo, '..', `${repo.split('/').at(-1)}-scratch`)
  git(repo, 'worktree', 'add', '--quiet', '--detach', scratch, 'main')
  const ask = async (cwd: string, ...args: string[]) => (await run('git', args, { cwd })).stdout.trim()
  let head = git(repo, 'rev-parse', 'main').trim()
  for (const work of heads) {
    const tree = await ask(repo, 'merge-tree', '--write-tree', head, work)
    const commit = await ask(repo, '-c', 'user.name=b', '-c', 'user.email=b@example.invalid', 'commit-tree', tree, '-p', head, '-m', 'work')
    await ask(scratch, 'checkout', '--quiet', '--detach', commit)
    await run('/bin/sh', ['-c', CHECKS], { cwd: scratch })
    await ask(repo, 'update-ref', 'refs/line/main', commit)
    await ask(repo, 'merge', '--quiet', '--ff-only', commit)
    head = commit
  }
  execFileSync('git', ['worktree', 'remove', '--force', scratch], { cwd: repo })
}
