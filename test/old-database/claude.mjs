// Stands for Claude Code: in a terminal it is the program of src/testing/tui.mjs, else it asks permission for one thing and ends when it is answered.
import { createInterface } from 'node:readline'

if (process.stdin.isTTY || process.argv.includes('--version')) await import('../../src/testing/tui.mjs')
else ask()

function ask() {
  const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)
  const request = { subtype: 'can_use_tool', tool_name: 'Bash', input: { command: 'npm publish' } }
  say({ type: 'system', subtype: 'init', session_id: '5d1f0f6e-0000-4000-8000-000000000000', mcp_servers: [] })
  say({ type: 'control_request', request_id: 'ask-1', request })
  const taken = []
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { type, uuid, response } = JSON.parse(line)
    if (type === 'user') taken.push(uuid)
    if (response?.request_id === 'ask-1')
      say({ type: 'result', subtype: 'success', terminal_reason: 'completed', result: 'Done.', user_message_uuids: taken })
  })
}
