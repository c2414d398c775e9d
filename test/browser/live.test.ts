import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { bearer, send, until } from '../e2e/support.ts'
import { call, connect, MODERN } from '../mcp/clients.ts'
import { someTasks, test, Visitor, withoutBrowser } from './support.ts'

const WITHIN_MS = 1_000
const BUSY_MACHINE_MS = 30_000
const MISSED = Array.from({ length: 20 }, (_, i) => `missed ${i + 1}`)

describe.skipIf(withoutBrowser('[U7] [U8] what happens is shown'))('what happens is shown', () => {
  test('[U7] a change by an MCP client is on the board within a second', async ({ visitor, daemon }) => {
    const { board, handles, project_id } = await someTasks(daemon, 'Watched', 'Other')
    const [handle = ''] = handles
    const agent = await daemon.call('agent_invite', { role: 'orchestrator', name: 'Otto' })
    const client = await connect(daemon, 'http', MODERN, { token: agent.token })
    await visitor.signIn(board)
    await visitor.isIn(handle, 'Backlog')
    await call(client, 'agent_me')
    const took: Record<string, { answered: number; shown: number }> = {}
    const late: number[] = []
    const timed = async (tool: string, args: Record<string, unknown>, column: string, text: string) => {
      const shown = seenAt(visitor, `section[aria-label="${column}"]`, text)
      const asked = Date.now()
      await call(client, tool, args)
      const answered = Date.now()
      took[tool] = { answered: answered - asked, shown: (await shown) - asked }
      expect((await shown) - answered, tool).toBeLessThan(BUSY_MACHINE_MS)
      late.push((await shown) - answered)
    }
    await timed('task_move', { task_id: handle, status: 'IN_PROGRESS' }, 'In progress', 'Watched')
    await timed('task_create', { project_id, title: 'Made by a machine' }, 'Backlog', 'Made by a machine')
    await timed('task_update', { task_id: handle, title: 'Renamed by a machine' }, 'In progress', 'Renamed by a machine')
    await timed('task_close', { task_id: handles[1], reason: 'Not needed' }, 'Done', 'Other')
    await client.close()
    expect(Math.min(...late)).toBeLessThan(WITHIN_MS)
    console.info(`[U7] ms from the MCP client's call to its answer and to the screen: ${JSON.stringify(took)}`)
  })
})

describe.skipIf(withoutBrowser('[U8] a restart in mid-view'))('a restart in mid-view', () => {
  test.for(['SIGTERM', 'SIGKILL'] as const)(
    '[U8] after %s the page goes on where it was, with every event once',
    async (signal, { browser }) => {
      const daemon = await TestDaemon.start()
      const { handles, board } = await someTasks(daemon, 'Seen through a restart', 'Beside it')
      const [handle = ''] = handles
      const [task, boardPage] = [await Visitor.open(browser, daemon), await Visitor.open(browser, daemon)]
      for (const visitor of [task, boardPage])
        visitor.expects(/net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE|EMPTY_RESPONSE|INTERNET_DISCONNECTED)/)
      try {
        await Promise.all([task.signIn(`/task/${handle}`), boardPage.signIn(board)])
        await note(daemon, handle, 'before')
        await task.page.locator('.notes').getByText('before').waitFor()
        for (const { page } of [task, boardPage]) await page.evaluate('window.neverReloaded = true')
        await task.page.getByLabel('Write a note').fill('half typed')

        await daemon.end(signal)
        for (const { page } of [task, boardPage]) await page.getByText('The connection to Signalbox is lost.').waitFor()
        // Held off until everything is written: what happens meanwhile can only come by the cursor.
        for (const { context } of [task, boardPage]) await context.setOffline(true)
        await daemon.start()
        for (const missed of MISSED) await note(daemon, handle, missed)
        await daemon.call('task_move', { task_id: handle, status: 'IN_PROGRESS' })
        for (const { context } of [task, boardPage]) await context.setOffline(false)

        for (const visitor of [task, boardPage]) {
          await visitor.page.getByText('The connection to Signalbox is lost.').waitFor({ state: 'detached' })
          await visitor.settled()
        }
        await boardPage.isIn(handle, 'In progress')
        expect(await boardPage.page.locator('[data-task]').count()).toBe(2)
        await task.page.locator('.page-actions').getByText('In progress').waitFor()
        await task.page.locator('.notes').getByText('missed 20', { exact: true }).waitFor()
        await note(daemon, handle, 'after')
        await task.page.locator('.notes').getByText('after', { exact: true }).waitFor()

        const { history: events } = await daemon.call('task_context', { task_id: handle })
        await expect.poll(() => task.page.locator('.history .event-line').allTextContents()).toHaveLength(events.length)
        const notes = await task.page.locator('.notes .markdown').allTextContents()
        expect(notes).toEqual(['before', ...MISSED, 'after'])
        expect(await task.page.getByLabel('Write a note').inputValue()).toBe('half typed')
        for (const { page } of [task, boardPage]) expect(await page.evaluate('window.neverReloaded')).toBe(true)
        await Promise.all([task.leave(), boardPage.leave()])
      } finally {
        await daemon.remove()
      }
    },
  )
})

describe.skipIf(withoutBrowser('[U8] a daemon that is not there'))('a daemon that is not there', () => {
  test('[U8] a page that cannot connect says so, and begins when it can', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'Patience')
    visitor.expects(/ERR_FAILED .*api\/events/)
    await visitor.signIn(board)
    await visitor.page.route('**/api/events', (route) => route.abort())
    await visitor.page.reload()
    await visitor.page.getByText('Signalbox does not answer. Trying again.').waitFor()
    await visitor.page.unroute('**/api/events')
    await visitor.isIn(handles[0] as string, 'Backlog')
    await visitor.page.getByText('Signalbox does not answer. Trying again.').waitFor({ state: 'detached' })
  })
})

describe.skipIf(withoutBrowser('[U8] another log, and a read that hangs'))('another log, and a read that hangs', () => {
  test('[U8] after a restore the page shows what the restored log says', async ({ browser }) => {
    const daemon = await TestDaemon.start()
    const visitor = await Visitor.open(browser, daemon)
    visitor.expects(/net::ERR_/, /status of 400 .*api\/events/)
    try {
      const { board, handles } = await someTasks(daemon, 'Restored')
      const [handle = ''] = handles
      await visitor.signIn(board)
      const file = join(daemon.home, 'before.db')
      expect(await daemon.cli(['db', 'backup', file])).toMatchObject({ code: 0 })
      await daemon.call('task_move', { task_id: handle, status: 'IN_PROGRESS' })
      await daemon.call('task_move', { task_id: handle, status: 'REVIEW' })
      await visitor.isIn(handle, 'Review')
      await daemon.end()
      expect(await daemon.cli(['db', 'restore', file])).toMatchObject({ code: 0 })
      await daemon.start()
      await visitor.isIn(handle, 'Backlog')
      await visitor.leave()
    } finally {
      await daemon.remove()
    }
  })

  test('[U8] a read that hangs is given up and made again, and stops no other', async ({ visitor, daemon }) => {
    const { handles } = await someTasks(daemon, 'Hangs once')
    const [handle = ''] = handles
    await visitor.signIn(`/task/${handle}`)
    await visitor.page.route('**/api/tools/task_context', () => {}, { times: 1 })
    await note(daemon, handle, 'read late')
    await visitor.page.locator('.notes').getByText('read late').waitFor({ timeout: 40_000 })
  })
})

describe.skipIf(withoutBrowser('[U8] pages that nobody looks at'))('pages that nobody looks at', () => {
  test('[U8] an unseen page lets its stream go, and shows what it missed once when it is looked at again', async ({ visitor, daemon }) => {
    const { page } = visitor
    const { handles } = await someTasks(daemon, 'Looked away from')
    const [handle = ''] = handles
    await visitor.signIn(`/task/${handle}`)
    await page.evaluate(`window.said = []
      new MutationObserver(() => document.querySelector('.lost') && said.push('lost')).observe(document.body, { subtree: true, childList: true })`)
    await until(async () => (await streamsOpen(daemon)) === 1, 'it is the only page')
    await look(page, 'hidden')
    await until(async () => (await streamsOpen(daemon)) === 0, 'the stream of the unseen page is closed')
    await note(daemon, handle, 'meanwhile')
    expect(await page.locator('.notes').getByText('meanwhile').count()).toBe(0)
    await look(page, 'visible')
    await page.locator('.notes').getByText('meanwhile').waitFor()
    await note(daemon, handle, 'after')
    await page.locator('.notes').getByText('after').waitFor()
    expect(await page.locator('.notes .markdown').allTextContents()).toEqual(['meanwhile', 'after'])
    expect(await page.evaluate('said')).toEqual([])
    await until(async () => (await streamsOpen(daemon)) === 1, 'it has one stream')
  })

  test('[U8] eight tabs of one browser: the one that is looked at works', async ({ visitor, daemon }) => {
    const { board, handles } = await someTasks(daemon, 'Seen in the last tab')
    const [handle = ''] = handles
    await visitor.signIn(board)
    for (let tab = 0; tab < 6; tab++) {
      const other = await visitor.context.newPage()
      // A browser without a screen calls every tab visible.
      await other.addInitScript(LOOKED.replaceAll('LOOK', 'hidden'))
      await other.goto(daemon.url + board)
    }
    const last = await visitor.context.newPage()
    await last.goto(daemon.url + board)
    await visitor.card(handle, last).waitFor()
    await daemon.call('task_move', { task_id: handle, status: 'IN_PROGRESS' })
    for (const page of [visitor.page, last])
      await visitor.card(handle, page.getByRole('region', { name: 'In progress', exact: true })).waitFor()
  })
})

async function streamsOpen(daemon: TestDaemon): Promise<number> {
  const { text } = await send(daemon.url, { path: '/metrics', headers: bearer(daemon.token) })
  return Number(/^signalbox_event_streams (\d+)$/m.exec(text)?.[1])
}

const LOOKED = `Object.defineProperties(document, {
  visibilityState: { value: 'LOOK', configurable: true },
  hidden: { value: 'LOOK' === 'hidden', configurable: true },
})`

const look = (page: Visitor['page'], state: 'hidden' | 'visible') =>
  page.evaluate(`${LOOKED.replaceAll('LOOK', state)}
    document.dispatchEvent(new Event('visibilitychange'))`)

const note = (daemon: TestDaemon, task_id: string, body: string) => daemon.call('task_note', { task_id, body })

/** The instant at which the text is there, as the page itself sees it: asking again and again would measure the asking. */
function seenAt({ page }: Visitor, selector: string, text: string): Promise<number> {
  const there = `document.querySelector(${JSON.stringify(selector)})?.textContent.includes(${JSON.stringify(text)})`
  // It may be there before the page gets to look for it.
  return page.evaluate<number>(`new Promise((resolve) => {
    if (${there}) return resolve(Date.now())
    const observer = new MutationObserver(() => {
      if (!${there}) return
      observer.disconnect()
      resolve(Date.now())
    })
    observer.observe(document.body, { subtree: true, childList: true, characterData: true })
  })`)
}
