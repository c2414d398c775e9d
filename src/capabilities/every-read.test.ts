import { describe, expect, onTestFinished, test } from 'vitest'
import { dialects } from '../dialects/index.ts'
import { EFFECT_STATES } from '../kernel/effect.ts'
import type { Places } from '../kernel/id.ts'
import { Registry } from '../kernel/registry.ts'
import type { Tool } from '../kernel/tool.ts'
import { type Caller, openTestApp } from '../testing/app.ts'
import { QUICK } from '../testing/effects.ts'
import { FakeGit } from '../testing/fakes/git.ts'
import { FakeListeners } from '../testing/fakes/listeners.ts'
import { FakeRunner, fakeHarness, harnessesOf } from '../testing/fakes/runs.ts'
import { until } from '../testing/signals.ts'
import { APPROVAL_STATES } from './approval/schema.ts'
import { capabilities } from './index.ts'

/** In everything that anybody writes in the other project. */
const MARK = 'zebra'

const reads = new Registry(capabilities, dialects).tools.filter((tool) => tool.impact === 'read' && !tool.internal && !tool.by)

/** One project with something of everything in it, as its agents and the owner made it; and another. */
async function twoProjects() {
  const runner = new FakeRunner()
  const git = Object.assign(new FakeGit(), { ignoredIn: async () => [`.env.${MARK}`] })
  const ports = { runner, git, listeners: new FakeListeners(), harnesses: harnessesOf(fakeHarness()) }
  const app = await openTestApp({ ports, effectTimes: QUICK })
  onTestFinished(() => app.close())
  const { owner } = app
  for (const [key, value] of Object.entries({ 'runs.default_harness': 'fake', 'runs.linger_seconds': 0, 'mail.notify_webhook': WEBHOOK }))
    await owner.call('setting_update', { key, value })
  const { project_id: ours } = await owner.call('project_create', { name: 'Ours' })
  const { project_id: project } = await owner.call('project_create', { name: MARK })
  const { repo_id: repo } = await owner.call('repo_add', { path: '/repo', project_id: project, setup: MARK, dev: MARK })
  const { task_id: task } = await owner.call('task_create', { project_id: project, title: MARK, description: MARK })
  await owner.call('task_note', { task_id: task, body: MARK })
  const { job_id: job } = await owner.call('job_submit', { task_id: task, action: 'start_agent', options: { approvals: 'ask' } })
  const begun = async (what: string) => {
    const named = () => runner.living.find((run) => run.startsWith(what))
    await until(() => named() !== undefined)
    return named() as string
  }
  const setup = await begun('setup')
  runner.tell(setup, MARK)
  runner.exit(setup)
  const living = async () => (await owner.call('run_list', { task_id: task })).runs[0]
  await until(async () => (await living())?.state === 'running')
  const run = (await living()).id as string
  void owner.call('preview_start', { task_id: task }).catch(() => {})
  await begun('preview')
  const credential = { secret: runner.kept.get(`${run}/token`) as string }
  const asAgent = async (tool: string, input: object) => {
    const answer = await app.app.kernel.invoke({ tool, input, credential, surface: 'mcp' })
    // biome-ignore lint/suspicious/noExplicitAny: tests read the answer's fields by name
    return answer.ok ? (answer.value as any) : expect.fail(`${tool}: ${answer.error.message}`)
  }
  const { id: agent } = await asAgent('agent_me', {})
  const question = JSON.stringify({ command: MARK })
  runner.print(run, { type: 'turn_started' }, { type: 'text', from: 'agent', text: MARK })
  runner.print(run, { type: 'approval_asked', id: 'q1', name: 'Bash', input: question })
  const approvals = async () => (await owner.call('approval_list', { project_id: project })).approvals
  await until(async () => (await approvals()).length === 1)
  const [{ id: approval }] = await approvals()
  const { letters } = await asAgent('mail_send', { to_human: true, subject: MARK, body: MARK })
  const mail = letters?.[0]?.id ?? (await owner.call('mail_inbox')).letters[0].id
  const { thread_id: thread } = (await owner.call('mail_inbox')).letters[0]
  await asAgent('decision_log', { title: MARK, body: MARK })
  await asAgent('review_request', { summary: MARK })
  const { plan_id: plan } = await owner.call('plan_propose', { project_id: project, tasks: [{ title: MARK }] })
  const { epic_id: epic } = await owner.call('epic_create', { project_id: project, title: MARK, start: false })
  const work = (await owner.call('work_get', { task_id: task })).work.id
  const theirs: Record<string, string> = { project, repo, task, job, run, agent, approval, mail, thread, plan, epic, work }
  return Object.assign(app, { ours, theirs })
}

const WEBHOOK = 'https://hooks.example.com/T000/verysecret'

/** The tool with nothing that names a thing, and with each thing of the other project in each place for one. */
function* callsOf(tool: Tool, theirs: Record<string, string>): Generator<{ given: string | undefined; input: Record<string, unknown> }> {
  const fields = tool.places?.at === 'object' ? tool.places.fields : []
  const required = (tool.inputJson.required ?? []) as string[]
  const needed = Object.entries(tool.example ?? {}).filter(([key]) => required.includes(key) && !fields.some(([name]) => name === key))
  const plain = { ...Object.fromEntries(needed), ...ALL[tool.name] }
  const quick = 'timeout_seconds' in tool.input.shape ? { timeout_seconds: 1 } : {}
  if (!fields.some(([name]) => required.includes(name))) yield { given: undefined, input: { ...plain, ...quick } }
  for (const [name, places] of fields) {
    const kind = kindOf(places)
    const id = theirs[kind]
    if (id) yield { given: kind, input: { ...plain, ...quick, [name]: places.at === 'each' ? [id] : id } }
  }
}

/** Where less would be shown by default. */
const ALL: Record<string, object> = {
  approval_list: { states: APPROVAL_STATES },
  effect_list: { states: EFFECT_STATES, limit: 200 },
  event_list: { limit: 200 },
  transcript_search: { words: MARK },
}

/** Those that tell of the daemon or of the caller, or to which this world has nothing to show. */
const NOTHING_OF_A_PROJECT = [
  'agent_me',
  'person_list',
  'file_read',
  'setup_kept',
  'job_actions',
  'budget_get',
  'merge_status',
  'session_exists',
  'session_read',
  'system_health',
  'audit_verify',
  'setting_get',
]

/** What the caller did and got is in them. */
const LOGS = ['decision_list', 'audit_tail']

const showing = (theirs: Record<string, string>) => (text: string) =>
  [MARK, '/repo', '/worktrees', ...Object.values(theirs)].some((its) => text.includes(its))

const kindOf = (places: Places): string => (places.at === 'id' ? places.kind : places.at === 'each' ? kindOf(places.item) : '')

describe('another project', () => {
  test('[K32] no tool shows an agent anything of it, by its ids or without any', async () => {
    const app = await twoProjects()
    const agents: Record<string, Caller> = {}
    for (const role of ['orchestrator', 'planner', 'reviewer']) agents[role] = await app.agent(role, { project_id: app.ours })
    agents.worker = await app.worker((await app.owner.call('task_create', { project_id: app.ours, title: 'Ours' })).task_id)
    agents.viewer = await app.agent('worker', { project_id: app.ours, profile: 'viewer' })
    const shows = showing(app.theirs)
    const shown: string[] = []
    const calls = reads.flatMap((tool) => Array.from(callsOf(tool, app.theirs), (call) => ({ tool: tool.name, ...call })))
    // The logs come first: later they have what the agent itself has asked for.
    const isLog = ({ tool, given }: (typeof calls)[number]) => LOGS.includes(tool) && given === undefined
    for (const { tool, given, input } of [...calls.filter(isLog), ...calls.filter((call) => !isLog(call))]) {
      for (const [role, agent] of Object.entries(agents)) {
        const answer = await agent.invoke(tool, input, { holdMs: 1 })
        // A refusal may say the id that it was given.
        const leaks = answer.ok ? shows(JSON.stringify(answer.value)) || given !== undefined : JSON.stringify(answer.error).includes(MARK)
        if (leaks) shown.push(`${role}: ${tool} ${given ?? ''}`)
      }
    }
    expect(shown).toEqual([])
  })

  test('[K32] the owner sees all of it by the same calls: nothing was missing that could have been shown', async () => {
    const app = await twoProjects()
    await app.owner.call('project_open', { project_id: app.theirs.project })
    const shows = showing(app.theirs)
    const empty: string[] = []
    for (const tool of reads) {
      let found = false
      for (const { input } of callsOf(tool, app.theirs)) {
        const answer = await app.owner.invoke(tool.name, input, { holdMs: 1 })
        found ||= answer.ok && shows(JSON.stringify(answer.value))
      }
      // It tells of what comes after it was called.
      if (!found && tool.name !== 'event_wait') empty.push(tool.name)
    }
    expect(empty).toEqual(NOTHING_OF_A_PROJECT)
  })
})
