import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

type Told = { file: string; name: string; error: string }
type Report = { passed: number; flaky: Told[]; failed: Told[] }

const IMPORTS = "import { existsSync, writeFileSync } from 'node:fs'\nimport { afterAll, beforeAll, expect, test } from 'vitest'\n"
/** What goes wrong the first time only. */
const onFirst = (what: string) =>
  `const mark = import.meta.url.slice(7) + '.mark'; if (!existsSync(mark)) { writeFileSync(mark, ''); ${what} }`
const fails = (name: string) => `test('${name}', () => { ${onFirst('expect(1).toBe(2)')} })`

/** `npm test` over test files of its own. */
async function verdict(files: Record<string, string>): Promise<Report & { code: number }> {
  // Here, so that they find vitest.
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, '.cache/verdict-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'vitest.config.mjs'), "export default { test: { pool: 'forks' } }")
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.test.ts`), IMPORTS + text)
  const own = Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST$|NODE_ENV$)/.test(name))
  const env = { ...Object.fromEntries(own), SIGNALBOX_TEST_REPORT: join(folder, 'report.json') }
  const child = spawn(process.execPath, ['scripts/unit.mjs', '--root', folder, '--maxWorkers=1'], {
    cwd: ROOT,
    env,
    stdio: 'ignore',
  })
  const [code] = (await once(child, 'exit')) as [number]
  return { code, ...(JSON.parse(readFileSync(join(folder, 'report.json'), 'utf8')) as Report) }
}

const names = (told: Told[]) => told.map(({ file, name }) => `${basename(file, '.test.ts')} > ${name}`).sort()

describe('the verdict of a run', () => {
  test('[TR1] [TR2] what passes when it is run again is named, and the run is green', async () => {
    const report = await verdict({
      test: `test('always', () => {})\n${fails('once')}`,
      hook: `beforeAll(() => { ${onFirst("throw new Error('the hook broke')")} })\ntest('behind it', () => {})`,
      death: `test('dies', () => { ${onFirst("process.kill(process.pid, 'SIGKILL')")} })`,
    })
    expect(names(report.flaky)).toEqual(['death > the whole file', 'hook > the whole file', 'test > once'])
    expect(report.flaky.find(({ name }) => name === 'once')?.error).toContain('expected 1 to be 2')
    expect(report).toMatchObject({ code: 0, failed: [] })
  })

  test('[TR1] a hook that breaks hides no test that failed', async () => {
    const report = await verdict({
      both: `afterAll(() => { throw new Error('left open') })\ntest('is wrong', () => { expect(1).toBe(2) })`,
    })
    expect(names(report.failed)).toEqual(['both > is wrong', 'both > the whole file'])
  })

  test('[TR2] [TR3] an error that no test waited for is one; what fails twice is red', async () => {
    const stray = "void Promise.reject(new Error('a stray')); await new Promise((heard) => setTimeout(heard, 100))"
    const report = await verdict({
      stray: `test('strays', async () => { ${onFirst(stray)} })`,
      wrong: "test('is wrong', () => { expect(1).toBe(2) })",
    })
    expect(names(report.flaky)).toEqual(['stray > an unhandled error'])
    expect(names(report.failed)).toEqual(['wrong > is wrong'])
    expect(report.code).toBe(1)
  })

  test('[TR3] so are four flakes, and no test at all', async () => {
    const four = await verdict(Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, `${fails(name)}\ntest('fine', () => {})`])))
    expect(four).toMatchObject({ code: 1, passed: 4, failed: [] })
    expect(four.flaky).toHaveLength(4)
    expect((await verdict({ none: "test.skip('nothing', () => {})" })).code).toBe(1)
  })
})
