import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { command } from '../../src/daemon/cli-command.ts'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { fakeTerminal } from '../../src/testing/terminal.ts'
import { repository } from '../chaos/kill-runs.ts'
import { Stream, until } from './support.ts'

let daemon: TestDaemon
let project_id: string

beforeAll(async () => {
  daemon = await TestDaemon.start()
  project_id = (await daemon.call('project_create', { name: 'Web' })).project_id
})
afterAll(() => daemon.remove())

const agent = (role: string, name: string) => daemon.call('agent_invite', { role, name, project_id })

describe('letters', () => {
  test('[M10] a stream shows the receiver what is its own, and no other agent, whatever it asks for', async () => {
    const [ann, bob] = [await agent('worker', 'Ann'), await agent('worker', 'Bob')]
    const spies = await Promise.all(
      ['worker', 'orchestrator', 'supervisor', 'planner', 'reviewer'].map((role) => agent(role, `Spy ${role}`)),
    )
    const before = (await daemon.call('task_list')).cursor
    const queries = ['', `?project=${project_id}`, '?types=task.*,mail.*']
    const open = () =>
      Promise.all(spies.flatMap(({ token }) => queries.map((query) => Stream.open(daemon, { token, after: before, query }))))
    const live = await open()
    const { mail_id } = await daemon.call('mail_send', { to_agent_id: bob.agent_id, subject: 'Platypus', body: 'x' }, ann.token)
    await daemon.call('mail_send', { to_human: true, subject: 'Platypus', body: 'x' }, ann.token)
    await daemon.call('mail_ack', { mail_id }, bob.token)
    const own = await Stream.open(daemon, { token: bob.token, after: before, query: '?types=mail.*' })
    await own.heard((events) => events.some((event) => event.data.subject === mail_id))
    const { task_id } = await daemon.call('task_create', { project_id, title: 'marker' })
    // Those that were there when it happened, and those that read it up.
    for (const stream of [...live, ...(await open())]) {
      await stream.heard((events) => events.some((event) => event.data.subject === task_id))
      expect(JSON.stringify(stream.events)).not.toMatch(/Platypus|mail\.|mail_/)
      stream.close()
    }
    own.close()
  })

  test("[M16] whoever waits for events hears of a letter, and of no other's", async () => {
    const [ann, bob, spy] = [await agent('worker', 'Ann'), await agent('worker', 'Bob'), await agent('worker', 'Spy')]
    const { cursor } = await daemon.call('event_list', {}, bob.token)
    const waits = (token: string) => daemon.call('event_wait', { types: ['mail.*', 'task.created'], cursor, timeout_seconds: 30 }, token)
    const [heard, overheard] = [waits(bob.token), waits(spy.token)]
    const { mail_id } = await daemon.call('mail_send', { to_agent_id: bob.agent_id, subject: 'Hi', body: 'x' }, ann.token)
    expect((await heard).events).toMatchObject([{ type: 'mail.sent', data: { mail_id } }])
    const { task_id } = await daemon.call('task_create', { project_id, title: 'marker' })
    expect((await overheard).events.map((event: { subject: string }) => event.subject)).toEqual([task_id])
  })

  test('[M19] the status says what is unread, and how to read and answer it', async () => {
    const { token } = await agent('worker', 'Cay')
    for (const { id } of (await daemon.call('mail_inbox', { limit: 200 })).letters) await daemon.call('mail_read', { mail_id: id })
    const shown = async () => {
      const terminal = fakeTerminal({ person: true, columns: 120 })
      expect(await command(['status'], { SIGNALBOX_HOME: daemon.home }, terminal)).toBe(0)
      return terminal.stdout
    }
    expect(await shown()).not.toContain('Unread')
    const ids: string[] = []
    for (let n = 0; n < 9; n++)
      ids.push(
        (await daemon.call('mail_send', { to_human: true, subject: `Port ${n}\u001b[2J`, body: 'x', importance: 'urgent' }, token)).mail_id,
      )
    const status = await shown()
    expect(status).toContain('Unread letters (9)')
    expect(status).toMatch(/cay\b.*Port 0.*urgent/)
    expect(status).toContain('… and 1 more: signalbox need list --kinds letter')
    expect(status).toContain(`signalbox mail read ${ids[0]}`)
    expect(status).not.toContain('\u001b[2J')
    const answer = fakeTerminal({ person: true, columns: 120 })
    expect(await command(['mail', 'reply', ids[8] as string, '3001'], { SIGNALBOX_HOME: daemon.home }, answer)).toBe(0)
    expect((await daemon.call('mail_inbox', {}, token)).letters).toMatchObject([
      { subject: expect.stringContaining('Re: Port 8'), body: '3001' },
    ])
  })

  test('[M13] an agent of ours asks the human, is told of the answer at its next turn, and reads, acknowledges and answers it', async () => {
    const repo = repository()
    onTestFinished(() => rmSync(repo, { recursive: true, force: true }))
    await daemon.call('repo_add', { path: repo, project_id })
    const steps = [
      { call: { tool: 'mail_send', arguments: { to_human: true, subject: 'Which port?', body: 'Tests or documentation?' } } },
      { wait_message: { timeout_seconds: 120, save: 'notice' } },
      { say: 'HEARD {{notice.text}}' },
      { call: { tool: 'mail_inbox', save: 'inbox' } },
      { call: { tool: 'mail_read', arguments: { mail_id: '{{inbox.letters.0.id}}' }, save: 'answer' } },
      { call: { tool: 'mail_ack', arguments: { mail_id: '{{inbox.letters.0.id}}' } } },
      { call: { tool: 'mail_reply', arguments: { mail_id: '{{inbox.letters.0.id}}', body: 'So {{answer.letter.body}}' } } },
      { review: { summary: 'Asked, and done.' } },
    ]
    const { task_id } = await daemon.call('task_create', { project_id, title: 'Ask first' })
    const options = { script: JSON.stringify(steps) }
    const { job_id } = await daemon.call('job_submit', { task_id, action: 'start_agent', harness: 'scripted', options })
    const asked = async () =>
      (await daemon.call('mail_inbox', { limit: 200 })).letters.find((letter: { task_id: string | null }) => letter.task_id === task_id)
    await until(asked, 'the agent asked')
    const { mail_id } = await daemon.call('mail_reply', { mail_id: (await asked()).id, body: 'it is 3001' })
    expect((await daemon.call('job_wait', { job_id, timeout_seconds: 100 })).job).toMatchObject({ state: 'succeeded' })
    const { entries } = await daemon.call('transcript_search', { task_id, words: 'HEARD Signalbox: you have an unread letter, from owner' })
    expect(entries).toHaveLength(1)
    expect(entries[0].body).not.toContain('3001')
    const { letters } = await daemon.call('mail_thread', { mail_id })
    expect(letters.map(({ body, acked_at }: { body: string; acked_at: string | null }) => [body, acked_at !== null])).toEqual([
      ['Tests or documentation?', false],
      ['it is 3001', true],
      ['So it is 3001', false],
    ])
  })

  test('[M17] a command that is set on the command line gets the letter', async () => {
    const { token } = await agent('worker', 'Dan')
    const [tool, out] = [join(daemon.home, 'notify.cjs'), join(daemon.home, 'told.json')]
    writeFileSync(
      tool,
      `require('fs').writeFileSync(${JSON.stringify(out)} + '.new', require('fs').readFileSync(0)); require('fs').renameSync(${JSON.stringify(out)} + '.new', ${JSON.stringify(out)})`,
    )
    const set = await daemon.cli(['setting', 'update', 'mail.notify_command', JSON.stringify([process.execPath, tool])])
    expect(set.code).toBe(0)
    const { mail_id } = await daemon.call('mail_send', { to_human: true, subject: 'Dinner', body: 'At eight.' }, token)
    // Of an earlier letter it may be told as well, if that was not done with when the command was set.
    const told = () => (existsSync(out) ? JSON.parse(readFileSync(out, 'utf8')) : undefined)
    await until(() => told()?.mail_id === mail_id, 'the command was run')
    expect(told()).toMatchObject({ from: 'dan', subject: 'Dinner', body: 'At eight.' })
  })
})
