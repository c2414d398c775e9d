import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, vi } from 'vitest'
import { TestDaemon } from '../../src/testing/daemon.ts'
import { test, Visitor } from './support.ts'
import { agentTour, demo, demoAgents, demoMerges, firstVisit, mergeTour, tour } from './tour.ts'

vi.setConfig({ testTimeout: 10 * 60_000 })

const FOLDER = resolve(import.meta.dirname, '../../.cache/screenshots')
const THEMES = ['light', 'dark'] as const
const SIZES = { desk: { width: 1360, height: 850 }, phone: { width: 390, height: 844 } }

/** `npm run screenshots`. */
test('every screen in light and dark, on a desk and on a phone', async ({ browser }) => {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const [daemon, empty] = [await TestDaemon.start(), await TestDaemon.start()]
  const names = new Set<string>()
  try {
    const [sights, agents, merges] = [await demo(daemon), await demoAgents(daemon), await demoMerges(daemon)]
    for (const colorScheme of THEMES)
      for (const [size, viewport] of Object.entries(SIZES)) {
        const look = { colorScheme, viewport }
        const [visitor, first] = [await Visitor.open(browser, daemon, look), await Visitor.open(browser, empty, look)]
        const picture = async ({ page }: Visitor, name: string) => {
          names.add(name)
          await page.screenshot({ path: join(FOLDER, `${name}-${colorScheme}-${size}.png`), animations: 'disabled' })
        }
        for await (const name of firstVisit(first)) await picture(first, name)
        for await (const name of tour(visitor, sights)) await picture(visitor, name)
        for await (const name of agentTour(visitor, agents)) await picture(visitor, name)
        for await (const name of mergeTour(visitor, merges)) await picture(visitor, name)
        await Promise.all([visitor.leave(), first.leave()])
      }
  } finally {
    await Promise.all([daemon.remove(), empty.remove()])
  }
  writeFileSync(join(FOLDER, 'index.html'), contactSheet([...names]))
  expect(names.size).toBeGreaterThan(15)
})

/** All of them on one page, a screen a row. */
function contactSheet(names: string[]): string {
  const looks = THEMES.flatMap((theme) => Object.keys(SIZES).map((size) => `${theme}-${size}`))
  const rows = names.map((name) => {
    const pictures = looks.map(
      (look) => `<a href="${name}-${look}.png"><img src="${name}-${look}.png" alt="${name}, ${look}" loading="lazy"></a>`,
    )
    return `<h2>${name}</h2><div>${pictures.join('')}</div>`
  })
  return `<!doctype html><meta charset="utf-8"><title>Signalbox: screens</title>
<style>body{font:14px system-ui;margin:24px;background:#888}div{display:flex;gap:12px;align-items:start}img{height:340px;border-radius:6px}</style>
${rows.join('\n')}\n`
}
