// `npm run test:repeat -- 5`: runs `npm test` so many times, and names each test that was not green every time.
import { fail, run, seconds } from './bootstrap.mjs'
import { firstLines, nameOf, readReport } from './test-report.mjs'

const [times = '5', ...more] = process.argv.slice(2)
if (!/^[1-9]\d*$/.test(times)) fail(`"${times}" is no number of runs`, 'For example: `npm run test:repeat -- 5`.')

const seen = new Map()
const rows = []
for (let n = 1; n <= Number(times); n++) {
  console.log(`\n══ run ${n} of ${times} ${'═'.repeat(50)}`)
  const started = Date.now()
  const { code } = await run(process.execPath, ['scripts/test.mjs', ...more])
  const report = readReport()
  for (const failure of [...report.flaky, ...report.failed])
    seen.set(nameOf(failure), [...(seen.get(nameOf(failure)) ?? []), { n, ...failure }])
  rows.push({ n, code, time: seconds(started), ...report })
}

console.log('')
for (const { n, code, time, passed, flaky, failed } of rows)
  console.log(`run ${n}: ${code === 0 ? 'green' : 'RED'}, ${time}, ${passed} tests passed, ${flaky.length} flaky, ${failed.length} failed`)
for (const [name, times] of seen) {
  console.log(`NOT ALWAYS GREEN ${name} (in run ${times.map(({ n }) => n).join(', ')})`)
  console.log(firstLines(times[0].error))
}
if (seen.size === 0 && rows.every(({ code }) => code === 0)) console.log('every test was green every time')
process.exitCode = seen.size > 0 || rows.some(({ code }) => code !== 0) ? 1 : 0
