import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Harness } from '../ports/harness.ts'
import { runCli } from '../surfaces/cli/index.ts'
import { type Caller, openTestApp, type TestApp } from '../testing/app.ts'
import { QUICK } from '../testing/effects.ts'
import { type FakeRunner, fakeHarness, harnessesOf } from '../testing/fakes/runs.ts'
import { until } from '../testing/signals.ts'
import { fakeTerminal } from '../testing/terminal.ts'
import { CheckingRunner, WorkGround } from '../testing/work.ts'
import { statusCommand } from './status-command.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
type Any = any

/** A real repository, agents whose processes are played, and a person at a terminal. */
class Scene extends WorkGround {
  readonly runner: FakeRunner

  private constructor(app: TestApp, runner: FakeRunner) {
    super(app)
    this.runner = runner
  }

  static async open(more: { harnesses?: Harness[]; settings?: Record<string, unknown>; repo?: boolean } = {}): Promise<Scene> {
    const runner = new CheckingRunner()
    const harnesses = harnessesOf(...(more.harnesses ?? [fakeHarness()]))
    const app = await openTestApp({ ports: { runner, harnesses }, effectTimes: QUICK })
    onTestFinished(() => app.close())
    const settings = { 'runs.default_harness': 'fake', 'runs.linger_seconds': 0, 'runs.max_lives': 1, ...more.settings }
    for (const [key, value] of Object.entries(settings)) await app.owner.call('setting_update', { key, value })
    const scene = new Scene(app, runner)
    return more.repo === false ? scene : scene.prepare({ checks: 'true' })
  }

  get owner(): Caller {
    return this.app.owner
  }

  async over(task: Any): Promise<void> {
    await until(async () => (await this.owner.call('job_list', { task_id: task.id, states: ['queued', 'running'] })).jobs.length === 0)
  }

  async run(task: Any): Promise<string> {
    return (await this.owner.call('run_list', { task_id: task.id })).runs[0].id
  }

  async attention(task: Any, detail: string): Promise<void> {
    await until(async () => String((await this.owner.call('task_get', { task_id: task.id })).task.attention_detail).includes(detail))
  }

  /** An epic in progress whose supervisor has ended without doing anything. */
  async epic(...tasks: string[]): Promise<Any> {
    const { epic } = await this.owner.call('epic_create', { title: 'Passkeys', project_id: await this.app.project() })
    await until(async () => (await this.owner.call('run_list', { task_id: epic.lead_task_id })).runs[0]?.state === 'running')
    for (const title of tasks) await this.owner.call('task_create', { epic_id: epic.id, title, task_type: 'PAIR' })
    this.runner.exit(await this.run({ id: epic.lead_task_id }))
    await this.over({ id: epic.lead_task_id })
    return epic
  }

  async readLetters(): Promise<void> {
    for (const { id } of (await this.owner.call('mail_inbox')).letters) await this.owner.call('mail_read', { mail_id: id })
  }

  async reach() {
    const server = createServer(async (request, response) => {
      const answer = await this.owner.invoke(String(request.url?.split('/').at(-1)), JSON.parse(await text(request)))
      response.end(JSON.stringify(answer.ok ? { ok: true, result: answer.value } : { ok: false, error: answer.error }))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    onTestFinished(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return { version: '0', daemon: () => ({ url, token: 'x', why: '' }) }
  }

  /** Every command that `status` suggests. */
  async hints(): Promise<string[]> {
    const terminal = fakeTerminal({ person: true, columns: 300 })
    expect([await statusCommand([], { reach: await this.reach(), terminal }), terminal.stderr]).toEqual([0, expect.any(String)])
    const lines = terminal.stdout.split('\n').map((line) => line.trim().replace(/^→ /, ''))
    return lines.filter((line) => line.startsWith('signalbox '))
  }

  /** As it was printed. */
  async type(line: string): Promise<[number, string]> {
    const words = [...line.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, one, two, three]) => one ?? two ?? three ?? '')
    const terminal = fakeTerminal({ person: true, answer: 'y' })
    return [await runCli(words.slice(1), await this.reach(), terminal), terminal.stderr]
  }
}

/** Handed in, and nobody has decided. */
async function handedIn(scene: Scene): Promise<Any> {
  const { task } = await scene.handedIn('b.txt')
  await scene.over(task)
  return task
}

async function finishedEpic(scene: Scene): Promise<Any> {
  const epic = await scene.epic()
  const { task } = await scene.owner.call('task_create', { epic_id: epic.id, title: 'A part' })
  await until(async () => (await scene.owner.call('run_list', { task_id: task.id })).runs[0]?.state === 'running')
  const { work } = await scene.owner.call('work_get', { task_id: task.id })
  scene.commit(work.path, 'part.txt', 'x\n')
  const { assignee_id: worker } = (await scene.owner.call('task_get', { task_id: task.id })).task
  await scene.handIn({ task, path: work.path, worker }, 'done')
  await scene.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
  // Its supervisor is started for all that happens, at last for this, and leaves again without a word.
  const asked = () => scene.runner.started.some((run) => scene.runner.kept.get(`${run}/brief`)?.includes('All its tasks are done.'))
  await until(() => {
    const last = asked()
    for (const run of scene.runner.living) scene.runner.exit(run)
    return last
  })
  await scene.over({ id: epic.lead_task_id })
  return epic
}

const signedIn = (name: string) => fakeHarness({ name, account: async () => ({ signedIn: true }) })

interface Case {
  open?: Parameters<typeof Scene.open>[0]
  /** The commands that are suggested then. */
  arrange(scene: Scene): Promise<(RegExp | string)[]>
  /** They are to be typed in this order. */
  oneAfterTheOther?: true
  /** What a person has done by then, as the words beside the command say. */
  first?(scene: Scene): Promise<void>
}

const CASES: Record<string, Case> = {
  'nothing at all': {
    open: { repo: false },
    oneAfterTheOther: true,
    arrange: async () => ['signalbox project create "My project"', 'signalbox task create "First task"', 'signalbox agent invite worker'],
  },
  'a task without a repository': {
    open: { repo: false },
    arrange: async (scene) => {
      await scene.app.task()
      // Not the one that the tests stand in: that of a CI run may have a detached head.
      mkdirSync(scene.top)
      scene.git(scene.top, 'init', '-q', '-b', 'main')
      scene.commit(scene.top, 'a.txt', 'one\n')
      vi.spyOn(process, 'cwd').mockReturnValue(scene.top)
      return [/^signalbox repo add \S+\/web --project-id project_\w+$/, 'signalbox agent invite worker']
    },
  },
  'a task that is ready': {
    arrange: async (scene) => {
      await scene.app.task()
      return ['signalbox start T-1', 'signalbox agent invite worker']
    },
  },
  'several programs': {
    open: { harnesses: [signedIn('alpha'), signedIn('beta')], settings: { 'runs.default_harness': null } },
    arrange: async (scene) => {
      await scene.app.task()
      return ['signalbox start T-1 --harness alpha', 'signalbox agent invite worker']
    },
  },
  'no program': {
    open: { settings: { 'runs.default_harness': null } },
    arrange: async (scene) => {
      await scene.app.task()
      return ['signalbox job actions', 'signalbox agent invite worker']
    },
  },
  'an idle worker': {
    arrange: async (scene) => {
      await scene.app.task()
      await scene.app.agent('worker', { name: 'Ann', project_id: await scene.app.project() })
      return ['signalbox task assign T-1 ann']
    },
  },
  'a task of a worker in a window of its own': {
    arrange: async (scene) => {
      await scene.app.worker((await scene.app.task()).id)
      return ['signalbox task move T-1 IN_PROGRESS']
    },
  },
  'a task that nobody is on': {
    arrange: async (scene) => {
      await scene.owner.call('task_move', { task_id: (await scene.app.task()).id, status: 'IN_PROGRESS' })
      return ['signalbox start T-1', 'signalbox agent invite worker']
    },
  },
  'a PAIR task': {
    arrange: async (scene) => {
      await scene.app.task({ task_type: 'PAIR' })
      return ['signalbox session open T-1']
    },
  },
  'an agent that was stopped': {
    arrange: async (scene) => {
      const { task } = await scene.begun()
      await scene.owner.call('job_submit', { task_id: task.id, action: 'stop_agent' })
      await scene.over(task)
      return ['signalbox resume T-1', 'signalbox start T-1']
    },
  },
  'an agent that was interrupted': {
    arrange: async (scene) => {
      const { task } = await scene.begun()
      scene.runner.print(await scene.run(task), { type: 'turn_started' }, { type: 'turn_ended', how: 'interrupted' })
      await scene.attention(task, 'interrupted')
      return ["signalbox tell T-1 --message '…'", 'signalbox stop T-1']
    },
  },
  'an agent that failed': {
    arrange: async (scene) => {
      const { task } = await scene.begun()
      scene.runner.exit(await scene.run(task), 1)
      await scene.over(task)
      return ['signalbox resume T-1', 'signalbox transcript read T-1']
    },
  },
  'an agent that used up what it may': {
    arrange: async (scene) => {
      const { task } = await scene.begun()
      await scene.owner.call('budget_set', { task_id: task.id, turns: 1 })
      scene.runner.print(await scene.run(task), { type: 'turn_started' }, { type: 'turn_started' })
      await scene.over(task)
      return ['signalbox budget get T-1']
    },
  },
  'a task that went back to work with nobody on it': {
    arrange: async (scene) => {
      const task = await handedIn(scene)
      await scene.owner.call('task_move', { task_id: task.id, status: 'IN_PROGRESS' })
      return ['signalbox resume T-1', 'signalbox start T-1']
    },
  },
  'work to review': {
    arrange: async (scene) => {
      await handedIn(scene)
      return ['signalbox diff get T-1', 'signalbox review decide T-1 approve', "signalbox review decide T-1 request_changes --feedback '…'"]
    },
  },
  'a review of nothing': {
    arrange: async (scene) => {
      const task = await scene.app.task()
      for (const status of ['IN_PROGRESS', 'REVIEW']) await scene.owner.call('task_move', { task_id: task.id, status })
      return ["signalbox task close T-1 '…'", "signalbox review decide T-1 request_changes --feedback '…'"]
    },
  },
  'work that was given up': {
    arrange: async (scene) => {
      const task = await handedIn(scene)
      await scene.owner.call('review_abandon', { task_id: task.id, reason: 'x' })
      await scene.attention(task, 'given up')
      return ['signalbox start T-1', 'signalbox agent invite worker']
    },
  },
  'a question': {
    arrange: async (scene) => {
      const { task } = await scene.begun()
      scene.runner.print(
        await scene.run(task),
        { type: 'turn_started' },
        { type: 'approval_asked', id: '1', name: 'Bash', input: '{"command":"npm publish"}' },
      )
      await scene.attention(task, 'asks for permission')
      return ['signalbox approval get A-1', 'signalbox approval decide A-1 allow', "signalbox approval decide A-1 deny --message '…'"]
    },
  },
  'a letter': {
    arrange: async (scene) => {
      const ann = await scene.app.agent('worker', { name: 'Ann' })
      await ann.call('mail_send', { to_human: true, subject: 'Which port?', body: '3000 or 3001?' })
      return [/^signalbox mail read mail_\w+$/, /^signalbox mail reply mail_\w+ '…'$/]
    },
  },
  'an epic without tasks': {
    arrange: async (scene) => {
      const epic = await scene.epic()
      await scene.attention({ id: epic.lead_task_id }, 'no tasks')
      return ["signalbox task create '…' --epic-id E-1"]
    },
  },
  'an epic whose tasks are done': {
    arrange: async (scene) => {
      await finishedEpic(scene)
      return ['signalbox epic finish E-1']
    },
  },
  'an epic that was handed in': {
    arrange: async (scene) => {
      const epic = await finishedEpic(scene)
      await scene.owner.call('epic_finish', { epic_id: epic.id })
      await scene.readLetters()
      return ['signalbox epic update E-1 --state COMPLETED', 'signalbox epic update E-1 --state IN_PROGRESS']
    },
    async first(scene) {
      const { epic } = await scene.owner.call('epic_get', { epic_id: 'E-1' })
      scene.git(scene.top, 'merge', '-q', epic.branch)
    },
  },
  'an epic that was taken back to planning': {
    arrange: async (scene) => {
      const epic = await scene.epic()
      await scene.owner.call('epic_update', { epic_id: epic.id, state: 'PLANNING' })
      return ['signalbox epic update E-1 --state IN_PROGRESS']
    },
  },
  'a line that is held': {
    arrange: async (scene) => {
      const task = await handedIn(scene)
      await scene.owner.call('repo_update', { repo_id: scene.repo, checks: 'false' })
      await scene.owner.call('merge_submit', { task_id: task.id })
      await until(async () => (await scene.owner.call('merge_status')).lines[0]?.held)
      await scene.readLetters()
      // For the task, and for the line.
      return ['signalbox merge retry --repo-id web --target main', 'signalbox merge retry --repo-id web --target main']
    },
  },
  'a branch that is behind its line': {
    arrange: async (scene) => {
      const task = await handedIn(scene)
      writeFileSync(join(scene.top, 'a.txt'), 'not committed')
      await scene.owner.call('review_decide', { task_id: task.id, decision: 'approve' })
      await until(async () => (await scene.owner.call('merge_status')).lines[0]?.behind > 0)
      // What stood in its way is gone when the person syncs.
      execFileSync('git', ['checkout', '-q', '--', 'a.txt'], { cwd: scene.top })
      return ['signalbox sync web']
    },
  },
  'something that is stuck': {
    open: { settings: { 'mail.notify_command': ['/bin/false'] } },
    arrange: async (scene) => {
      const ann = await scene.app.agent('worker', { name: 'Ann' })
      await ann.call('mail_send', { to_human: true, subject: 'Which port?', body: '3000 or 3001?' })
      await until(async () => (await scene.owner.call('effect_list')).effects.length === 1)
      await scene.readLetters()
      return [/^signalbox effect retry \w+$/, /^signalbox effect drop \w+$/]
    },
  },
}

test.for(Object.entries(CASES))('[E50] [ND3] what is suggested for %s is accepted as it stands', async ([, { open, arrange, ...more }]) => {
  let scene = await Scene.open(open)
  const expected = await arrange(scene)
  const hints = await scene.hints()
  expect(hints).toEqual(expected.map((line) => (typeof line === 'string' ? line : expect.stringMatching(line))))
  for (const [n, hint] of hints.entries()) {
    let line = hint
    // From the beginning: one command may take the ground from under the next.
    if (n > 0 && !more.oneAfterTheOther) {
      scene = await Scene.open(open)
      await arrange(scene)
      line = (await scene.hints())[n] as string
    }
    await more.first?.(scene)
    expect([line, ...(await scene.type(line))]).toEqual([line, 0, expect.any(String)])
  }
})
