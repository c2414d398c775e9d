import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { type Connected, call as callMcp, connect, MODERN } from '../mcp/clients.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

/** Each is there until it is ended; what it does is done by the test, with its token. */
const WAITS = JSON.stringify([{ wait_message: { timeout_seconds: 600 } }])
const SCRIPTS = `\`\`\`signalbox\n${WAITS}\n\`\`\`\n\n\`\`\`signalbox-review\n${WAITS}\n\`\`\`\n`
const FEEDBACK = { feedback: 'A wrong token is not refused.', feedback_type: 'needs_work', priority: 'high' }
const PR = { title: 'Sign in with tokens', description: 'All tests pass.' }

interface Coder {
  id: string
  handle: string
  token: string
  task: string
  path: string
  branch: string
  file: string
}

let daemon: TestDaemon
let project_id: string
const repo = repository()
const open: Connected[] = []

beforeAll(async () => {
  daemon = await TestDaemon.start()
  for (const [key, value] of Object.entries({ 'runs.default_harness': 'scripted', 'runs.linger_seconds': 1, 'mail.notice_seconds': 0 }))
    await daemon.call('setting_update', { key, value })
  project_id = (await daemon.call('project_create', { name: 'Web' })).project_id
  await daemon.call('repo_add', { path: repo, project_id })
})
afterAll(async () => {
  for (const client of open) await client.close()
  await daemon.remove()
  rmSync(repo, { recursive: true, force: true, maxRetries: 10 })
})

/** A real client at the dialect's address. */
async function client(token: string): Promise<Connected> {
  const connected = await connect(daemon, 'http', MODERN, { token, query: '?dialect=codex' })
  open.push(connected)
  return connected
}

async function call(from: Connected, tool: string, input: object = {}): Promise<Any> {
  const answer = await callMcp(from, tool, input as Record<string, unknown>)
  if (answer.error) throw new Error(`${tool}: ${JSON.stringify(answer)}`)
  return answer
}

async function refused(from: Connected, tool: string, input: object = {}): Promise<Any> {
  const result = await from.client.callTool({ name: tool, arguments: input as Record<string, unknown> })
  expect(result.isError).toBe(true)
  return result.structuredContent
}

/** The document's mcp_events, newest first. */
const logged = async (tool: string) =>
  (await daemon.call('audit_tail', { limit: 200 })).calls.filter(({ called_as }: Any) => called_as === tool)

const listed = async ({ client: from }: Connected) => (await from.listTools()).tools.map(({ name }) => name).toSorted()

/** In a window of its own, on a task whose worktree is there. */
async function coder(title: string, file: string): Promise<Coder> {
  const { task_id: task } = await daemon.call('task_create', { project_id, title, description: SCRIPTS })
  const { job_id } = await daemon.call('job_submit', { task_id: task, action: 'start_agent', harness: 'scripted' })
  await until(async () => (await daemon.call('run_list', { task_id: task })).runs[0]?.state === 'running', 'its worktree')
  await daemon.call('job_cancel', { job_id })
  await daemon.call('job_wait', { job_id, timeout_seconds: 40 })
  const { agent_id: id, handle, token } = await daemon.call('agent_invite', { role: 'worker', project_id })
  await daemon.call('task_assign', { task_id: task, agent_id: id })
  await daemon.call('task_move', { task_id: task, status: 'IN_PROGRESS' })
  const { path, branch } = (await daemon.call('work_get', { task_id: task })).work
  return { id, handle, token, task, path, branch, file }
}

function commit({ path, file }: Coder, text: string): string {
  writeFileSync(join(path, file), text)
  git(path, 'add', '-A')
  git(path, '-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '--quiet', `--message=${text}`)
  return git(path, 'rev-parse', 'HEAD')
}

/** The reviewer's own token lies with its run. */
async function reviewerOf(asked: Any): Promise<{ client: Connected; ended(): Promise<void> }> {
  const runs = async () => (await daemon.call('run_list', { task_id: asked.session_name })).runs
  const [run] = await runs()
  expect(run).toMatchObject({ agent_id: asked.review_instance_id, state: 'running' })
  const ended = async () => {
    await until(async () => (await runs())[0]?.state === 'ended', 'the reviewer is ended')
    await until(() => !existsSync(asked.worktree_path), 'its worktree is gone')
  }
  return { client: await client(readFileSync(join(daemon.home, 'runs', run.id, 'token'), 'utf8')), ended }
}

describe('the story of the document', () => {
  test('[CC2] [CC4] [CC6] [CC7] [CC8] request, feedback as a commit, fix, request, pull request by the reviewer, merged', async () => {
    const [worker, other] = [await coder('Sign in', 'auth.ts'), await coder('Sign out', 'out.ts')]
    const coding = await client(worker.token)
    expect(await listed(coding)).toEqual(['create_pull_request', 'request_review'])
    const first = commit(worker, 'one')
    const asked = await call(coding, 'request_review', { completion_message: 'Tokens.', reviewer_prompt: 'Look at auth.ts.' })
    expect(asked).toEqual({
      review_instance_id: expect.stringMatching(/^agent_/),
      session_name: expect.stringMatching(/^T-\d+$/),
      worktree_path: expect.stringContaining('/'),
      branch_name: worker.branch,
      status: 'WAITING_REVIEW',
      review_iteration: 1,
      review_status: 'RUNNING',
    })
    expect(git(asked.worktree_path, 'rev-parse', 'HEAD')).toBe(first)
    expect((await daemon.call('review_list', { task_id: worker.task })).reviews).toMatchObject([
      { round: 1, summary: 'Tokens.', reviewer_prompt: 'Look at auth.ts.', reader: 'agent' },
    ])
    expect(await refused(coding, 'send_feedback', FEEDBACK)).toMatchObject({
      code: 'PERMISSION_DENIED',
      error: 'PERMISSION_DENIED',
      message: expect.any(String),
      instance_id: worker.id,
      tool_name: 'send_feedback',
    })
    const review = await reviewerOf(asked)
    expect(await listed(review.client)).toEqual(['create_pull_request', 'send_feedback'])
    commit(other, 'two')
    const theirs = await call(await client(other.token), 'request_review')
    for (const [tool, input] of [
      ['send_feedback', FEEDBACK],
      ['create_pull_request', PR],
    ] as const)
      expect(await refused(review.client, tool, { ...input, task_id: other.task })).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect(await refused(review.client, 'request_review')).toMatchObject({ code: 'PERMISSION_DENIED' })
    const sent = await call(review.client, 'send_feedback', { ...FEEDBACK, actionable_items: ['Refuse it'] })
    expect(sent).toEqual({
      feedback_id: expect.any(String),
      git_commit_hash: git(worker.path, 'rev-parse', 'HEAD'),
      target_instance_id: worker.id,
      cleanup_status: 'TERMINATING',
    })
    expect(await logged('send_feedback')).toMatchObject([
      { principal: asked.review_instance_id, input: FEEDBACK, outcome: 'ok', output: sent },
      { outcome: 'refused', output: { code: 'PERMISSION_DENIED', tool_name: 'send_feedback', stack: expect.any(String) } },
      { principal: worker.id, input: FEEDBACK, outcome: 'refused', output: { instance_id: worker.id, stack: expect.any(String) } },
    ])
    expect(await logged('request_review')).toMatchObject([{ outcome: 'refused' }, { output: theirs }, { output: asked }])
    expect(git(worker.path, 'log', '-1', '--format=%P')).toBe(first)
    expect(readFileSync(join(worker.path, '.signalbox/feedback/1.md'), 'utf8')).toContain('- [ ] Refuse it')
    await review.ended()
    const { instances } = await call(coding, 'query_instances')
    const shown = (id: string) => instances.find(({ instance_id }: Any) => instance_id === id)
    expect(shown(asked.review_instance_id)).toMatchObject({ type: 'review', status: 'TERMINATED' })
    expect(shown(theirs.review_instance_id)).toMatchObject({ type: 'review', status: 'BUSY' })
    expect((await daemon.call('task_get', { task_id: other.task })).task).toMatchObject({ status: 'REVIEW', attention: 'reviewer' })

    commit(worker, 'mended')
    const again = await call(coding, 'request_review', { completion_message: 'It is refused.' })
    expect(again).toMatchObject({ review_iteration: 2, status: 'WAITING_REVIEW' })
    expect(again.review_instance_id).not.toBe(asked.review_instance_id)
    const second = await reviewerOf(again)
    const made = await call(second.client, 'create_pull_request', PR)
    expect(made).toMatchObject({ pr_number: 1, pr_url: `${daemon.url}/task/${worker.task}`, branch_name: worker.branch })
    await daemon.call('task_wait', { task_id: worker.task, wait_for_status: ['DONE'], timeout_seconds: 60 })
    expect(git(repo, 'show', 'main:auth.ts')).toBe('mended')
    expect(git(repo, 'ls-tree', '-r', '--name-only', 'main')).toBe('auth.ts')
    expect(await daemon.call('pr_get', { task_id: worker.task })).toMatchObject({ pr: { number: 1, ...PR, state: 'MERGED' } })
    expect((await daemon.call('review_list', { task_id: worker.task })).reviews).toMatchObject([
      { decision: 'request_changes', decided_by: asked.review_instance_id },
      { decision: 'approve', decided_by: again.review_instance_id, outcome: 'merged' },
    ])
    await second.ended()
  })

  test('[CC5] the 4th request is refused with the documented payload, and a pull request is the way out', async () => {
    const worker = await coder('Sign up', 'up.ts')
    const coding = await client(worker.token)
    const empty = await refused(coding, 'create_pull_request', PR)
    expect(empty).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('would be empty'), instance_id: worker.id })
    for (const round of [1, 2, 3]) {
      commit(worker, `round ${round}`)
      expect(await call(coding, 'request_review')).toMatchObject({ review_iteration: round })
      await daemon.call('review_feedback', { task_id: worker.task, ...FEEDBACK })
    }
    commit(worker, 'the last')
    const rounds = async () => (await daemon.call('review_list', { task_id: worker.task })).reviews
    expect(await refused(coding, 'request_review', { completion_message: 'Once more.' })).toEqual({
      code: 'REVIEW_LIMIT_EXCEEDED',
      error: 'REVIEW_LIMIT_EXCEEDED',
      message: `Maximum review iterations (3) reached for agent ${worker.handle}`,
      hint: 'Consider creating PR or abandoning.',
      suggestions: [
        'Create pull request with current work',
        'Abandon this approach and try different solution',
        'Manually review and fix issues before requesting review',
      ],
      current_iteration: 3,
      max_iterations: 3,
      instance_id: worker.id,
      tool_name: 'request_review',
    })
    expect(await rounds()).toHaveLength(3)
    const made = await call(coding, 'create_pr', PR)
    expect(made).toMatchObject({ pr_number: expect.any(Number), branch_name: worker.branch, message: expect.stringContaining('a person') })
    const { task } = await daemon.call('task_get', { task_id: worker.task })
    expect(task).toMatchObject({ status: 'REVIEW', attention: 'human' })
    expect(await daemon.call('review_decide', { task_id: worker.task, decision: 'approve' })).toMatchObject({ merged: true })
    expect(await rounds()).toMatchObject([{}, {}, {}, { round: 4, reader: 'human', reviewer_task_id: null }])
  })

  test('[CC2] a planning agent makes issues, and sees them as tasks', async () => {
    const { token } = await daemon.call('agent_invite', { role: 'planner', project_id })
    const planning = await client(token)
    expect(await listed(planning)).toEqual(['create_issues', 'create_pull_request'])
    const { issues } = await call(planning, 'create_issues', { issues: [{ title: 'Sessions', body: 'They end.', labels: ['later'] }] })
    expect(issues).toEqual([
      {
        issue_number: expect.any(Number),
        issue_url: expect.stringContaining(`${daemon.url}/task/task_`),
        title: 'Sessions',
        task: expect.any(String),
      },
    ])
    expect((await daemon.call('task_get', { task_id: issues[0].task })).task).toMatchObject({ title: 'Sessions', project_id })
    expect(await refused(planning, 'request_review')).toMatchObject({ code: 'PERMISSION_DENIED' })
  })
})
