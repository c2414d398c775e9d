import { type Browser, type BrowserContext, chromium, type Locator, type Page } from 'playwright-core'
import { test as base, expect, vi } from 'vitest'
import { findChromium } from '../../scripts/chromium.mjs'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { leftOut } from '../e2e/support.ts'

// A machine that does much else at the same time is slow, not wrong.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

export const withoutBrowser = (what: string) => leftOut('chromium', what)

export async function launch(): Promise<Browser> {
  const executablePath = findChromium()
  if (!executablePath)
    throw new Error('there is no Chromium here: install it, name it in SIGNALBOX_CHROMIUM, or `npm test -- --without chromium`')
  // Chromium refuses its sandbox to root.
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0, args: ['--disable-gpu'] })
}

/** Somebody with a browser of their own. Whatever goes wrong on their pages is a problem, unless the test expects it. */
export class Visitor {
  readonly context: BrowserContext
  readonly page: Page
  readonly daemon: TestDaemon
  readonly #problems: string[] = []
  readonly #expected: RegExp[] = []

  private constructor(context: BrowserContext, page: Page, daemon: TestDaemon) {
    this.context = context
    this.page = page
    this.daemon = daemon
    page.on('pageerror', (error) => this.#problems.push(`page error: ${error.stack ?? error.message}`))
    page.on('console', (message) => {
      if (message.type() === 'error') this.#problems.push(`console: ${message.text()} (${message.location().url})`)
    })
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url())
      if (protocol.startsWith('http') && origin !== new URL(daemon.url).origin) this.#problems.push(`left for ${request.url()}`)
    })
  }

  static async open(browser: Browser, daemon: TestDaemon, look: Parameters<Browser['newContext']>[0] = {}): Promise<Visitor> {
    const context = await browser.newContext({ viewport: { width: 1360, height: 850 }, reducedMotion: 'reduce', ...look })
    // A page on a busy machine may stand still for many seconds.
    context.setDefaultTimeout(40_000)
    await context.addInitScript(`addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI, sample }) =>
      console.error('policy', violatedDirective, blockedURI, sample))`)
    return new Visitor(context, await context.newPage(), daemon)
  }

  /** A refusal by the daemon is an error on the console too. */
  expects(...problems: RegExp[]): void {
    this.#expected.push(...problems)
  }

  get problems(): string[] {
    return this.#problems.filter((problem) => !this.#expected.some((expected) => expected.test(problem)))
  }

  /** By a link of its own, straight to a screen. */
  async signIn(path = '/board'): Promise<void> {
    const { url_path } = await this.daemon.call('token_link')
    await this.page.goto(`${this.daemon.url}${path}${url_path.slice(1)}`)
    await this.page.getByRole('navigation', { name: 'Main' }).waitFor()
    await this.settled()
  }

  async visit(path: string): Promise<void> {
    await this.page.goto(`${this.daemon.url}${path}`)
    await this.settled()
  }

  /** From screen to screen, as by a link: the page is not loaded anew, which takes longer than all that is looked at. */
  async walk(path: string): Promise<void> {
    if (new URL(this.page.url()).pathname === path) return
    await this.page.evaluate(`document.querySelector('main').firstElementChild.dataset.left = ''; history.pushState(null, '', '${path}')`)
    await this.page.locator('main > [data-left]').waitFor({ state: 'detached' })
    await this.page.locator('main > *').first().waitFor()
    await this.settled()
  }

  /** The stream is open and nothing is a grey bar any more. */
  async settled(): Promise<void> {
    await this.page.locator('.health', { hasText: /^Connected/ }).waitFor({ state: 'attached' })
    await this.page.locator('main .skeleton').first().waitFor({ state: 'detached' })
  }

  /** Not the place that is kept free for it while it is carried. */
  card(handle: string, within: Page | Locator = this.page): Locator {
    return within.locator(`[data-task="${handle}"]:not([data-dnd-placeholder])`)
  }

  column(title: string): Locator {
    return this.page.getByRole('region', { name: title, exact: true })
  }

  /** Resolves when the card is in that column. */
  async isIn(handle: string, title: string): Promise<void> {
    await this.card(handle, this.column(title)).waitFor()
  }

  /** The screens that the page itself offers. */
  screens(): Promise<string[]> {
    return this.page
      .getByRole('navigation', { name: 'Main' })
      .locator('.side-link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') as string))
  }

  async leave(): Promise<void> {
    await this.context.close()
    expect(this.problems).toEqual([])
  }
}

interface Fixtures {
  browser: Browser
  /** One for the file: a test makes a project of its own. */
  daemon: TestDaemon
  visitor: Visitor
}

export const test = base.extend<Fixtures>({
  browser: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the dependencies from the pattern
    async ({}, use) => {
      const browser = await launch()
      await use(browser)
      await browser.close()
    },
    // A visitor has a context of its own; to start a browser takes a second of the processor.
    { scope: 'worker' },
  ],
  daemon: [
    // biome-ignore lint/correctness/noEmptyPattern: see above
    async ({}, use) => {
      const daemon = await TestDaemon.start()
      await daemon.call('setting_update', { key: 'runs.default_harness', value: 'scripted' })
      await use(daemon)
      await daemon.remove()
    },
    { scope: 'file' },
  ],
  visitor: async ({ browser, daemon }, use) => {
    const visitor = await Visitor.open(browser, daemon)
    await use(visitor)
    await visitor.leave()
  },
})

let projects = 0

/** A project with tasks of these titles; what the screens are asked to show of a daemon that has others too. */
export async function someTasks(daemon: TestDaemon, ...titles: string[]) {
  const { handle: project, project_id } = await daemon.call('project_create', { name: `Project ${++projects} of ${process.pid}` })
  const tasks: { id: string; handle: string }[] = []
  for (const title of titles) tasks.push((await daemon.call('task_create', { project_id, title })).task)
  return {
    project: project as string,
    project_id: project_id as string,
    board: `/board?project=${project}`,
    tasks,
    handles: tasks.map(({ handle }) => handle),
  }
}
