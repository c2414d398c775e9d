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

describe.skipIf(withoutBrowser('[U10] screens for everybody'))('screens for everybody', () => {
  test('[U10] axe finds nothing serious on any screen, in any dialog and for whoever has nothing yet', async ({ browser, daemon }) => {
    const empty = await TestDaemon.start()
    onTestFinished(() => empty.remove())
    const [visitor, first] = [await Visitor.open(browser, daemon, DESK), await Visitor.open(browser, empty, DESK)]
    const found: string[] = []
    const seen: string[] = []
    const look = async (by: Visitor, name: string) => {
      seen.push(name)
      found.push(...(await faults(by, name)))
    }
    for await (const name of tour(visitor, await demo(daemon))) await look(visitor, name)
    for await (const name of firstVisit(first)) await look(first, name)
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
    const agents = await demoAgents(daemon)
    const [desk, phone] = [await Visitor.open(browser, daemon, DESK), await Visitor.open(browser, daemon, PHONE)]
    const found: string[] = []
    for await (const name of agentTour(desk, agents)) found.push(...(await faults(desk, name)))
    await phone.signIn(`/task/${agents.working}?tab=Transcript`)
    for (const tab of ['Transcript', 'Changes']) {
      await phone.visit(`/task/${agents.working}?tab=${tab}`)
      found.push(...(await faults(phone, tab)))
    }
    expect(found).toEqual([])
    await Promise.all([desk.leave(), phone.leave()])
  })

  test('[U10] nor where work is decided about and merged, in light and in the dark', { timeout: 180_000 }, async ({ browser, daemon }) => {
    const merges = await demoMerges(daemon)
    const found: string[] = []
    for (const look of [DESK, PHONE]) {
      const visitor = await Visitor.open(browser, daemon, look)
      for await (const name of mergeTour(visitor, merges)) found.push(...(await faults(visitor, `${name}, ${look.colorScheme}`)))
      await visitor.leave()
    }
    expect(found).toEqual([])
  })

  test('[U10] nor in the dark, on a phone', async ({ browser, daemon }) => {
    const { task } = await demo(daemon)
    const visitor = await Visitor.open(browser, daemon, PHONE)
    await visitor.signIn()
    const found: string[] = []
    for (const path of [...(await visitor.screens()), `/task/${task}`]) {
      await visitor.walk(path)
      found.push(...(await faults(visitor, path)))
    }
    expect(found).toEqual([])
    await visitor.leave()
  })
})
