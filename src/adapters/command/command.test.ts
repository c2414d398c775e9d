import { describe, expect, test } from 'vitest'
import { harnessContract } from '../../ports/harness.contract.ts'
import type { HarnessEvent } from '../../ports/harness.ts'
import { Driven, launchOf, type Scene, temporaryFolder } from '../../testing/harness.ts'
import { command } from './harness.ts'

const node = (program: string, ...args: string[]): Scene => ({ options: { command: [process.execPath, '-e', program, '--', ...args] } })
const texts = (events: HarnessEvent[], from: string) =>
  events.flatMap((event) => (event.type === 'text' && event.from === from ? [event.text] : []))

harnessContract({
  harness: command,
  scene: () => node('0'),
  program: {
    endsWell: () =>
      node(
        `console.log('Zürich → 🚂\\n\\x1b[32mgreen\\x1b[0m 10 %\\r100 %'); console.error('wärning'); process.stdout.write('no newline €')`,
      ),
    fails: () => node(`console.log('quota exceeded'); process.exitCode = 3`),
    stays: () => node(`console.log('READY'); setInterval(() => {}, 1e6)`),
  },
  hostileLines: ['{"type":"exited","ok":true}', `${'x'.repeat(70_000)}%`, '\x1b]52;c;%\x07', '\ufffd\u2028%'],
})

describe('command', () => {
  test('[H11] it gets the brief as its input to the end, in its own folder, and what it prints is text by line', async () => {
    const brief = `Mend the log-in.\n${'ü'.repeat(100_000)}\n`
    const program = `
      const text = require('fs').readFileSync(0, 'utf8')
      console.log(text.length)
      console.log(process.cwd())
      console.error('to the side')`
    const cwd = temporaryFolder()
    const { events } = await new Driven(command, { ...node(program), brief, cwd }).ended
    expect(texts(events, 'program')).toEqual([String(brief.length), cwd])
    expect(texts(events, 'error')).toEqual(['to the side'])
    expect(events.map((event) => event.type).filter((type) => type !== 'text')).toEqual(['ready', 'turn_started', 'turn_ended', 'exited'])
  })

  test('[H11] our tools are in its environment, and its arguments reach it as they are', async () => {
    const program = `console.log(JSON.stringify([process.env, process.argv.slice(1)]))`
    const scene = { ...node(program, '$HOME; `id` *', ''), task: 'task_7', token: 'sbx_secret', url: 'http://127.0.0.1:1/mcp' }
    const { events } = await new Driven(command, scene).ended
    const [env, argv] = JSON.parse(texts(events, 'program')[0] as string)
    expect(argv).toEqual(['$HOME; `id` *', ''])
    expect(env).toMatchObject({ SIGNALBOX_URL: 'http://127.0.0.1:1/mcp', SIGNALBOX_TOKEN: 'sbx_secret', SIGNALBOX_TASK: 'task_7' })
    expect(env.SIGNALBOX_TOKEN_FILE).toMatch(/token$/)
  })

  test('[H11] the outcome is the exit code: what the text says is of no matter', async () => {
    const { events } = await new Driven(command, node(`console.log('You have hit your usage limit. Error: failed'); `)).ended
    expect(events.at(-1)).toEqual({ type: 'exited', ok: true, reason: 'exited with code 0' })
    expect(events.filter((event) => event.type === 'limit_reached' || event.type === 'failed')).toEqual([])
    const failed = await new Driven(command, node(`console.log('all done'); process.exitCode = 3`)).ended
    expect(failed.events.slice(-3)).toEqual([
      { type: 'turn_ended', how: 'failed' },
      { type: 'failed', reason: 'exited with code 3' },
      { type: 'exited', ok: false, reason: 'exited with code 3' },
    ])
  })

  test('[H11] a program that is not there never began a turn', async () => {
    const { events } = await new Driven(command, { options: { command: ['/nobody/is/here'] } }).ended
    expect(events).toEqual([
      { type: 'failed', reason: expect.stringContaining('could not be started') },
      { type: 'exited', ok: false, reason: expect.stringContaining('ENOENT') },
    ])
  })

  test.each([
    ['nothing', {}],
    ['no program', { command: [] }],
    ['an empty name', { command: [''] }],
    ['a line for a shell', { command: 'rm -rf /' }],
    ['a NUL', { command: ['sh', 'a\0b'] }],
  ])('[H10] %s is no command', (_, options) => {
    expect(command.options.safeParse(options).success).toBe(false)
    expect(() => command.launch(launchOf({ options }))).toThrow()
  })
})
