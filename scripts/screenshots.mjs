// `npm run screenshots`: every screen of the dashboard, in light and dark, on a desk and on a phone, to .cache/screenshots.
import { join } from 'node:path'
import { ensureInstalled, fail, ROOT, requireNode, run } from './bootstrap.mjs'
import { findChromium } from './chromium.mjs'

requireNode('20.19.0')
await ensureInstalled()
if (!findChromium())
  fail('there is no Chromium here', 'Install it (Debian: `apt-get install chromium`), or name one in SIGNALBOX_CHROMIUM.')
const { code } = await run(process.execPath, [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--config',
  'vitest.screenshots.config.ts',
  '--silent',
])
if (code === 0) console.log(join(ROOT, '.cache/screenshots/index.html'))
process.exitCode = code
