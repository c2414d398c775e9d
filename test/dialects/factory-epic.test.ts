import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { git, repository } from '../chaos/kill-runs.ts'
import { until } from '../e2e/support.ts'
import { call as callMcp, connect, MODERN } from '../mcp/clients.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

interface Agent {
  id: string
  handle: string
  token: string
}

/** One way in: what the tool answered, or the error of the document. */
type Door = (agent: Agent, toolName: string, input?: object) => Promise<{ data?: Any; error?: Any }>

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[0-9:.]+Z$/)
const TASK = expect.stringMatching(/^task_/)

let daemon: TestDaemon
beforeAll(async () => {
  daemon = await TestDaemon.start()
})
afterAll(() => daemon.remove())

const execute: Door = async ({ id, token }, toolName, input = {}) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' }
  const body = JSON.stringify({ agentId: id, toolName, input })
  const { success, data, error } = (await (await fetch(`${daemon.url}/mcp/execute`, { method: 'POST', headers, body })).json()) as Any
  return success ? { data } : { error }
}

const overMcp: Door = async ({ token }, toolName, input = {}) => {
  const client = await connect(daemon, 'http', MODERN, { token, query: '?dialect=factory' })
  try {
    const answer = await callMcp(client, toolName, input as Record<string, unknown>)
    return answer.error?.code ? { error: answer.error } : { data: answer }
  } finally {
    await client.close()
  }
}

const script = (path: string, text: string) =>
  `\`\`\`signalbox\n${JSON.stringify([{ write: { path, text } }, { commit: { message: path } }, { review: { summary: `${path} is there` } }])}\n\`\`\``

describe.each([
  ['POST /mcp/execute', execute],
  ['/mcp?dialect=factory', overMcp],
] as const)('an epic through %s', (name, door) => {
  const repo = repository()
  const [one, two] = [script('src/routes/auth.ts', "import express from 'express'\n"), script('src/routes/user.ts', 'export {}\n')]
  let epic: string
  let branch: string
  let supervisor: Agent
  let worker: Agent
  let tasks: Any[]
  const data = async (agent: Agent, tool: string, input?: object) => {
    const answer = await door(agent, tool, input)
    if (answer.error) throw new Error(`${tool}: ${JSON.stringify(answer.error)}`)
    return answer.data
  }
  const invited = async (role: string): Promise<Agent> => {
    const { agent_id, handle, token } = await daemon.call('agent_invite', { role })
    return { id: agent_id, handle, token }
  }
  const handedIn = async (task_id: string) => {
    const { job_id } = await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted' })
    expect(await daemon.call('job_wait', { job_id, timeout_seconds: 100 })).toMatchObject({ job: { state: 'succeeded' } })
  }
  const prUrl = (task: string) => `${daemon.url}/task/${task}`

  beforeAll(async () => {
    const { project_id } = await daemon.call('project_create', { name: name.replaceAll(/\W/g, ' ') })
    await daemon.call('repo_add', { path: repo, project_id })
    ;[supervisor, worker] = [await invited('supervisor'), await invited('worker')]
    // In PLANNING nobody starts by himself: the steps below are all there is.
    const wanted = { project_id, title: 'User Management System', description: 'Accounts and roles', start: false }
    const created = await daemon.call('epic_create', wanted)
    epic = created.epic_id
    branch = created.epic.branch
    await daemon.call('epic_update', { epic_id: epic, supervisor_id: supervisor.id })
  })
  afterAll(() => rmSync(repo, { recursive: true, force: true }))

  test('[FF3] whoever leads it sees it', async () => {
    expect(await data(supervisor, 'mcp__agent__get_status')).toMatchObject({ type: 'SUPERVISOR', currentEpicId: epic })
    expect(await data(supervisor, 'mcp__agent__get_epic')).toEqual({
      id: epic,
      title: 'User Management System',
      description: 'Accounts and roles',
      state: 'PLANNING',
      createdAt: TIME,
      updatedAt: TIME,
      completedAt: null,
    })
  })

  test('[FF3] tasks are created in it, under the name that their worktree will have', async () => {
    tasks = []
    for (const [title, description] of [
      ['Add user authentication', one],
      ['Add user profile', two],
    ] as const)
      tasks.push(await data(supervisor, 'mcp__epic__create_task', { title, description }))
    expect(tasks[0]).toEqual({
      taskId: TASK,
      title: 'Add user authentication',
      worktreeName: expect.stringMatching(/^task-[0-9a-z]{8}-add-user-authentication$/),
      message: 'Task created. A worker will be assigned automatically.',
    })
    const { events } = await daemon.call('event_list', { types: ['task.created'], task_id: tasks[0].taskId })
    expect(events).toMatchObject([{ actor: supervisor.id, data: { title: 'Add user authentication' } }])
    for (const { taskId } of tasks) await handedIn(taskId)
  })

  test('[FF3] they are listed, all or in one state', async () => {
    const listed = (task: Any, state: string) => ({
      id: task.taskId,
      title: task.title,
      state,
      epicId: epic,
      assignedAgentId: expect.stringMatching(/^agent_/),
      createdAt: TIME,
      updatedAt: TIME,
    })
    expect(await data(supervisor, 'mcp__epic__list_tasks', { state: 'REVIEW' })).toEqual({
      epicId: epic,
      tasks: tasks.map((task) => listed(task, 'REVIEW')),
    })
    expect(await data(supervisor, 'mcp__epic__list_tasks')).toMatchObject({ tasks: [{}, {}] })
    expect(await data(supervisor, 'mcp__epic__list_tasks', { state: 'COMPLETED' })).toEqual({ epicId: epic, tasks: [] })
  })

  test('[FF3] what was handed in waits in that order', async () => {
    const entry = (task: Any, position: number) => {
      return { position, taskId: task.taskId, title: task.title, prUrl: prUrl(task.taskId), submittedAt: TIME }
    }
    expect(await data(supervisor, 'mcp__epic__get_review_queue')).toEqual({
      epicId: epic,
      queue: [entry(tasks[0], 1), entry(tasks[1], 2)],
    })
  })

  test('[FF3] a file is read in the worktree, and nothing outside it', async () => {
    const [{ taskId }] = tasks
    expect(await data(supervisor, 'mcp__epic__read_file', { taskId, filePath: 'src/routes/auth.ts' })).toEqual({
      taskId,
      filePath: 'src/routes/auth.ts',
      content: "import express from 'express'\n",
    })
    const { path } = (await daemon.call('work_get', { task_id: taskId })).work
    const secret = join(daemon.home, 'owner.token')
    for (const filePath of [secret, relative(path, secret)])
      expect((await door(supervisor, 'mcp__epic__read_file', { taskId, filePath })).error).toMatchObject({ code: 'RESOURCE_NOT_FOUND' })
    expect((await door(supervisor, 'mcp__epic__read_file', { taskId, filePath: 'nothing' })).error).toMatchObject({
      code: 'RESOURCE_NOT_FOUND',
    })
  })

  test('[FF3] a worker sees its task with worktree, branch and pull request, and the epic through it', async () => {
    const [{ taskId, worktreeName }] = tasks
    await daemon.call('task_assign', { task_id: taskId, agent_id: worker.id })
    expect(await data(worker, 'mcp__agent__get_task')).toEqual({
      id: taskId,
      title: 'Add user authentication',
      description: one,
      state: 'REVIEW',
      epicId: epic,
      worktreePath: expect.stringMatching(new RegExp(`^/.*/${worktreeName}$`)),
      branchName: `signalbox/${worktreeName}`,
      prUrl: prUrl(taskId),
      createdAt: TIME,
      updatedAt: TIME,
    })
    expect(await data(worker, 'mcp__agent__get_epic')).toMatchObject({ id: epic })
    expect(await data(worker, 'mcp__agent__get_status')).toMatchObject({ currentEpicId: epic, currentTaskId: taskId })
  })

  test('[FF4] a worker approves nothing, and a supervisor nothing outside its epic', async () => {
    const [{ taskId }] = tasks
    expect((await door(worker, 'mcp__epic__approve_pr', { taskId })).error).toMatchObject({ code: 'PERMISSION_DENIED' })
    const other = await invited('supervisor')
    for (const tool of ['mcp__epic__approve_pr', 'mcp__epic__request_changes'])
      expect((await door(other, tool, { taskId, feedback: 'x' })).error.code).toMatch(/PERMISSION_DENIED|INVALID_INPUT/)
    expect((await door(other, 'mcp__epic__approve_pr', { taskId })).error).toMatchObject({ code: 'PERMISSION_DENIED' })
    expect((await door(other, 'mcp__epic__read_file', { taskId, filePath: 'src/routes/auth.ts' })).error).toMatchObject({
      code: 'PERMISSION_DENIED',
    })
    for (const tool of ['mcp__agent__get_epic', 'mcp__epic__list_tasks', 'mcp__epic__get_review_queue', 'mcp__epic__create_epic_pr'])
      expect((await door(other, tool)).error).toMatchObject({ code: 'INVALID_AGENT_STATE', message: "Agent doesn't have a current epic" })
  })

  test('[FF3] changes are requested: it goes back, and its worker has a letter', async () => {
    const [, { taskId }] = tasks
    const second = await invited('worker')
    await daemon.call('task_assign', { task_id: taskId, agent_id: second.id })
    expect(await data(supervisor, 'mcp__epic__request_changes', { taskId, feedback: 'Errors are not handled' })).toEqual({
      taskId,
      message: 'Feedback sent to worker. Task returned to IN_PROGRESS.',
    })
    expect(await data(second, 'mcp__agent__get_task')).toMatchObject({ state: 'IN_PROGRESS' })
    expect((await data(second, 'mcp__mail__list_inbox')).mails).toMatchObject([
      { fromAgentId: supervisor.id, fromAgentType: 'SUPERVISOR', body: expect.stringContaining('Errors are not handled') },
    ])
    expect((await door(supervisor, 'mcp__epic__approve_pr', { taskId })).error).toMatchObject({ code: 'INVALID_AGENT_STATE' })
    expect(await data(second, 'mcp__task__update_status', { state: 'REVIEW' })).toEqual({ taskId, state: 'REVIEW', submittedAt: TIME })
  })

  test('[FF3] what is approved is merged into the branch of the epic, and those who wait are told to rebase', async () => {
    const [first, second] = tasks
    expect(await data(supervisor, 'mcp__epic__approve_pr', { taskId: first.taskId })).toEqual({
      taskId: first.taskId,
      prUrl: prUrl(first.taskId),
      merged: true,
      message: 'PR merged successfully. 1 rebase requests sent.',
    })
    expect(git(repo, 'show', `${branch}:src/routes/auth.ts`)).toBe("import express from 'express'")
    expect((await data(supervisor, 'mcp__epic__list_tasks', { state: 'COMPLETED' })).tasks).toMatchObject([{ id: first.taskId }])
    const { assignee_id } = (await daemon.call('task_get', { task_id: second.taskId })).task
    const inbox = await execute({ id: assignee_id, handle: '', token: daemon.token }, 'mcp__mail__list_inbox')
    expect(inbox.data.mails[0]).toMatchObject({ subject: expect.stringContaining('Rebase Required') })
  })

  test('[FF3] the epic is handed in when all is done, and not before', async () => {
    const [, { taskId }] = tasks
    expect(await data(supervisor, 'mcp__epic__update_status', { state: 'IN_PROGRESS' })).toEqual({ epicId: epic, state: 'IN_PROGRESS' })
    const { handle } = (await daemon.call('task_get', { task_id: taskId })).task
    expect((await door(supervisor, 'mcp__epic__create_epic_pr', { title: '[Epic] Users' })).error).toMatchObject({
      code: 'INVALID_AGENT_STATE',
      message: expect.stringContaining(`Not done yet: ${handle}`),
    })
    expect(await data(supervisor, 'mcp__epic__approve_pr', { taskId })).toMatchObject({ merged: true })
    expect(await data(supervisor, 'mcp__epic__create_epic_pr', { title: '[Epic] Users', description: 'All of it' })).toEqual({
      epicId: epic,
      prUrl: `${daemon.url}/epic/${epic}`,
      prNumber: expect.any(Number),
      state: 'COMPLETED',
      message: 'Epic PR created successfully. Human review requested.',
    })
    expect((await daemon.call('epic_get', { epic_id: epic })).epic).toMatchObject({ state: 'REVIEW', completed_at: null })
    expect(await data(supervisor, 'mcp__agent__get_epic')).toMatchObject({ id: epic, state: 'COMPLETED', completedAt: TIME })
    expect((await daemon.call('mail_inbox')).letters[0]).toMatchObject({ from_id: supervisor.id })
  })

  test('[FF7] the decision log tells the story, each call with its two rows', async () => {
    const { decisions } = await daemon.call('decision_list', { principal: supervisor.id, limit: 200 })
    const told = decisions.map(({ decision }: Any) => decision)
    expect(told.slice(0, 6)).toEqual([
      'Tool result: mcp__agent__get_epic',
      'Invoked tool: mcp__agent__get_epic',
      'Tool result: mcp__epic__create_epic_pr',
      'Invoked tool: mcp__epic__create_epic_pr',
      'Tool result: mcp__epic__approve_pr',
      'Invoked tool: mcp__epic__approve_pr',
    ])
    expect(told).toContain('Tool error: mcp__epic__create_epic_pr')
    const invoked = decisions.filter(({ kind }: Any) => kind === 'invocation').length
    expect(decisions.filter(({ kind }: Any) => kind === 'result' || kind === 'error').length).toBe(invoked)
    const contexts = (decision: string) => decisions.filter((entry: Any) => entry.decision === decision).map(({ context }: Any) => context)
    const [first, second] = tasks
    expect(contexts('Tool result: mcp__epic__approve_pr')).toEqual(
      [second, first].map(({ taskId }, sent) => ({
        taskId,
        prUrl: prUrl(taskId),
        merged: true,
        message: `PR merged successfully. ${sent} rebase requests sent.`,
      })),
    )
    expect(contexts('Invoked tool: mcp__epic__approve_pr')).toContainEqual({ taskId: first.taskId })
    expect(contexts('Tool result: mcp__epic__request_changes')).toEqual([
      { taskId: second.taskId, message: 'Feedback sent to worker. Task returned to IN_PROGRESS.' },
    ])
    expect(contexts('Tool result: mcp__epic__create_task')).toContainEqual(first)
    expect(contexts('Tool result: mcp__epic__create_epic_pr')).toMatchObject([{ epicId: epic, state: 'COMPLETED' }])
    expect(contexts('Tool error: mcp__epic__approve_pr')).toMatchObject([{ code: 'INVALID_AGENT_STATE', stack: expect.any(String) }])
    expect(contexts('Tool result: mcp__epic__get_review_queue')).toMatchObject([
      { epicId: epic, queue: [{ position: 1 }, { position: 2 }] },
    ])
    const audit = (await daemon.call('audit_tail', { principal: supervisor.id, tool: 'review_decide', outcome: 'ok' })).calls
    expect(audit).toMatchObject([{ output: { merged: true } }, { output: { merged: true } }, { output: { taskId: second.taskId } }])
  })
})

describe('a task of an epic that is in progress', () => {
  const repo = repository()
  afterAll(() => rmSync(repo, { recursive: true, force: true }))

  test('[FF3] gets a worker by itself, which hands its work in; the supervisor sees it in the queue', async () => {
    const { project_id } = await daemon.call('project_create', { name: 'By itself' })
    await daemon.call('repo_add', { path: repo, project_id })
    const { agent_id, handle, token } = await daemon.call('agent_invite', { role: 'supervisor' })
    const supervisor = { id: agent_id, handle, token }
    const wanted = { project_id, title: 'By itself', start: false, workers: { harness: 'scripted' } }
    const { epic_id } = await daemon.call('epic_create', wanted)
    await daemon.call('epic_update', { epic_id, supervisor_id: supervisor.id })
    await execute(supervisor, 'mcp__epic__update_status', { state: 'IN_PROGRESS' })
    const description = script('a.txt', 'one\n')
    const { data } = await execute(supervisor, 'mcp__epic__create_task', { title: 'One', description })
    await daemon.call('task_wait', { task_id: data.taskId, wait_for_status: ['REVIEW'], timeout_seconds: 100 })
    expect((await execute(supervisor, 'mcp__epic__get_review_queue')).data.queue).toMatchObject([{ position: 1, taskId: data.taskId }])
    const { handle: shown, assignee_id } = (await daemon.call('task_get', { task_id: data.taskId })).task
    expect((await execute({ id: assignee_id, handle: '', token: daemon.token }, 'mcp__agent__get_status')).data).toMatchObject({
      type: 'WORKER',
      tmuxSessionName: shown,
    })
    expect((await execute(supervisor, 'mcp__epic__approve_pr', { taskId: data.taskId })).data).toMatchObject({ merged: true })
    await attaches(shown)
  })

  /** An agent without a terminal is shown by its transcript, when somebody wants to see it. */
  async function attaches(session: string): Promise<void> {
    const printed = await daemon.cli(['attach', session])
    expect(printed).toMatchObject({ code: 0, stdout: `signalbox transcript read --task-id ${session} --watch\n` })
    const { SIGNALBOX_PORT: _, ...env } = daemon.env
    const tmux = (...command: string[]) =>
      execFileSync('tmux', ['-S', join(repo, 'tmux'), '-f', '/dev/null', ...command], { encoding: 'utf8', env })
    tmux('new-session', '-d', '-x', '120', '-y', '40', '--', process.execPath, BIN, 'attach', session)
    try {
      await until(() => tmux('capture-pane', '-p').includes('a.txt'), 'what it did is shown')
    } finally {
      tmux('kill-server')
    }
  }
})
