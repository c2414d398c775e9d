import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { test, Visitor, withoutBrowser } from './support.ts'
import { demo, firstVisit, tour } from './tour.ts'

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
    `axe.run({ include: [${OPEN}], exclude: ${JSON.stringify(GUARDS)} }, { resultTypes: ['violations'] }).then((found) => found.violations)`,
  )
  return violations
    .filter(({ impact }) => GRAVE.includes(impact))
    .flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${name}: ${id}: ${html.slice(0, 160)} ${failureSummary.replace(/\s+/g, ' ')}`),
    )
}

describe.skipIf(withoutBrowser('[U10] screens for everybody'))('screens for everybody', () => {
  test.for([
    { colorScheme: 'light', viewport: { width: 1360, height: 850 } },
    { colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  ] as const)('[U10] axe finds nothing serious on any screen: $colorScheme, $viewport.width px', async (look, { browser, daemon }) => {
    const empty = await TestDaemon.start()
    try {
      const [visitor, first] = [await Visitor.open(browser, daemon, look), await Visitor.open(browser, empty, look)]
      const found: string[] = []
      const seen: string[] = []
      const sights = await demo(daemon)
      for await (const name of tour(visitor, sights)) {
        seen.push(name)
        found.push(...(await faults(visitor, name)))
      }
      for await (const name of firstVisit(first)) {
        seen.push(name)
        found.push(...(await faults(first, name)))
      }
      expect(found).toEqual([])
      expect(seen).toEqual(expect.arrayContaining(['board', 'task', 'sign-in', 'palette', 'lost', 'first-board']))
      await Promise.all([visitor.leave(), first.leave()])
    } finally {
      await empty.remove()
    }
  })
})
