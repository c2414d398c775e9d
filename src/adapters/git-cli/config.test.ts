import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { Configurations, counting, filtersIn, parsed, type Setting, written } from './config.ts'

afterEach(() => vi.useRealTimers())

test('[GT1] of a configuration only this counts, with these values', () => {
  const counts: Setting[] = [
    ['core.autocrlf', 'input'],
    ['core.filemode', 'FALSE'],
    ['core.sharedrepository', '0660'],
    ['extensions.objectformat', 'sha256'],
    ['remote.a.b.url', 'git@example.org:web.git'],
    ['remote.origin.promisor', 'true'],
    ['branch.main.merge', 'refs/heads/main'],
  ]
  const doesNot: Setting[] = [
    ['core.autocrlf', '!sh'],
    ['core.hookspath', '/tmp'],
    ['core.fsmonitor', '/tmp/x'],
    ['core.sshcommand', 'x'],
    ['core.worktree', '/'],
    ['core.bare', 'false'],
    ['core.attributesfile', '/tmp/x'],
    ['core.gitproxy', 'x'],
    ['include.path', 'x'],
    ['includeif.gitdir:/.path', 'x'],
    ['filter.core.autocrlf.clean', 'x'],
    ['diff.external', 'x'],
    ['merge.x.driver', 'x'],
    ['extensions.worktreeconfig', 'true'],
    ['extensions.x', 'two words'],
    ['remote.origin.url', 'ext::sh -c x'],
    ['remote.origin.url', '--upload-pack=x'],
    ['remote.origin.url', 'ssh://-oProxyCommand=x/y'],
    ['lfs.url', 'git@-oProxyCommand=x:y'],
    ['remote.origin.url', 'a\nb'],
    ['remote.origin.uploadpack', 'x'],
    ['remote.origin.vcs', 'x'],
    ['branch.main.mergeoptions', '--squash'],
    ['lfs.customtransfer.x.path', 'x'],
    ['credential.helper', '!x'],
    ['gpg.program', 'x'],
    ['url.ext::x.insteadof', 'https://'],
  ]
  expect(counting([...counts, ...doesNot])).toEqual(counts)
})

test('[GT1] what is let through is written as it was read', () => {
  const settings: Setting[] = [
    ['core.eol', 'lf'],
    ['remote.a "b" \\c] d.url', 'https://x/"#;\\ y '],
  ]
  expect(written(settings)).toBe('[core]\n\teol = "lf"\n[remote "a \\"b\\" \\\\c] d"]\n\turl = "https://x/\\"#;\\\\ y "\n')
  expect(parsed('core.eol\nlf\0a.b\0c.d\n\0')).toEqual([
    ['core.eol', 'lf'],
    ['a.b', 'true'],
    ['c.d', ''],
  ])
})

test('[GL11] filters that are named, or may be named in a file that is not read', () => {
  expect(
    filtersIn([
      ['filter.a.b.smudge', 'x'],
      ['filter.c.clean', 'x'],
      ['filter.d.process', 'x'],
    ]),
  ).toEqual(new Set(['a.b', 'd']))
  expect(filtersIn([['include.path', 'x']])).toBe('any')
})

test('[GT1] a configuration is read every time, and git is asked about it when it has changed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-config-'))
  const [config, link] = [join(folder, 'config'), join(folder, 'link')]
  writeFileSync(config, '1')
  symlinkSync(config, link)
  const read: string[] = []
  const configurations = new Configurations(async (text) => {
    read.push(text)
    return [['a.b', text]]
  })
  const look = async (file: string) => [(await configurations.in(file))[0]?.[1], read.splice(0).length]
  expect([await look(config), await look(config)]).toEqual([
    ['1', 1],
    ['1', 0],
  ])
  writeFileSync(config, '2')
  expect([await look(config), await look(config)]).toEqual([
    ['2', 1],
    ['2', 0],
  ])
  expect([await look(link), await look(link)]).toEqual([
    ['2', 1],
    ['2', 0],
  ])
  rmSync(config)
  expect([await look(config), await look(config)]).toEqual([
    [undefined, 0],
    [undefined, 0],
  ])
  rmSync(folder, { recursive: true })
})
