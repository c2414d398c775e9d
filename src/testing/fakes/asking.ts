import type { Harness, HarnessEvent } from '../../ports/harness.ts'
import { fakeHarness } from './runs.ts'

/** Asks before it publishes, then before it writes; tells what it was answered, and goes on until it is ended. */
const PROGRAM = `
const tell = (...events) => console.log(JSON.stringify(events))
const say = (text) => tell({ type: 'text', from: 'agent', text })
const questions = {
  publish: ['Bash', { command: 'npm publish --tag <b>next</b>', description: 'Publish\u202e it' }],
  write: ['Write', { file_path: 'NEWS.md', content: 'first line\\nsecond line' }],
}
const ask = (id) => tell({ type: 'approval_asked', id, name: questions[id][0], input: JSON.stringify(questions[id][1]) })
process.on('SIGINT', () => tell({ type: 'turn_ended', how: 'interrupted' }))
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, allow, message } = JSON.parse(line)
  say((allow ? 'ALLOWED ' : 'DENIED ') + id + ' ' + message)
  if (id === 'publish') ask('write')
})
tell({ type: 'ready', session: null }, { type: 'turn_started' })
tell({ type: 'usage', input_tokens: 1200, output_tokens: 300, cached_tokens: 1000, cost_usd: 0.25, estimated: true })
if (process.argv[1] === 'ask') ask('publish')
else say('NOBODY ASKED')
`

/** A real process that asks for permission, for tests of everything between it and a person. */
export const askingHarness: Harness = fakeHarness({
  name: 'asking',
  title: 'A program that asks',
  launch: ({ approvals }) => ({ argv: [process.execPath, '-e', PROGRAM, approvals], env: {}, inherit: [], stdin: 'open', files: {} }),
  begin: () => ({ rest: '' }),
  decode(state, { stream, bytes }) {
    if (stream !== 'out') return { state, events: [] }
    const lines = `${state.rest}${bytes.toString()}`.split('\n')
    const rest = lines.pop() ?? ''
    return { state: { rest }, events: lines.flatMap((line) => JSON.parse(line) as HarnessEvent[]) }
  },
})
