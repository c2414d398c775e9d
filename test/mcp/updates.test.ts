import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { type Connected, type ConnectOptions, connect, MODERN, TRANSPORTS, type TransportName, VERSIONS, type Version } from './clients.ts'
import { Arrivals } from './waiting.ts'

let daemon: TestDaemon
beforeAll(async () => {
  daemon = await TestDaemon.start()
  await daemon.call('project_create', { name: 'Web' })
})
afterAll(() => daemon.remove())

const open: Connected[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((connected) => connected.close()))
})

const WAYS = TRANSPORTS.flatMap((transport) => VERSIONS.map((version) => ({ transport, version })))

describe.each(WAYS)('$transport, $version', ({ transport, version }) => {
  test('a change of a subscribed resource is told, by id, by handle and for the list; that of another is not', async () => {
    const [watched, other] = [await newTask(), await newTask()]
    const uris = [`signalbox://task/${watched.id}`, `signalbox://task/${watched.handle}`, 'signalbox://tasks']
    const { told } = await follow(transport, version, uris.slice(0, 2))
    await note(other)
    await note(watched)
    await told.next((uri) => uri === uris[0])
    await told.next((uri) => uri === uris[1])
    expect(told.all.filter((uri) => !uris.includes(uri))).toEqual([])
    const { told: list } = await follow(transport, version, uris.slice(2))
    await note(other)
    expect(await list.next(() => true)).toBe('signalbox://tasks')
  })

  test('after it was given up nothing more is told', async () => {
    const [kept, dropped] = [await newTask(), await newTask()]
    const { told, drop } = await follow(transport, version, [`signalbox://task/${dropped.id}`])
    const sentinel = await follow(transport, version, [`signalbox://task/${kept.id}`])
    await note(dropped)
    await told.next(() => true)
    const before = told.all.length
    await drop()
    await note(dropped)
    await note(kept)
    await sentinel.told.next(() => true)
    expect(told.all.length).toBe(before)
  })

  test('a change of what a role may call is told at once, and the list is then another', async () => {
    const { token } = await daemon.call('agent_invite', { role: 'planner' })
    const connected = await opened(transport, version, { token })
    const changes = new Arrivals<string[]>()
    const names = async () => (await connected.client.listTools()).tools.map(({ name }) => name)
    connected.client.setNotificationHandler('notifications/tools/list_changed', async () => changes.add(await names()))
    if (version === MODERN) await connected.client.listen({ toolsListChanged: true })
    expect(await names()).toContain('task_list')
    await daemon.call('setting_update', { key: 'roles.planner.deny', value: ['task_list'] })
    expect(await changes.next(() => true)).not.toContain('task_list')
    await daemon.call('setting_update', { key: 'roles.planner.deny', value: null })
    expect(await changes.next(() => true, { after: 1 })).toContain('task_list')
  })

  test('an agent is not told of what it may not read', async () => {
    const far = (await daemon.call('project_create', { name: 'Far' })).project_id
    const secret = (await daemon.call('task_create', { title: 'Far away', project_id: far })).task
    const mine = await newTask()
    const { token } = await daemon.call('agent_invite', { role: 'orchestrator', project_id: mine.project_id })
    const { told } = await follow(transport, version, [`signalbox://task/${secret.id}`, `signalbox://task/${mine.id}`], { token })
    await note(secret)
    await note(mine)
    expect(await told.next(() => true)).toBe(`signalbox://task/${mine.id}`)
    expect(told.all).toHaveLength(1)
  })

  test('[M16] [M10] a letter is told to its receiver, and to nobody else, who then reads it', async () => {
    const [ann, bob, spy] = [await agent(), await agent(), await agent()]
    const uris = ['signalbox://inbox']
    const [{ told, client }, { told: overheard }] = [
      await follow(transport, version, uris, { token: bob.token }),
      await follow(transport, version, uris, { token: spy.token }),
    ]
    const letter = { to_agent_id: bob.agent_id, subject: 'Hi', body: 'Which port?' }
    const { mail_id } = await daemon.call('mail_send', letter, ann.token)
    expect(await told.next(() => true)).toBe('signalbox://inbox')
    const [content] = (await client.readResource({ uri: 'signalbox://inbox' })).contents
    expect(JSON.parse((content as { text: string }).text)).toMatchObject({ count: 1, letters: [{ id: mail_id, body: 'Which port?' }] })
    expect(overheard.all).toEqual([])
    await daemon.call('mail_send', { ...letter, to_agent_id: spy.agent_id }, ann.token)
    await overheard.next(() => true)
    expect(overheard.all).toHaveLength(1)
  })
})

test('what is not there cannot be subscribed to by a 2025 client', async () => {
  const connected = await opened('http', '2025-11-25')
  await expect(connected.client.subscribeResource({ uri: 'signalbox://nowhere' })).rejects.toMatchObject({ code: -32_602 })
})

async function opened(transport: TransportName, version: Version, options: ConnectOptions = {}): Promise<Connected> {
  const connected = await connect(daemon, transport, version, options)
  open.push(connected)
  // Over HTTP a 2025 client is told on a stream that it opens by itself, a moment after it has connected.
  await connected.listening
  return connected
}

/** Subscribes as the era has it; `told` are the URIs that were said to have changed. */
async function follow(transport: TransportName, version: Version, uris: string[], options: ConnectOptions = {}) {
  const { client } = await opened(transport, version, options)
  const told = new Arrivals<string>()
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => told.add(params.uri))
  if (version !== MODERN) {
    for (const uri of uris) await client.subscribeResource({ uri })
    return { client, told, drop: () => Promise.all(uris.map((uri) => client.unsubscribeResource({ uri }))) }
  }
  const subscription = await client.listen({ resourceSubscriptions: uris })
  expect(subscription.honoredFilter).toEqual({ resourceSubscriptions: uris })
  const drop = async () => {
    await subscription.close()
    // Giving up is not answered; a question behind it is, and by then it has arrived.
    await client.listPrompts()
  }
  return { client, told, drop }
}

function agent(): Promise<{ agent_id: string; token: string }> {
  return daemon.call('agent_invite', { role: 'worker' })
}

async function newTask(): Promise<{ id: string; handle: string; project_id: string }> {
  const { projects } = await daemon.call('project_list')
  return (await daemon.call('task_create', { title: 'Watched', project_id: projects[0].id })).task
}

async function note(task: { id: string }): Promise<void> {
  await daemon.call('task_note', { task_id: task.id, body: 'changed' })
}
