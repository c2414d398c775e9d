import { describe, expect, onTestFinished, test } from 'vitest'
import { realVersion } from '../../src/testing/real-programs.ts'
import { type Rule, type Step, script } from '../../src/testing/scripted-model/index.ts'
import { git } from '../chaos/kill-runs.ts'
import { type Played, PROGRAMS, wanted } from './programs.ts'
import { Site, until } from './site.ts'

const LONGEST_MS = 8 * 60_000
const SCENARIO = 'it leads an epic with two Codex workers'

const end: Step = { say: 'That is all for now.' }
const call = (tool: string, args: object = {}): Step => ({ tool: `mcp:signalbox.${tool}`, args: args as Record<string, unknown> })

/** What a worker does: the second builds on what the first has left. */
const worker = (file: string, needs?: string): Step[] => [
  {
    tool: 'bash',
    args: { command: `${needs ? `cat ${needs} && ` : ''}echo ${file} > ${file} && git add -A && git commit -q -m "add ${file}"` },
  },
  call('mail_send', { to_human: true, subject: `About ${file}`, body: 'It is there.' }),
  call('review_request', { summary: `${file} is there.` }),
  end,
]

const part = (title: string, steps: Step[], more: object = {}) =>
  call('task_create', { title, description: `As the script says: ${script(steps)}`, ...more })

const approve = (task_id: string): Step[] => [
  call('review_queue'),
  call('diff_get', { task_id }),
  call('review_decide', { task_id, decision: 'approve' }),
  end,
]

/** What the supervisor does when it is started, by what it is told. Its own task is T-1. */
const RULES: Rule[] = [
  { match: /All its tasks are done/, steps: [call('mail_inbox'), call('epic_finish', { title: 'Both files' }), end] },
  { match: /T-3 was handed in/, steps: approve('T-3') },
  { match: /T-2 was handed in/, steps: approve('T-2') },
  {
    match: /supervisor of the epic/,
    steps: [part('One', worker('one.txt')), part('Two', worker('two.txt', 'one.txt'), { blocked_by: ['T-2'] }), end],
  },
]

const named = (name: string) => PROGRAMS.find((program) => program.name === name) as Played

describe.runIf(wanted().some(({ name }) => name === 'claude'))('claude', () => {
  test(
    SCENARIO,
    async ({ task: { meta } }) => {
      const [claude, codex] = [named('claude'), named('codex')]
      const both: Played = {
        ...claude,
        configure: (home, model) => ({ ...claude.configure(home, model), ...codex.configure(home, model) }),
      }
      const site = await Site.open(both, { 'mail.notice_seconds': 0 }, RULES)
      onTestFinished(() => site.close())
      const began = performance.now()
      const { epic } = await site.daemon.call('epic_create', {
        title: 'Two files',
        description: 'One after the other.',
        supervisor: { harness: 'claude' },
        workers: { harness: 'codex' },
      })
      const now = async () => (await site.daemon.call('epic_get', { epic_id: epic.id })).epic
      await until(
        async () => (await now()).state === 'REVIEW',
        async () => `${JSON.stringify(await now())}\n${await site.story(epic.lead_task_id)}`,
      )
      const seconds = Math.round((performance.now() - began) / 1_000)
      for (const task of ['T-2', 'T-3']) expect(await site.get(task)).toMatchObject({ status: 'DONE', epic_id: epic.id })
      const harnesses = await Promise.all(['T-1', 'T-2', 'T-3'].map(async (task) => (await site.runs(task)).map(({ harness }) => harness)))
      expect(harnesses.map((used) => [...new Set(used)])).toEqual([['claude'], ['codex'], ['codex']])
      const { repos } = await site.daemon.call('repo_list')
      const commits = git(repos[0].path, 'log', '--format=%s', `main..${epic.branch}`).trim().split('\n')
      expect(commits).toHaveLength(2)
      expect(git(repos[0].path, 'show', `${epic.branch}:two.txt`).trim()).toBe('two.txt')
      // The workers have written to the human, who is asked to merge it.
      const { letters } = await site.daemon.call('mail_inbox', { include_read: true })
      const subjects = letters.map(({ subject }: { subject: string }) => subject).join()
      for (const words of ['About one.txt', 'About two.txt', 'Epic ready: Two files']) expect(subjects).toContain(words)
      const lives = (await site.runs('T-1')).length
      await until(
        () => site.survivors().length === 0,
        async () => site.survivors().join('\n'),
      )
      meta.real = {
        program: 'claude',
        version: realVersion('claude'),
        scenario: SCENARIO,
        seconds,
        detail: `2 tasks, ${lives} lives of the supervisor`,
      }
    },
    LONGEST_MS,
  )
})
