import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface FakeClock {
  /** For the process whose wall clock it is; its monotonic clock runs on. */
  env: Record<string, string>
  /** An offset like `+3600`, or a time like `@2026-10-25 00:59:58`. */
  set(clock: string): void
  remove(): void
}

export function fakeClock(clock = '+0'): FakeClock {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-clock-'))
  const file = join(folder, 'now')
  const set = (text: string) => {
    writeFileSync(`${file}.next`, `${text}\n`)
    renameSync(`${file}.next`, file)
  }
  set(clock)
  const env = {
    LD_PRELOAD: faketime(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  }
  return { env, set, remove: () => rmSync(folder, { recursive: true }) }
}

function faketime(): string {
  const folders = ['/usr/lib', ...readdirSync('/usr/lib').map((name) => join('/usr/lib', name)), '/usr/lib64', '/usr/local/lib']
  const found = folders.map((folder) => join(folder, 'faketime', 'libfaketimeMT.so.1')).find((path) => existsSync(path))
  if (!found) throw new Error('libfaketime is not installed: run the tests with `--without faketime`, or install faketime')
  return found
}
