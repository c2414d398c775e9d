import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, onTestFinished } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { test, Visitor, withoutBrowser } from './support.ts'
import { agentTour, demo, demoAgents, demoMerges, firstVisit, mergeTour, tour } from './tour.ts'

const AXE = `${readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')};0`
/** Nothing of content: they catch the focus at the edge of what is open, and pass it on. */
const GUARDS = ['[data-base-ui-focus-guard]']
const OPEN = `document.querySelector('.dialog, .menu')?.closest('[data-base-ui-portal]') ?? document.documentElement`
const GRAVE = ['serious', 'critical']

interface Violation {
  id: string
  impact: string
  nodes: { html: string; failureSummary: string }[]
}

/** What axe finds now, one line a place: in what is open, or else on the whole page. */
async function faults({ page }: Visitor, name: string): Promise<string[]> {
  if ((await page.evaluate('typeof axe')) === 'undefined') await page.evaluate(AXE)
  const violations = await page.evaluate<Violation[]>(
    `axe.run({ include: [${OPEN}], exclude: ${JSON.stringify(GUARDS)} }, { resultTypes: ['violations'], preload: false }).then((found) => found.violations)`,
  )
  return violations
    .filter(({ impact }) => GRAVE.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${name}: ${id}: ${html.slice(0, 160)} ${failureSummary.replace(/\s+/g, ' ')}`),
    )
}

const DESK = { colorScheme: 'light', viewport: { width: 1360, height: 850 } } as const
const PHONE = { colorScheme: 'dark', viewport: { width: 390, height: 844 } } as const

/** The same once more in the dark, on a phone: to go there by a tour of its own takes longer than to look. */
async function faultsInBoth(visitor: Visitor, name: string): Promise<string[]> {
  const found = await faults(visitor, name)
  await turn(visitor, PHONE)
  found.push(...(await faults(visitor, `${name}, in the dark on a phone`)))
  await turn(visitor, DESK)
  return found
}

async function turn(visitor: Visitor, { colorScheme, viewport }: typeof DESK | typeof PHONE): Promise<void> {
  await visitor.page.evaluate(AT_ONCE)
  await visitor.page.emulateMedia({ colorScheme })
  await visitor.page.setViewportSize(viewport)
  await visitor.settled()
  await visitor.page.evaluate(AT_ONCE)
}

/** Colours that fade, or that rows out of sight take on later, have no contrast meanwhile. */
const AT_ONCE = `{
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('*, *::before, *::after { transition: none !important; content-visibility: visible !important }')
  document.adoptedStyleSheets = [sheet]
}
new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(0))))`

describe.skipIf(withoutBrowser('[U10] screens for everybody'))('screens for everybody', () => {
  test('[U10] axe finds nothing serious on any screen, in any dialog and for whoever has nothing yet, in light and in the dark', async ({
    browser,
    daemon,
  }) => {
    const empty = await TestDaemon.start()
    onTestFinished(() => empty.remove())
    const [visitor, first] = [await Visitor.open(browser, daemon, DESK), await Visitor.open(browser, empty, DESK)]
    const found: string[] = []
    const seen: string[] = []
    let screens: string[] | undefined
    for await (const name of tour(visitor, await demo(daemon))) {
      seen.push(name)
      screens ??= (await visitor.screens()).map((path) => path.slice(1))
      found.push(...(await (screens.includes(name) || name === 'task' ? faultsInBoth : faults)(visitor, name)))
    }
    for await (const name of firstVisit(first)) {
      seen.push(name)
      found.push(...(await faults(first, name)))
    }
    expect(found).toEqual([])
    expect(seen).toEqual(
      expect.arrayContaining([
        'board',
        'merges',
        'task',
        'sign-in',
        'palette',
        'lost',
        'calls',
        'invite-agent',
        'letters',
        'write-letter',
        'new-epic',
        'epic',
        'first-board',
        'first-merges',
      ]),
    )
    await Promise.all([visitor.leave(), first.leave()])
  })

  test('[U10] nor where agents work, in light and in the dark', async ({ browser, daemon }) => {
    const visitor = await Visitor.open(browser, daemon, DESK)
    const found: string[] = []
    for await (const name of agentTour(visitor, await demoAgents(daemon)))
      found.push(...(await (['task-running', 'task-changes'].includes(name) ? faultsInBoth : faults)(visitor, name)))
    expect(found).toEqual([])
    await visitor.leave()
  })

  test('[U10] nor where work is decided about and merged, in light and in the dark', { timeout: 180_000 }, async ({ browser, daemon }) => {
    const visitor = await Visitor.open(browser, daemon, DESK)
    const found: string[] = []
    for await (const name of mergeTour(visitor, await demoMerges(daemon))) found.push(...(await faultsInBoth(visitor, name)))
    expect(found).toEqual([])
    await visitor.leave()
  })
})
