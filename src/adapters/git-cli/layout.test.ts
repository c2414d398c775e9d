import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { Harmless } from './layout.ts'
import { judged } from './untrusted.ts'

afterEach(() => vi.useRealTimers())

test('[G10] a harmless configuration is looked at again when it changed, or was changed only now', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-layout-'))
  const [config, link] = [join(folder, 'config'), join(folder, 'link')]
  writeFileSync(config, '1')
  symlinkSync(config, link)
  const harmless = new Harmless()
  let looks = 0
  const look = async (file: string, lasting = true) => {
    const before = looks
    await harmless.unless({ common: folder, files: [file, join(folder, 'config.worktree')] }, async () => {
      looks++
      return { overrides: [], isRepository: true, lasting }
    })
    return looks > before
  }
  expect([await look(config), await look(config)]).toEqual([true, true])
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 })
  expect([await look(config), await look(config)]).toEqual([true, false])
  writeFileSync(config, '2')
  expect([await look(config), await look(config)]).toEqual([true, false])
  writeFileSync(join(folder, 'config.worktree'), 'x')
  expect([await look(config), await look(config)]).toEqual([true, false])
  writeFileSync(config, '3')
  expect([await look(config, false), await look(config, false)]).toEqual([true, true])
  expect([await look(link), await look(link)]).toEqual([true, true])
  rmSync(folder, { recursive: true })
})

test('[G10] what can change without the repository’s own files is not remembered', () => {
  const listed = (...entries: [scope: string, entry: string][]) => entries.map((entry) => `${entry.join('\0')}\0`).join('')
  const own: [string, string] = ['local', 'core.bare\nfalse']
  expect(judged(listed(own, ['global', 'filter.x.clean\ncat']))).toEqual({ overrides: [], isRepository: true, lasting: true })
  expect(judged(listed(own, ['local', 'include.path\n../x'])).lasting).toBe(false)
  expect(judged(listed(own, ['worktree', 'includeif.gitdir:/.path\nx'])).lasting).toBe(false)
  expect(judged(listed(own, ['local', 'filter.x.clean\nevil']))).toMatchObject({ overrides: [['filter.x.clean', '']], lasting: false })
  expect(judged(listed(['global', 'user.name\nann']))).toMatchObject({ isRepository: false, lasting: false })
})
