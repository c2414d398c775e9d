import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect } from 'vitest'
import { BIN, TestDaemon } from '../../src/testing/daemon.ts'
import { test, Visitor, withoutBrowser } from './support.ts'

const SESSION = `JSON.parse(localStorage.getItem('signalbox.session'))`

describe.skipIf(withoutBrowser('[U1] [U2] [U3] signing in'))('signing in', () => {
  const greeted = new TestDaemon()
  let serving: ChildProcess
  let link = ''

  /** As a person starts it: what it prints is what they click on. */
  beforeAll(async () => {
    serving = spawn(process.execPath, [BIN, 'serve'], { env: greeted.env, stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const line of createInterface({ input: serving.stdout as NodeJS.ReadableStream })) {
      if (line.includes('#link=')) link = line.trim()
      if (link) break
    }
    greeted.url = new URL(link).origin
  })
  afterAll(async () => {
    const ended = once(serving, 'exit')
    serving.kill('SIGKILL')
    await ended
    await greeted.remove()
  })

  test('[U1] [U2] the link that serve prints signs one browser in, and is nowhere afterwards', async ({ browser }) => {
    const secret = new URL(link).hash.slice('#link='.length)
    const first = await Visitor.open(browser, greeted)
    await first.page.goto(link)
    await first.page.getByText('Welcome. A project comes first.').waitFor()
    expect(first.page.url()).toBe(`${greeted.url}/board`)
    await first.page.goBack()
    expect(first.page.url()).not.toContain(secret)
    await first.page.goForward()
    expect(await first.page.evaluate('JSON.stringify([location.href, document.body.innerHTML, { ...localStorage }])')).not.toContain(secret)

    expect(await first.context.cookies()).toEqual([])
    expect(await first.page.evaluate('document.cookie + sessionStorage.length')).toBe('0')
    const { token } = await first.page.evaluate<{ token: string }>(SESSION)
    expect(await greeted.call('agent_me', {}, token)).toMatchObject({ kind: 'person' })
    expect(await first.page.content()).not.toContain(token)

    await first.page.reload()
    await first.page.getByText('Welcome. A project comes first.').waitFor()

    const second = await Visitor.open(browser, greeted)
    second.expects(/status of 401/)
    await second.page.goto(link)
    await second.page.getByRole('alert').getByText('This link does not work any more').waitFor()
    expect(second.page.url()).not.toContain(secret)
    expect(await second.page.evaluate('localStorage.length')).toBe(0)
    await Promise.all([first.leave(), second.leave()])
  })

  test('[U3] the first page leads to a project, and that to a task', async ({ browser }) => {
    const visitor = await Visitor.open(browser, greeted)
    const { page } = visitor
    await visitor.signIn()
    await page.getByRole('button', { name: 'Create a project' }).click()
    const dialog = page.getByRole('dialog', { name: 'New project' })
    await dialog.getByLabel('Name').fill('Web shop')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByRole('main').getByRole('heading', { name: 'Web shop' }).waitFor()
    expect((await greeted.call('project_list')).projects).toMatchObject([{ name: 'Web shop', handle: 'web-shop' }])
    await page.getByRole('main').getByRole('link', { name: 'Board' }).click()
    await page.getByRole('button', { name: 'Create the first task' }).click()
    await page.getByRole('textbox', { name: 'Title' }).fill('The first')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await visitor.isIn('T-1', 'Backlog')
    await visitor.leave()
  })

  test('[U2] signing out ends the token at the daemon, and the next person sees nothing of the one before', async ({ visitor, daemon }) => {
    const { page } = visitor
    const bea = await daemon.call('person_invite', { name: 'Bea', profile: 'viewer' })
    await visitor.signIn()
    const { token } = await page.evaluate<{ token: string }>(SESSION)
    expect(await daemon.post('agent_me', {}, token)).toMatchObject({ ok: true })
    const name = (await daemon.call('agent_me')).name as string
    await page.getByRole('button', { name }).click()
    await page.getByRole('menuitem', { name: 'Sign out of this browser' }).click()
    await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
    expect(await daemon.post('agent_me', {}, token)).toMatchObject({ status: 401, error: { code: 'AUTH_STALE_TOKEN' } })
    expect(await page.evaluate(`localStorage.getItem('signalbox.session')`)).toBe(null)

    await page.getByText('I was given a token').click()
    await page.getByLabel('Token').fill('sbx_agent_of_no_use')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('A person’s token begins with sbx_person_.').waitFor()
    await page.getByLabel('Token').fill(bea.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Bea' }).waitFor()
    expect(await page.getByText(name, { exact: true }).count()).toBe(0)
  })

  test('[U2] a token that is ended elsewhere shows the sign-in page, and why', async ({ visitor, daemon }) => {
    const { page } = visitor
    visitor.expects(/status of 401/)
    await visitor.signIn()
    const { token_id } = await page.evaluate<{ token_id: string }>(SESSION)
    await daemon.call('token_revoke', { token_id })
    await page.getByText('This browser was signed out.').waitFor()
    await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })

  test('[U1] a link that is opened by whoever is signed in already lets nobody in later', async ({ visitor, daemon }) => {
    const { page } = visitor
    await visitor.signIn()
    const { url_path } = await daemon.call('token_link')
    await page.goto('about:blank')
    await page.goto(`${daemon.url}/board${url_path.slice(1)}`)
    await page.getByRole('button', { name: (await daemon.call('agent_me')).name }).click()
    await page.getByRole('menuitem', { name: 'Sign out of this browser' }).click()
    await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
    expect(page.url()).toBe(`${daemon.url}/board`)
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })

  test('[U1] a link that is pasted into the tab with the sign-in page signs it in, and is nowhere afterwards', async ({
    visitor,
    daemon,
  }) => {
    const { page } = visitor
    await page.goto(`${daemon.url}/board`)
    await page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
    const { url_path } = await daemon.call('token_link')
    await page.goto(`${daemon.url}/board${url_path.slice(1)}`)
    await page.getByRole('navigation', { name: 'Main' }).waitFor()
    expect(page.url()).toBe(`${daemon.url}/board`)
  })

  test('[U2] a token that is no good is refused where it was pasted', async ({ visitor, daemon }) => {
    const { page } = visitor
    visitor.expects(/status of 401/)
    await page.goto(`${daemon.url}/board`)
    await page.getByText('I was given a token').click()
    await page.getByLabel('Token').fill('sbx_person_of_no_use')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.locator('form').getByRole('alert').waitFor()
    expect(await page.getByLabel('Token').inputValue()).toBe('sbx_person_of_no_use')
    expect(await page.evaluate('localStorage.length')).toBe(0)
  })

  test('[U2] where the browser keeps nothing, who signs in stays signed in as long as the page is open', async ({ visitor }) => {
    await visitor.context.addInitScript(
      `Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('blocked', 'SecurityError') } })`,
    )
    await visitor.signIn()
  })

  test('[U2] a tab follows when another signs out', async ({ visitor }) => {
    await visitor.signIn()
    const other = await visitor.context.newPage()
    await other.goto(`${visitor.daemon.url}/board`)
    await other.getByRole('navigation', { name: 'Main' }).waitFor()
    await other.evaluate(`localStorage.removeItem('signalbox.session')`)
    await visitor.page.getByRole('heading', { name: 'Sign in to Signalbox' }).waitFor()
  })
})
