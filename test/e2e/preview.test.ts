import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { survivors } from '../../src/testing/survivors.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from './support.ts'

/** Shows what is in its worktree, by a child of its own: also that one has to end. */
const SERVER = `import { createServer } from 'node:http'
import { readFileSync } from 'node:fs'
createServer((_, answer) => answer.end(readFileSync('page.txt'))).listen(process.env.PORT, 'localhost', () => console.log('listening'))
`
const DEV = 'node server.mjs & wait'

async function site() {
  const daemon = await TestDaemon.start()
  const repo = repository()
  onTestFinished(() => daemon.remove())
  writeFileSync(join(repo, 'server.mjs'), SERVER)
  writeFileSync(join(repo, 'page.txt'), 'main\n')
  git(repo, 'add', '--all')
  git(repo, 'commit', '--quiet', '--message=site')
  const { project_id } = await daemon.call('project_create', { name: 'Web' })
  // Beside the repository: commands of a checkout do not see the state folder.
  const cleaned = `${repo}.cleaned`
  onTestFinished(() => rmSync(cleaned, { force: true }))
  await daemon.call('repo_add', { path: repo, project_id, dev: DEV, cleanup: `cat page.txt > ${cleaned}` })
  const steps = [{ write: { path: 'page.txt', text: 'work\n' } }, { commit: { message: 'Page' } }, { review: { summary: 'Done.' } }]
  const description = `\`\`\`signalbox\n${JSON.stringify(steps)}\n\`\`\`\n`
  const { task } = await daemon.call('task_create', { project_id, title: 'Page', description })
  await daemon.call('job_submit', { task_id: task.id, action: 'start_agent', harness: 'scripted' })
  const isIn = (status: string) => until(async () => (await daemon.call('task_get', { task_id: task.id })).task.status === status, status)
  await isIn('REVIEW')
  const preview = async () => (await daemon.call('preview_get', { task_id: task.id })).preview
  return { daemon, repo, task: task.handle as string, preview, isIn, cleaned }
}

test('[PV1] [PV3] [PV4] [SU16] a person looks at work in review, over a restart, and nothing is left behind', async () => {
  const { daemon, task, preview, isIn, cleaned } = await site()
  const { code, stdout } = await daemon.cli(['preview', task, '--json'])
  const { message, preview: shown } = JSON.parse(stdout)
  expect([code, message]).toEqual([0, `${task} is shown at ${shown.url}`])
  const page = () => fetch(shown.url).then((answer) => answer.text())
  expect(await page()).toBe('work\n')
  await daemon.end('SIGKILL')
  expect(await page()).toBe('work\n')
  await daemon.start()
  expect(await preview()).toMatchObject({ state: 'ready', url: shown.url })
  expect(JSON.parse((await daemon.cli(['preview', 'list'])).stdout).previews).toMatchObject([{ handle: task }])
  await daemon.call('review_decide', { task_id: task, decision: 'approve' })
  await isIn('DONE')
  await until(async () => (await preview()).state === 'ended', 'it ends with its task')
  await expect(page()).rejects.toThrow()
  const { work } = await daemon.call('work_get', { task_id: task })
  await daemon.call('work_collect', { task_id: task })
  await until(() => !existsSync(work.path), 'the worktree is taken away')
  expect(readFileSync(cleaned, 'utf8')).toBe('work\n')
  await until(() => survivors(daemon.home).every(({ pid }) => pid === daemon.pid), 'nothing of it lives on')
})

test('[PV2] [PV4] whose runner is killed has failed, and leaves nothing behind; started again, it is there again', async () => {
  const { daemon, task, preview } = await site()
  await daemon.cli(['preview', task])
  execFileSync('pkill', ['-KILL', '-f', `${daemon.home}/runs/preview_`])
  await until(async () => (await preview()).state === 'failed', 'it is told')
  const again = await daemon.cli(['preview', 'start', task])
  expect(again).toMatchObject({ code: 0 })
  expect((await daemon.cli(['preview', 'stop', task])).code).toBe(0)
  await until(() => survivors(daemon.home).every(({ pid }) => pid === daemon.pid), 'nothing of it lives on')
})
