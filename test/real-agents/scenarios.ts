import { randomInt } from 'node:crypto'
import { join } from 'node:path'
import { expect } from 'vitest'
import type { RealProgram } from '../../src/testing/real-programs.ts'
import { type Fault, type Step, script } from '../../src/testing/scripted-model/index.ts'
import { kill, survivors } from '../../src/testing/survivors.ts'
import { processesWith, type Site, until } from './site.ts'

/** What a scenario found beside having passed. */
export interface Finding {
  detail?: string
  seconds?: number
  notAsked?: string
  /** The program, or its harness, has no such thing; the scenario made sure that this is said. */
  notPossible?: string
}

/** One row of docs/compatibility.md. */
export interface Scenario {
  name: string
  settings?: Record<string, unknown>
  /** Only these are asked. */
  only?: { programs: RealProgram[]; because: string }
  /** It takes long and does little: it is begun first and runs beside the others. */
  beside?: boolean
  play(site: Site): Promise<Finding>
}

const review: Step = { tool: 'mcp:signalbox.review_request', args: { summary: 'It is done.' } }
const end: Step = { say: 'That is all.' }
const commit: Step = { tool: 'bash', args: { command: 'git add -A && git commit -q -m "add hello" && git log --oneline -1' } }
const note = (task_id: string, body: string): Step => ({ tool: 'mcp:signalbox.task_note', args: { task_id, body } })

const work = (): Step[] => [
  { think: 'Who am I?', say: 'I look who I am.', tool: 'mcp:signalbox.agent_me', args: {} },
  { tool: 'write', args: { path: 'hello.txt', content: 'hello\n' } },
  commit,
  review,
  end,
]

export const SCENARIOS: Scenario[] = [
  {
    name: 'a wait of 100 s in a tool',
    beside: true,
    async play(site) {
      const began = performance.now()
      const wait = (task_id: string): Step => ({ tool: 'mcp:signalbox.task_wait', args: { task_id, timeout_seconds: 100 } })
      const begun = await site.begin((task) => [wait(task), commit, review, end])
      await site.succeeded(begun, 400)
      const result = (await site.transcript(begun.task)).find(({ kind, body }) => kind === 'tool_result' && body.includes('timed_out'))
      expect(result?.body).toMatch(/WAIT_TIMEOUT|timed_out/)
      return { seconds: Math.round((performance.now() - began) / 1_000), detail: result.body.slice(0, 100) }
    },
  },
  {
    name: 'a task from start to review',
    async play(site) {
      const { task, job } = await site.begin(work)
      expect(await site.succeeded({ task, job })).toMatchObject({ lives: 1 })
      const [run] = await site.runs(task)
      const entries = await site.transcript(task)
      const calls = entries.filter(({ kind }) => kind === 'tool_call').map(({ name }) => name)
      for (const tool of ['agent_me', 'review_request']) expect(calls.join(' ')).toContain(tool)
      expect(entries.some(({ kind, body }) => kind === 'tool_result' && body.includes(run.agent_id))).toBe(true)
      expect(entries.some(({ kind, body }) => kind === 'agent' && body.includes('I look who I am.'))).toBe(true)
      const { files } = await site.daemon.call('diff_get', { task_id: task })
      expect(files).toMatchObject([{ path: 'hello.txt' }])
      expect(site.survivors()).toEqual([])
      if (!(await site.meters()).includes('tokens')) return { detail: 'it does not tell how many tokens it used' }
      expect(run.input_tokens).toBeGreaterThan(1_000)
      expect(run.output_tokens).toBeGreaterThan(40)
      return { detail: `${run.input_tokens} + ${run.output_tokens} tokens` }
    },
  },
  {
    name: 'a message in the middle of its work',
    async play(site) {
      const begun = await site.begin(() => [site.gate('work'), { listen: true }, review, end])
      await site.reached('work', begun)
      const message = await site.daemon.post('job_submit', { task_id: begun.task, action: 'message_agent', message: 'use tabs' })
      if (!(await site.can('message'))) return refusedAs(site, begun, message.error?.message)
      expect(await site.over(message.result.job_id)).toMatchObject({ state: 'succeeded' })
      site.open('work')
      await site.said(begun.task, 'heard: use tabs')
      await site.succeeded(begun)
      const entries = await site.transcript(begun.task)
      expect(entries.filter(({ kind, body }) => kind === 'person' && body.includes('use tabs'))).toHaveLength(1)
      return {}
    },
  },
  {
    name: 'an interrupt, and a message to go on',
    async play(site) {
      const begun = await site.begin(() => [site.gate('never'), review, end])
      await site.reached('never', begun)
      if (!(await site.can('interrupt'))) {
        const interrupt = await site.daemon.post('job_submit', { task_id: begun.task, action: 'interrupt_agent' })
        return refusedAs(site, begun, interrupt.error?.message, 'never')
      }
      expect(await site.over(await site.ask(begun.task, 'interrupt_agent'))).toMatchObject({ state: 'succeeded' })
      await until(
        async () => (await site.get(begun.task)).attention === 'human',
        () => site.story(begun.task),
      )
      const message = `Go on. ${script([note(begun.task, 'went on'), commit, review, end])}`
      expect(await site.over(await site.ask(begun.task, 'message_agent', { message }))).toMatchObject({ state: 'succeeded' })
      expect(await site.succeeded(begun)).toMatchObject({ lives: 1 })
      expect((await site.get(begun.task)).notes).toMatchObject([{ body: 'went on' }])
      expect(site.survivors()).toEqual([])
      return {}
    },
  },
  {
    name: 'a stop leaves no process behind',
    async play(site) {
      const mark = `90${randomInt(1e8, 1e9)}`
      // With its output open, opencode would wait for them.
      const away = `(setsid sleep ${mark} >/dev/null 2>&1 &) ; nohup sleep ${mark} >/dev/null 2>&1 & echo half > half.txt`
      const begun = await site.begin(() => [{ tool: 'bash', args: { command: away } }, site.gate('never'), end])
      await site.reached('never', begun)
      // Codex ends what a command leaves in its own group, so it may be one or two.
      expect(processesWith(`sleep ${mark}`).length).toBeGreaterThan(0)
      const stopped = performance.now()
      expect(await site.over(await site.ask(begun.task, 'stop_agent'))).toMatchObject({ state: 'succeeded' })
      const took = Math.round(performance.now() - stopped)
      expect(await site.over(begun.job)).toMatchObject({ state: 'cancelled' })
      expect(site.survivors()).toEqual([])
      expect(processesWith(`sleep ${mark}`)).toEqual([])
      expect((await site.daemon.call('diff_get', { task_id: begun.task })).files).toMatchObject([{ path: 'half.txt' }])
      return { detail: `in ${took} ms` }
    },
  },
  {
    name: 'a daemon that is killed in mid-turn',
    async play(site) {
      const begun = await site.begin((task) => [
        { tool: 'mcp:signalbox.agent_me' },
        site.gate('work'),
        note(task, 'after the restart'),
        commit,
        review,
        end,
      ])
      await site.reached('work', begun)
      await site.daemon.end('SIGKILL')
      await site.daemon.start()
      site.open('work')
      expect(await site.succeeded(begun)).toMatchObject({ lives: 1 })
      expect((await site.get(begun.task)).notes).toMatchObject([{ body: 'after the restart' }])
      return {}
    },
  },
  {
    name: 'a program that is killed goes on in its session',
    async play(site) {
      const begun = await site.begin((task) => [site.gate('work'), note(task, 'finished'), commit, review, end])
      await site.reached('work', begun)
      const first = site.sessions(begun.task)[0]
      expect(first).toBeTruthy()
      if (site.program.sessionNeedsAnotherMinute) await anotherMinute()
      for (const { pid, argv } of survivors(site.daemon.home)) if (!AROUND.test(argv)) kill(pid)
      site.open('work')
      expect(await site.succeeded(begun)).toMatchObject({ lives: 2 })
      expect(site.sessions(begun.task)).toEqual([first, first])
      expect((await site.get(begun.task)).notes).toMatchObject([{ body: 'finished' }])
      // The model was told of the first life too: the script stands twice in what it was asked last.
      const asked = site.model.requests.map(({ body }) => JSON.stringify(body).split('@@SCRIPT').length - 1)
      expect(Math.max(...asked)).toBeGreaterThan(1)
      return {}
    },
  },
  {
    name: "another task is refused, with the program's own token and with any tool",
    async play(site) {
      const other = await site.task(() => [])
      const theft = site.write('theft.mjs', theftOf(site, other))
      const begun = await site.begin(() => [
        note(other, 'stolen'),
        { tool: 'bash', args: { command: `node ${theft}` } },
        { say: 'It says {{last}}', tool: 'mcp:signalbox.agent_me' },
        commit,
        review,
        end,
      ])
      await site.succeeded(begun)
      const told = JSON.stringify(await site.transcript(begun.task))
      expect(told).toContain('PERMISSION_DENIED')
      expect(told).toContain('ANSWER 403 PERMISSION_DENIED')
      expect((await site.get(other)).notes).toEqual([])
      return {}
    },
  },
  ...faults(),
  {
    name: '8 at once',
    only: { programs: ['claude'], because: 'is asked of Claude Code only' },
    async play(site) {
      const tasks = await Promise.all(Array.from({ length: 8 }, () => site.task(work)))
      const began = performance.now()
      const begun = await Promise.all(tasks.map(async (task) => ({ task, job: await site.start(task) })))
      for (const one of begun) expect(await site.succeeded(one, 300)).toMatchObject({ lives: 1 })
      expect(site.survivors()).toEqual([])
      return { detail: `8 of 8 in ${Math.round((performance.now() - began) / 1_000)} s` }
    },
  },
]

/** By the clock, as the names of its files are made from it. */
async function anotherMinute(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 61_000 - (Date.now() % 60_000)))
}

/** Runners, shells and what keeps a tree together: not the program. */
const AROUND = /runner\.js|^(\S*\/)?(unshare|setpriv|sh|bash|zsh|sleep|touch|git)( |$)/

/** As the agent's own user it can read the token of its run, and call the daemon with it. */
function theftOf({ daemon }: Site, task_id: string): string {
  return `
    import { readdirSync, readFileSync } from 'node:fs'
    const runs = ${JSON.stringify(join(daemon.home, 'runs'))}
    const [run] = readdirSync(runs)
    const authorization = 'Bearer ' + readFileSync(runs + '/' + run + '/token', 'utf8').trim()
    const body = ${JSON.stringify(JSON.stringify({ task_id, body: 'stolen' }))}
    const headers = { authorization, 'content-type': 'application/json' }
    const response = await fetch('${daemon.url}/api/tools/task_note', { method: 'POST', headers, body })
    console.log('ANSWER', response.status, (await response.json()).error?.code)`
}

/** A harness that cannot do it says so in words, and the work goes on. */
async function refusedAs(site: Site, begun: { task: string; job: string }, message: string | undefined, gate = 'work'): Promise<Finding> {
  expect(message).toBeTruthy()
  site.open(gate)
  await site.over(begun.job)
  return { notPossible: message }
}

const BOUNDED_S = 180
const RESET_S = 1_200

function faults(): Scenario[] {
  const always = 10_000
  const kinds: { name: string; fault?: (site: Site) => Omit<Fault, 'times'>; understood: RegExp }[] = [
    { name: '429 with a time', fault: ({ program }) => program.limit(RESET_S), understood: /429|rate|limit|quota/i },
    { name: '529', fault: () => ({ status: 529 }), understood: /529|overload|unavailable|server/i },
    { name: '401', fault: () => ({ status: 401 }), understood: /401|auth|key|log ?in/i },
    { name: 'no answer at its address', understood: /connect|refused|network|fetch|reach|send/i },
  ]
  return kinds.map(({ name, fault, understood }) => ({
    name: `the model: ${name}`,
    settings: { 'runs.max_lives': 1 },
    async play(site) {
      if (fault) site.model.fault({ ...fault(site), times: always })
      else await site.model.close()
      const began = performance.now()
      const { task, job } = await site.begin(work)
      const ended = await site.endedOrParked(job, BOUNDED_S)
      const seconds = Math.round((performance.now() - began) / 1_000)
      if (ended.state !== 'queued') expect(ended.state, await site.story(task)).toBe('failed')
      expect(ended.reason).toMatch(understood)
      const attention = await site.get(task)
      expect(attention.attention).toBe(ended.state === 'queued' ? 'quota' : 'human')
      const until = ended.not_before && `${Math.round((Date.parse(ended.not_before) - Date.now()) / 60_000)} minutes`
      return { detail: `${until ? `parked for ${until}` : 'failed'} after ${seconds} s: ${ended.reason}` }
    },
  }))
}
