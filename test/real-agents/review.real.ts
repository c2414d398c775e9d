import { describe, expect, onTestFinished, test } from 'vitest'
import { realVersion } from '../../src/testing/real-programs.ts'
import type { Rule, Step } from '../../src/testing/scripted-model/index.ts'
import { git } from '../chaos/kill-runs.ts'
import { type Played, PROGRAMS, wanted } from './programs.ts'
import { Site, until } from './site.ts'

const LONGEST_MS = 8 * 60_000
const SCENARIO = 'it works, is reviewed by another of its kind, mends it, and is merged'

const end: Step = { say: 'That is all for now.' }
const call = (tool: string, args: Record<string, unknown> = {}): Step => ({ tool: `mcp:signalbox.${tool}`, args })
const bash = (command: string): Step => ({ tool: 'bash', args: { command } })

const FEEDBACK = { feedback: 'The greeting says nothing.', feedback_type: 'needs_work', actionable_items: ['Say hello'] }

/** By what each is told when it is started. What the reviewer says reaches the worker with its brief. */
const RULES: Rule[] = [
  {
    match: /reviewer of T-1, round 2/,
    steps: [bash('grep Hello greeting.txt'), call('diff_get', { task_id: 'T-1' }), call('review_decide', { decision: 'approve' }), end],
  },
  { match: /reviewer of T-1, round 1/, steps: [bash('test -f greeting.txt'), call('review_feedback', FEEDBACK), end] },
  {
    match: /The greeting says nothing\./,
    steps: [
      bash('grep "Say hello" .signalbox/feedback/1.md && echo Hello > greeting.txt && git commit -qam "Say hello"'),
      call('review_request', { summary: 'It says hello.' }),
      end,
    ],
  },
  {
    match: /works on task T-1/,
    steps: [
      bash('touch greeting.txt && git add -A && git commit -qm Greet'),
      call('review_request', { summary: 'The greeting is there.' }),
      end,
    ],
  },
]

describe.runIf(wanted().some(({ name }) => name === 'claude'))('claude', () => {
  test(
    SCENARIO,
    async ({ task: { meta } }) => {
      const claude = PROGRAMS.find(({ name }) => name === 'claude') as Played
      const site = await Site.open(claude, { 'mail.notice_seconds': 0, 'review.harness': 'claude' }, RULES)
      onTestFinished(() => site.close())
      const { repos } = await site.daemon.call('repo_list')
      await site.daemon.call('repo_update', { repo_id: repos[0].id, checks: 'grep -q Hello greeting.txt' })
      const began = performance.now()
      const task = await site.task(() => [])
      await site.daemon.call('task_update', { task_id: task, description: 'Greet the visitors.' })
      await site.start(task)
      await until(
        async () => (await site.get(task)).status === 'DONE',
        () => site.story(task),
      )
      const seconds = Math.round((performance.now() - began) / 1_000)
      const { reviews } = await site.daemon.call('review_list', { task_id: task })
      expect(reviews).toMatchObject([
        { round: 1, decision: 'request_changes', feedbacks: [{ ...FEEDBACK, state: 'sent' }] },
        { round: 2, decision: 'approve', outcome: 'merged' },
      ])
      expect(reviews[0].decided_by).not.toBe(reviews[1].decided_by)
      const { path } = repos[0]
      const { branch } = (await site.daemon.call('work_get', { task_id: task })).work
      expect(git(path, 'log', '--reverse', '--format=%s', `main..${branch}`).split('\n')).toEqual([
        'Greet',
        'Feedback on T-1, round 1',
        'Say hello',
      ])
      expect(git(path, 'ls-tree', '-r', '--name-only', 'main')).toBe('greeting.txt')
      expect(git(path, 'show', 'main:greeting.txt')).toBe('Hello')
      await until(
        () => site.survivors().length === 0,
        async () => site.survivors().join('\n'),
      )
      const lives = (await site.runs(task)).length
      meta.real = {
        program: 'claude',
        version: realVersion('claude'),
        scenario: SCENARIO,
        seconds,
        detail: `2 rounds, ${lives} lives of the worker`,
      }
    },
    LONGEST_MS,
  )
})
